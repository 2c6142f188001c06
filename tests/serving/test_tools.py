"""Tools for language models: their schemas, answers against the completer's own, one line for what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict

import jsonschema
import pytest

from satkgc.completion import Completer
from satkgc.errors import SatkgcError
from satkgc.serving import TOOLS, call_tool, tools
from satkgc.serving import settings as limits

DOG = {"head": "dog", "relation": "hypernym"}
GOOD = {
    "search": {"text": "do", "limit": 3},
    "entity": {"entity": "canine"},
    "relations": {},
    "suggest_relations": {"entity": "dog"},
    "complete": {**DOG, "k": 4.0},
    "evidence": {**DOG, "tail": "feline", "k": 2},
    "check": {**DOG, "tail": "canine"},
    "doubts": {"entity": "canine"},
}
BAD = {
    "a million answers": ("complete", {**DOG, "k": 10**6}, "k: Input should be less than or equal to 100"),
    "an unknown entity": ("complete", {**DOG, "head": "dig"}, "unknown entity 'dig'; did you mean 'dog'"),
    "an unknown relation": ("check", {**DOG, "relation": "hypernim", "tail": "cat"}, "unknown relation 'hypernim'"),
    "several of one name": ("entity", {"entity": "bank"}, "2 entities are called 'bank'; give the id of one: bank."),
    "an empty name": ("complete", {**DOG, "head": ""}, "head: it is empty; give at least one character"),
    "an empty search": ("search", {"text": ""}, "text: it is empty"),
    "a blank new entity": ("complete", {**DOG, "head": {"name": " \n"}}, "head.name: it is blank; give a name"),
    "a megabyte": ("evidence", {**DOG, "tail": "x" * 10**6}, "tail: String should have at most 2000 characters"),
    "nothing": ("complete", {}, "arguments: give two of head, relation and tail"),
    "all three": ("complete", {**DOG, "tail": "cat"}, "arguments: give two of head, relation and tail"),
    "another field": ("relations", {"lang": "en"}, "lang: there is no such field; remove it"),
    "a number for a name": ("doubts", {"entity": 7}, "entity: give it as text"),
    "another tool": ("delete\nall", {}, r"no tool is called 'delete\nall'; there are search, entity, "),
    "no statements": ("doubts", {"entity": "dog", "relation": "hypernym", "n": 0}, "n: Input should be greater than"),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_takes_and_gives_what_its_schemas_say(name: str, completer: Completer) -> None:
    tool = TOOLS[name]
    assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & tool.input_schema.keys(), "the hosts of models refuse these here"
    assert tool.input_schema["additionalProperties"] is False
    jsonschema.validate(GOOD[name], tool.input_schema)
    reply = call_tool(completer, name, GOOD[name])
    jsonschema.validate(reply, tool.output_schema)
    assert json.loads(json.dumps(reply)) == reply


def test_answers_are_the_completers(completer: Completer) -> None:
    def same(reply: object, value: object) -> None:
        assert reply == json.loads(json.dumps(value))

    replies = {name: call_tool(completer, name, arguments) for name, arguments in GOOD.items()}
    same(replies["search"]["entities"], [asdict(entity) for entity in completer.search("do", 3)])
    same(replies["entity"], asdict(completer.entity("canine", 20)))
    same(replies["relations"]["relations"], [asdict(relation) for relation in completer.relation_list()])
    same(replies["suggest_relations"]["relations"], [asdict(one) for one in completer.suggest_relations("dog")])
    same(replies["complete"]["answers"], [asdict(answer) for answer in completer.tails("dog", "hypernym", 4)])
    same(replies["evidence"], asdict(completer.evidence("dog", "hypernym", "feline", 2)))
    heads = call_tool(completer, "complete", {"relation": "hypernym", "tail": "canine", "drop_known": True})
    same(heads["answers"], [asdict(answer) for answer in completer.heads("hypernym", "canine", drop_known=True)])
    relations = call_tool(completer, "complete", {"head": "dog", "tail": "wolf"})
    same(relations["answers"], [asdict(answer) for answer in completer.relations("dog", "wolf")])
    assert [heads["asked"], relations["asked"]] == ["head", "relation"]


def test_a_statement_is_checked_as_the_check_of_all_does(completer: Completer) -> None:
    everything = {(d.head, d.relation, d.tail): d for d in completer.check(n=100)}
    assert len(everything) == 11
    for (head, relation, tail), doubt in everything.items():
        reply = call_tool(completer, "check", {"head": head, "relation": relation, "tail": tail})
        assert reply["known"]
        for end in ("asked_tail", "asked_head"):
            assert reply["verdict"][end]["rank"] == getattr(doubt, end).rank
            assert reply["verdict"][end]["score"] == pytest.approx(getattr(doubt, end).score, abs=1e-5)
            assert reply["verdict"][end]["instead"] == getattr(doubt, end).instead
        assert reply["verdict"]["reason"] == doubt.reason
    about = call_tool(completer, "doubts", {"entity": "canine"})["doubts"]
    assert {(d["head"], d["relation"], d["tail"]) for d in about} == {s for s in everything if "canine" in s[::2]}
    below = call_tool(completer, "doubts", {"entity": "canine", "n": 1})["doubts"]
    assert [d["tail"] for d in below] == [about[0]["tail"]]


def test_a_statement_that_the_graph_does_not_have_is_checked_too(completer: Completer) -> None:
    reply = call_tool(completer, "check", {"head": "cat", "relation": "hypernym", "tail": "canine"})
    assert not reply["known"]
    answers = completer.tails("cat", "hypernym", 100, drop_known=True, objections="mark")
    own = next(place for place, answer in enumerate(answers, 1) if answer.id == "canine")
    assert abs(reply["verdict"]["asked_tail"]["rank"] - own) <= 1  # of equal scores each counts half
    assert not call_tool(completer, "evidence", {"head": "cat", "relation": "hypernym", "tail": "canine"})["known"]


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_is_one_line(case: str, completer: Completer) -> None:
    name, arguments, line = BAD[case]
    with pytest.raises(SatkgcError) as refusal:
        call_tool(completer, name, arguments)
    assert str(refusal.value).startswith(line)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_too_many_statements_of_one_entity_are_refused(completer: Completer, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(limits, "MAX_CHECKED", 2)
    with pytest.raises(SatkgcError, match="there are 3 such statements, and at most 2 are looked at; name a relation"):
        call_tool(completer, "doubts", {"entity": "canine"})
    assert len(call_tool(completer, "doubts", {"entity": "dog"})["doubts"]) == 2


def test_an_answer_is_bounded_and_ids_stay_whole(completer: Completer, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(limits, "MAX_CELL", 10)
    first = call_tool(completer, "search", {"text": "http://example.org"})["entities"][0]
    assert (first["id"], first["description"]) == ("http://example.org/a b?c=1#d", "its id is…")
    monkeypatch.setattr(limits, "MAX_REPLY", 400)
    call_tool(completer, "complete", {**DOG, "k": 1})
    with pytest.raises(SatkgcError, match=r"the answer has [\d,]+ characters, and at most 400 are sent; ask for fewer"):
        call_tool(completer, "complete", {**DOG, "k": 10})


def test_questions_can_be_answered_by_another(completer: Completer) -> None:
    asked: list[object] = []
    reply = tools.call_tool(completer, "complete", DOG, lambda question: asked.append(question) or [])
    assert reply == {"asked": "tail", "answers": []}
    assert len(asked) == 1
