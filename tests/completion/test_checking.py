"""Doubted statements against asking for each end one by one; contradictions; stopping and going on."""

from __future__ import annotations

import csv
import json

import pytest

from little_world import little_world, write_run
from satkgc.completion import Completer
from satkgc.completion import checking as module
from satkgc.completion.calibration import Calibration
from satkgc.completion.checking import judge
from satkgc.completion.prepare import prepare
from satkgc.errors import SatkgcError
from satkgc.kg import ReadOptions, read_graph
from satkgc.models import FusedConfig, FusedModel
from toy_models import PlainScores, WordVectors

KINDS = {
    "vectors": WordVectors,
    "scores": PlainScores,
    "fused": lambda kg: FusedModel(kg, FusedConfig(), {"words": WordVectors(kg), "plain": PlainScores(kg, 0.05)}),
}


@pytest.fixture(scope="module", params=KINDS)
def completer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "run"
    folder.mkdir()
    model = KINDS[request.param](little_world())
    model.save(folder / "model")
    return Completer(prepare(folder, model), folder)


def end_by_hand(answers, own):
    """Place, probability and the best other of an answer, from the list of all answers to its question."""
    mine = next(answer for answer in answers if answer.id == own)
    others = [answer for answer in answers if not answer.known]
    above = sum(other.score > mine.score for other in others)
    equal = sum(other.score == mine.score for other in others)
    return 1 + above + equal // 2, mine.probability, others[0].id, others[0].probability


def test_each_statement_is_judged_as_its_questions_answer_it(completer) -> None:
    kg = completer.kg
    doubts = completer.check(n=1000, split="valid")
    assert {(d.head, d.relation, d.tail) for d in doubts} == {
        (kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.valid.tolist()
    }
    for doubt in doubts:
        tails = completer.tails(doubt.head, doubt.relation, k=90, objections="mark")
        heads = completer.heads(doubt.relation, doubt.tail, k=90, objections="mark")
        likely = []
        for end, answers, own in ((doubt.asked_tail, tails, doubt.tail), (doubt.asked_head, heads, doubt.head)):
            rank, probability, instead, instead_probability = end_by_hand(answers, own)
            assert abs(end.rank - rank) <= 1  # two ways to sum a product round differently
            assert end.instead == instead
            assert [end.probability, end.instead_probability] == pytest.approx(
                [probability, instead_probability], rel=1e-3
            )
            likely.append(probability)
        assert doubt.probability == pytest.approx(min(likely), rel=1e-3)
        worse = min((doubt.asked_tail, doubt.asked_head), key=lambda end: (end.probability, -end.rank))
        if doubt.objection is None and worse.rank > 1:
            assert f"the model says {worse.instead_name} (" in doubt.reason


def statement(doubt):
    return doubt.head, doubt.relation, doubt.tail


def test_the_least_likely_come_first_and_the_list_is_cut_there(completer) -> None:
    everything = completer.check(n=1000)
    likely = [doubt.probability for doubt in everything if doubt.objection is None]
    assert likely == sorted(likely)
    assert completer.check(n=9) == everything[:9]
    near = completer.check(n=1000, relations=["near"])  # asked beside others: products differ in their last bit
    own = [doubt for doubt in everything if doubt.relation == "near"]
    assert {statement(doubt) for doubt in near} == {statement(doubt) for doubt in own}
    assert [doubt.probability for doubt in near] == pytest.approx([doubt.probability for doubt in own], rel=1e-5)


def test_without_probabilities_ranks_decide(completer, monkeypatch) -> None:
    monkeypatch.setattr(completer._engine, "calibration", Calibration())
    doubts = completer.check(n=1000, split="valid")
    assert {doubt.probability for doubt in doubts} == {None}
    ranks = [max(d.asked_tail.rank, d.asked_head.rank) for d in doubts if d.objection is None]
    assert ranks == sorted(ranks, reverse=True)


GENRES = """@prefix : <http://e/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:rock skos:broader :music . :punk skos:broader :rock . :music skos:broader :punk . :jazz skos:broader :music .
"""


def test_contradictions_come_first_with_what_they_contradict(tmp_path, tiny_backbone) -> None:
    lines = [GENRES]
    for i in range(200):
        lines.append(f":band{i} a :Band ; :city :city{i % 5} . :song{i} a :Song ; :by :band{i} .\n")
        lines.append(f":city{i % 5} a :City .\n")
    lines.append(":band0 :city :city1 . :song3 :by :city4 .\n")
    (tmp_path / "music.ttl").write_text("".join(lines))
    kg = read_graph(tmp_path / "music.ttl", ReadOptions(split="none"))
    completer = Completer.load(write_run(tmp_path / "run", kg, tiny_backbone))
    doubts = completer.check(n=9)
    against = {
        f"{d.head_name} {d.relation_name} {d.tail_name}": (d.objection.kind, d.reason) for d in doubts if d.objection
    }
    cycle = {"rock broader music", "punk broader rock", "music broader punk"}
    twice = {"band0 city city0", "band0 city city1", "song3 by band3", "song3 by city4"}
    assert {name: kind for name, (kind, _) in against.items()} == dict.fromkeys(cycle, "cyclic") | dict.fromkeys(
        twice, "second_value"
    )
    assert [doubt.objection is not None for doubt in doubts] == [True] * 7 + [False] * 2
    assert against["band0 city city1"][1] == "second value: the graph has band0 – city – city0"
    assert against["rock broader music"][1].endswith("the graph has music – broader – punk, punk – broader – rock")


def test_a_check_that_was_stopped_goes_on(completer, tmp_path, monkeypatch) -> None:
    expected = completer.check(n=30)
    monkeypatch.setattr(module, "BATCH", 50)
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr("satkgc.completion.completer.index_checksum", lambda run: "the run")
    judged = []

    def interrupted(engine, triples):
        if len(judged) == 3:
            raise KeyboardInterrupt
        judged.append(len(triples))
        return judge(engine, triples)

    monkeypatch.setattr(module, "judge", interrupted)
    out = tmp_path / "doubts.json"
    with pytest.raises(KeyboardInterrupt):
        completer.check(n=30, out=out)
    assert not out.exists()
    with pytest.raises(SatkgcError, match="an unfinished check with other settings"):
        completer.check(n=29, out=out)
    judged.clear()
    monkeypatch.setattr(module, "judge", lambda engine, triples: judged.append(len(triples)) or judge(engine, triples))
    doubts = completer.check(n=30, out=out)
    assert sum(judged) == len(completer.kg.train) - 150
    assert [(d.head, d.relation, d.tail) for d in doubts] == [(d.head, d.relation, d.tail) for d in expected]
    assert [row["tail"] for row in json.loads(out.read_text())] == [doubt.tail for doubt in doubts]
    assert list(tmp_path.iterdir()) == [out]


def test_a_table_for_a_spreadsheet(completer, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("satkgc.completion.completer.index_checksum", lambda run: "the run")
    doubts = completer.check(n=5, out=tmp_path / "doubts.csv")
    with (tmp_path / "doubts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["head"] for row in rows] == [doubt.head for doubt in doubts]
    assert [int(row["tail_rank"]) for row in rows] == [doubt.asked_tail.rank for doubt in doubts]
    assert [row["head_instead_name"] for row in rows] == [doubt.asked_head.instead_name for doubt in doubts]
    assert [float(row["probability"]) for row in rows] == pytest.approx([d.probability for d in doubts], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n": 10**6}, "n is 1000000; ask for 1 to 100,000 statements"),
        ({"split": "tset"}, "unknown split 'tset'"),
        ({"split": "inference"}, "has no such inference triples; choose another split or relation"),
        ({"relations": ["neer"]}, "unknown relation 'neer'; did you mean 'near'"),
        ({"relations": "near"}, "relations are given as a text; give a list"),
        ({"out": "x.xlsx"}, "cannot tell the form of 'x.xlsx'; end its name in .csv or .json"),
    ],
)
def test_what_cannot_be_checked_is_told(completer, options, told) -> None:
    with pytest.raises(SatkgcError, match=told):
        completer.check(**options)
