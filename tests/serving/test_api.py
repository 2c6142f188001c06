"""The API answers as the completer does, over a real connection."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import httpx
import pytest
from running import CLIENT

from satkgc.completion import NewEntity, Question, Role
from satkgc.completion import completer as module

NEW = {"name": "labradoodle", "description": "a dog bred from a labrador and a poodle"}


def post(url: str, path: str, body: object) -> httpx.Response:
    return CLIENT.post(f"{url}/api/v1/{path}", json=body)


def close(answers: list[dict], expected) -> None:  # type: ignore[no-untyped-def]
    """The same answers; a batch of another shape may round the last bits of a score differently."""
    expected = [asdict(answer) | {"experts": list(answer.experts)} for answer in expected]
    assert [a["id"] for a in answers] == [a["id"] for a in expected]
    for one, other in zip(answers, expected, strict=True):
        numbers = {name: pytest.approx(other[name], abs=1e-5) for name in ("score", "probability") if other[name]}
        assert one == {**other, **numbers}


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"head": "dog", "relation": "hypernym", "k": 3}, "tail"),
        ({"relation": "hypernym", "tail": "canine", "drop_known": True}, "head"),
        ({"head": "dog", "tail": "canine"}, "relation"),
        ({"head": "http://example.org/a b?c=1#d", "relation": "similar to"}, "tail"),
        ({"head": "ω", "relation": "hypernym", "among": ["dog", "<script>", "../../etc/passwd"]}, "tail"),
    ],
)
def test_a_completion_is_the_completers(url: str, completer, body: dict, asked: str) -> None:  # type: ignore[no-untyped-def]
    answer = post(url, "complete", body)
    assert answer.status_code == 200
    assert answer.json()["asked"] == asked
    question = {**body, "among": tuple(body["among"])} if "among" in body else body
    close(answer.json()["answers"], completer.ask([Question(**question)])[0])


def test_roles_and_new_text_reach_the_completer(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    body = {"head": NEW, "relation": "hypernym", "role": {"relation": "hypernym", "side": "tail"}}
    answers = post(url, "complete", body).json()["answers"]
    assert {a["id"] for a in answers} == {"canine", "feline", "mammal", "animal", "<script>"}
    plain = post(url, "complete", {"head": NEW, "relation": "hypernym"}).json()["answers"]
    close(plain, completer.tails(NewEntity(**NEW), "hypernym"))
    known = {**NEW, "facts": [{"relation": "hypernym", "side": "head", "other": "dog"}]}
    more = post(url, "complete", {"head": known, "relation": "hypernym"}).json()["answers"]
    close(more, completer.tails(NewEntity(**NEW, facts=(Role("hypernym", "head", "dog"),)), "hypernym"))
    assert [a["id"] for a in more if a["known"]] == ["dog"]
    wrong = {**NEW, "facts": [{"relation": "hypernym", "side": "head", "other": "no such"}]}
    assert post(url, "complete", {"head": wrong, "relation": "hypernym"}).status_code == 404
    wrong = {**NEW, "facts": [{"relation": "hypernym", "side": "middle", "other": "dog"}]}
    refused = post(url, "complete", {"head": wrong, "relation": "hypernym"})
    assert (refused.status_code, refused.json()["error"][:18]) == (422, "head.facts.0.side:")


def test_a_score_threshold_cuts_the_answers(url: str) -> None:
    ask = {"head": "dog", "relation": "hypernym", "k": 100}
    scores = [a["score"] for a in post(url, "complete", ask).json()["answers"]]
    middle = (scores[4] + scores[5]) / 2
    assert len(post(url, "complete", {**ask, "min_score": middle}).json()["answers"]) == 5 < len(scores)


def test_a_batch_answers_what_it_can_and_says_what_it_cannot(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    questions = [
        {"head": "dog", "relation": "hypernym"},
        {"head": "doog", "relation": "hypernym"},
        {"relation": "similar to", "tail": "wolf"},
    ]
    answer = post(url, "batch", {"questions": questions})
    first, second, third = answer.json()["results"]
    assert answer.status_code == 200
    assert "doog" in second["error"]
    assert second["answers"] == []
    alone = post(url, "complete", questions[1]).json()
    assert (second["error"], second["suggestions"]) == (alone["error"], alone["suggestions"])
    assert second["suggestions"] != first["suggestions"] == []
    close(first["answers"], completer.tails("dog", "hypernym"))
    close(third["answers"], completer.heads("similar to", "wolf"))
    assert (first["error"], third["asked"]) == (None, "head")


def test_many_clients_at_once_get_their_own_answers(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    names = ["dog", "cat", "wolf", "canine", "feline", "mammal", "unknown"] * 8
    with ThreadPoolExecutor(16) as clients:
        ask = lambda name: post(url, "complete", {"head": name, "relation": "similar to", "k": 4})  # noqa: E731
        answers = list(clients.map(ask, names))
    expected = {name: completer.tails(name, "similar to", k=4) for name in set(names) - {"unknown"}}
    for name, answer in zip(names, answers, strict=True):
        if name == "unknown":
            assert answer.status_code == 404
        else:
            close(answer.json()["answers"], expected[name])
    text = CLIENT.get(f"{url}/metrics").text
    batches = float(text.split("satkgc_batch_size_count ")[1].split()[0])
    questions = float(text.split("satkgc_batch_size_sum ")[1].split()[0])
    assert questions > batches  # some were answered together


def test_names_that_nobody_or_several_have_come_back_with_candidates(url: str) -> None:
    unknown = post(url, "complete", {"head": "doog", "relation": "hypernym"})
    assert unknown.status_code == 404
    assert "dog" in [one["id"] for one in unknown.json()["suggestions"]]
    relation = post(url, "complete", {"head": "dog", "relation": "hypernim"})
    assert relation.status_code == 404
    assert relation.json()["suggestions"][0]["id"] == "hypernym"
    type = post(url, "complete", {"head": "dog", "relation": "hypernym", "type": "animal"})
    assert (type.status_code, type.json()["suggestions"]) == (404, [])
    several = post(url, "complete", {"head": "bank", "relation": "hypernym"})
    assert several.status_code == 409
    assert {one["id"] for one in several.json()["suggestions"]} == {"bank.1", "bank.2"}
    assert all("\n" not in one.json()["error"] for one in (unknown, relation, type, several))


def test_entities_are_found_and_shown_with_their_neighbours(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    matches = CLIENT.get(f"{url}/api/v1/entities", params={"q": "can", "limit": 2}).json()["entities"]
    assert matches == [asdict(one) for one in completer.search("can", 2)]
    assert matches[0]["id"] == "canine"
    for id in ("dog", "http://example.org/a b?c=1#d", "<script>", "ω"):
        detail = CLIENT.get(f"{url}/api/v1/entity", params={"id": id}).json()
        assert detail["id"] == id
        assert detail["total"] == len(detail["neighbours"]) > 0
    one = CLIENT.get(f"{url}/api/v1/entity", params={"id": "mammal", "limit": 1}).json()
    assert (one["total"], len(one["neighbours"])) == (3, 1)
    rest = CLIENT.get(f"{url}/api/v1/entity", params={"id": "mammal", "offset": 1}).json()["neighbours"]
    whole = CLIENT.get(f"{url}/api/v1/entity", params={"id": "mammal"}).json()["neighbours"]
    assert [*one["neighbours"], *rest] == whole
    assert len(rest) == 2


def test_relations_and_info_describe_the_graph(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    relations = CLIENT.get(f"{url}/api/v1/relations").json()["relations"]
    assert [(r["id"], r["triples"]) for r in relations] == [("hypernym", 7), ("similar to", 4)]
    info = CLIENT.get(f"{url}/api/v1/info").json()
    assert (info["graph"], info["entities"], info["relations"], info["triples"]) == ("little <b>world</b>", 14, 2, 11)
    assert info["reads_facts"] is True  # its texts name neighbours
    assert info["calibrated"] is False  # there are no validation triples
    assert 1 <= len(info["examples"]) <= 14
    heads = {completer.kg.entities.id(h) for h, r, _ in completer.kg.train.tolist() if r == 0}
    assert completer.kg.relations.id(0) == "hypernym"  # the most frequent one, which the page offers first
    assert {example["id"] for example in info["examples"]} <= heads


def test_a_body_that_is_no_json_is_told_apart_from_one_that_is_not_sent_as_such(url: str) -> None:
    where = f"{url}/api/v1/complete"
    broken = CLIENT.post(where, content='{"head":', headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"]) == (400, "the body is not JSON: see its character 8")
    plain = CLIENT.post(
        where, content='{"head": "dog", "relation": "hypernym"}', headers={"Content-Type": "text/plain"}
    )
    assert plain.status_code == 422
    assert "send it with the header Content-Type: application/json" in plain.json()["error"]


def test_suggested_relations_are_those_of_the_nearest_entities(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    relations = post(url, "suggest-relations", {"entity": "dog"}).json()["relations"]
    assert relations == post(url, "fitting", {"entity": "dog"}).json()["relations"]  # the old name of the route
    # Fourteen entities are fewer than are looked at: the shares are those of the whole graph.
    heads = [("hypernym", 7), ("similar to", 4)]
    assert [(r["id"], r["share"]) for r in relations] == [(name, pytest.approx(n / 14)) for name, n in heads]
    tails = post(url, "suggest-relations", {"entity": NEW, "asked": "head"}).json()["relations"]
    assert {r["id"]: round(14 * r["share"]) for r in tails} == {"hypernym": 5, "similar to": 4}


def test_suggestions_look_at_the_nearest_only(completer, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "NEAREST", 1)  # an entity is the nearest to itself
    assert [r.id for r in completer.suggest_relations("cat")] == ["hypernym"]
    assert completer.suggest_relations("animal") == []
    assert {r.id: r.share for r in completer.suggest_relations("dog")} == {"hypernym": 1, "similar to": 1}


def test_evidence_is_the_completers(url: str, completer) -> None:  # type: ignore[no-untyped-def]
    evidence = post(url, "evidence", {"head": "dog", "relation": "hypernym", "tail": "feline", "k": 2}).json()
    expected = completer.evidence("dog", "hypernym", "feline", 2)
    assert [s["head"] for s in evidence["similar"]] == [s.head for s in expected.similar]
    assert [s["target"] for s in evidence["path"]] == ["canine", "mammal", "feline"]
    assert (evidence["query_text"], evidence["entity_text"]) == (expected.query_text, expected.entity_text)
    for asked in ("head", "relation", "tail"):
        triple = {"head": "dog", "relation": "hypernym", "tail": "feline"}
        question = {part: ref for part, ref in triple.items() if part != asked}
        answer = next(a for a in post(url, "complete", question).json()["answers"] if a["id"] == triple[asked])
        evidence = post(url, "evidence", triple | {"asked": asked}).json()
        assert evidence["score"] == pytest.approx(answer["score"], abs=1e-5)
        assert evidence["asked"] == asked
    fresh = post(url, "evidence", {"head": NEW, "relation": "hypernym", "tail": "dog"}).json()
    assert fresh["path"] is None
    assert "labrador" in fresh["query_text"]


@pytest.mark.parametrize(
    ("path", "title", "script"),
    [
        ("/", "Ask the graph", "app"),
        ("/review", "Review", "review"),
        ("/entity", "Entity", "entity"),
        ("/docs", "API", "docs"),
    ],
)
def test_a_page_is_its_own_below_the_head_of_all(url: str, path: str, title: str, script: str) -> None:
    answer = CLIENT.get(url + path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<title>{title} · satkgc</title>" in answer.text
    assert f'src="static/{script}.js"' in answer.text
    assert [answer.text.count(tag) for tag in ("<!doctype", "<head>", "<body>", "</html>")] == [1, 1, 1, 1]
    same = CLIENT.head(url + path)
    assert (same.status_code, same.content, same.headers["content-length"]) == (200, b"", str(len(answer.content)))
