"""Proposals against asking every question one by one; stopping and going on; the four file forms."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphs import graph_of
from satkgc.completion import proposals as module
from satkgc.completion.proposals import COLUMNS, DESCRIPTIONS, BestTriples, iri
from satkgc.errors import SatkgcError

pytest_plugins = ["world"]


def read(file):
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t" if file.suffix == ".tsv" else ","))


def by_hand(completer, relations):
    """Every triple that some question brings up among its 50 best, with the higher of its probabilities."""
    kg, worth = completer.kg, {}
    triples = np.concatenate([kg.train, kg.valid, kg.test]).tolist()
    for r in relations:
        name = kg.relations.id(r)
        for h in sorted({h for h, s, _ in triples if s == r}):
            for a in completer.tails(f"Q{h}", name, k=50, drop_known=True):
                key = (f"Q{h}", name, a.id)
                worth[key] = max(worth.get(key, 0), a.probability)
        for t in sorted({t for _, s, t in triples if s == r}):
            for a in completer.heads(name, f"Q{t}", k=50, drop_known=True):
                key = (a.id, name, f"Q{t}")
                worth[key] = max(worth.get(key, 0), a.probability)
    return worth


@pytest.fixture(scope="module")
def expected(completer):
    return by_hand(completer, [0, 3])


def test_the_best_missing_triples_of_some_relations(completer, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 7)
    out = tmp_path / "missing.tsv"
    assert completer.propose(out, n=100, relations=["near", "born_in"]) == 100
    rows = read(out)
    predicted = [float(row["probability"]) for row in rows]
    assert predicted == sorted(predicted, reverse=True)
    np.testing.assert_allclose(predicted, sorted(expected.values(), reverse=True)[:100], rtol=0.02, atol=1e-5)
    keys = [(row["head"], row["relation"], row["tail"]) for row in rows]
    assert len(set(keys)) == 100
    for key, chance in zip(keys, predicted, strict=True):
        assert expected[key] == pytest.approx(chance, rel=0.02, abs=1e-5)
    known = {
        (completer.kg.entities.id(h), completer.kg.relations.id(r), completer.kg.entities.id(t))
        for split in ("train", "valid", "test")
        for h, r, t in completer.kg.split(split).tolist()
    }
    assert not known & set(keys)
    assert rows[0]["head_name"] == completer.kg.entities.name(int(rows[0]["head"][1:]))
    for row in rows:
        for end in ("head", "tail"):
            described = completer.kg.entities.description(int(row[end][1:]))
            assert row[f"{end}_description"] == " ".join(described.split())
    assert list(tmp_path.iterdir()) == [out]
    # Asked for more than there are, it gives them all.
    assert completer.propose(tmp_path / "all.tsv", n=10**6, relations=["near", "born_in"]) == len(expected)


def test_who_has_the_one_answer_of_a_relation_gets_no_second(completer, tmp_path, monkeypatch):
    near = completer.kg.relations.ids.to_pylist().index("near")
    monkeypatch.setattr(module, "single_answered", lambda kg: {near})  # as if it gave each head one tail
    completer.propose(tmp_path / "some.tsv", n=10**6, relations=["near"])
    triples = [triple for split in ("train", "valid", "test") for triple in completer.kg.split(split).tolist()]
    complete = {f"Q{h}" for h, r, _ in triples if r == near}
    expected = {
        (answer.id, "near", f"Q{tail}"): answer.probability
        for tail in sorted({t for _, r, t in triples if r == near})
        for answer in completer.heads("near", f"Q{tail}", k=50, drop_known=True)
        if answer.id not in complete
    }
    rows = read(tmp_path / "some.tsv")
    found = {(row["head"], row["relation"], row["tail"]): float(row["probability"]) for row in rows}
    assert found == pytest.approx(expected, rel=0.02, abs=1e-5)
    assert found
    both = completer.propose(tmp_path / "all.tsv", n=10**6, relations=["near"], second_answers=True)
    assert both > len(found)


def test_typed_proposals_have_ends_that_the_relation_has_had(completer, expected, tmp_path):
    kg = completer.kg
    triples = [triple for split in ("train", "valid", "test") for triple in kg.split(split).tolist()]
    seen = {(r, side, f"Q{triple[side]}") for triple in triples for r, side in ((triple[1], 0), (triple[1], 2))}
    number = {"near": kg.relations.find("near"), "born_in": kg.relations.find("born_in")}
    completer.propose(tmp_path / "typed.tsv", n=10**6, relations=["near", "born_in"], typed=True)
    found = {(row["head"], row["relation"], row["tail"]) for row in read(tmp_path / "typed.tsv")}
    wanted = {(h, r, t) for h, r, t in expected if {(number[r], 0, h), (number[r], 2, t)} <= seen}
    assert found == wanted
    assert 0 < len(wanted) < len(expected)


def test_relations_left_out(completer, tmp_path):
    completer.propose(tmp_path / "some.tsv", n=50, exclude=["near", "knows", "capital of"])
    assert {row["relation"] for row in read(tmp_path / "some.tsv")} == {"born_in"}
    with pytest.raises(SatkgcError, match="no relation is left to propose"):
        completer.propose(tmp_path / "none.tsv", relations=["near"], exclude=["near"])


def test_relations_of_one_answer_both_ways_are_told_and_alone_refused(completer, tmp_path, monkeypatch, caplog):
    near, size = completer.kg.relations.find("near"), completer.kg.num_relations
    monkeypatch.setattr(module, "single_answered", lambda kg: {near, near + size})
    why = "the entities at both ends of 'near' have their one answer already; --second-answers asks for more"
    with pytest.raises(SatkgcError, match=f"^nothing is left to ask: {why}$"):
        completer.propose(tmp_path / "none.tsv", n=10, relations=["near"])
    assert list(tmp_path.iterdir()) == []
    assert completer.propose(tmp_path / "some.tsv", n=10, relations=["near", "born_in"]) == 10
    assert caplog.messages == [f"1 of 2 relations left out: {why}"]
    assert completer.propose(tmp_path / "all.tsv", n=10, relations=["near"], second_answers=True) == 10
    assert len(caplog.messages) == 1
    # Asked one way only, answers that have been the relation's end already have their one answer too.
    monkeypatch.setattr(module, "single_answered", lambda kg: {near})
    with pytest.raises(SatkgcError, match=r"at an end of 'near' have .*; --second-answers .* leaving --typed out"):
        completer.propose(tmp_path / "typed.tsv", n=10, relations=["near"], typed=True)


def test_no_triple_that_is_likely_enough_is_told(completer, tmp_path, caplog):
    out = tmp_path / "none.tsv"
    assert completer.propose(out, relations=["near"], min_probability=1.0, typed=True) == 0
    limits = "new, at least 1 likely, typed, no second answers"
    assert caplog.messages == [f"{out}: no triple is all that was asked for: {limits}"]


def test_which_relations_have_one_answer():
    one_tail = [(i, 0, 40 + i % 3) for i in range(30)]  # thirty heads, three tails
    nearly = [(i, 1, 40) for i in range(39)] + [(0, 1, 41)]  # one head of 39 has a second
    often = [(i, 2, 40 + j) for i in range(20) for j in range(1 + i % 2)]
    rare = [(i, 3, 45) for i in range(4)]
    again = [(5, 0, 42)]  # in another split, and known from train
    kg = graph_of(one_tail + nearly + often + rare, 50, 4, valid=again, test=again)
    assert module.single_answered(kg) == {0, 1}
    # Asked the other way round, a relation of one head to each tail.
    assert module.single_answered(graph_of([(t, 0, h) for h, _, t in one_tail], 50)) == {1}


def test_the_whole_graph_and_a_least_probability(completer, expected, tmp_path):
    least = float(np.quantile(list(expected.values()), 0.9))
    count = completer.propose(tmp_path / "all.csv", n=10**6, min_probability=least)
    rows = read(tmp_path / "all.csv")
    assert count == len(rows) > 0
    assert {row["relation"] for row in rows} > {"near", "born_in"}
    assert min(float(row["probability"]) for row in rows) >= least - 1e-6
    mine = {k for k, v in expected.items() if v > least * 1.02}
    assert mine <= {(row["head"], row["relation"], row["tail"]) for row in rows}


def test_it_goes_on_where_it_was_stopped(completer, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 16)
    completer.propose(tmp_path / "whole.tsv", n=50, relations=["near"])
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    asked, real = [], module.ask_batch

    def stopping(engine, directed, start, *rest):
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.append((directed, start))
        return real(engine, directed, start, *rest)

    monkeypatch.setattr(module, "ask_batch", stopping)
    out = tmp_path / "parts.tsv"
    with pytest.raises(KeyboardInterrupt):
        completer.propose(out, n=50, relations=["near"])
    assert not out.exists()
    first, asked[:] = list(asked), []
    monkeypatch.setattr(module, "ask_batch", lambda *a: asked.append(a[1:3]) or real(*a))
    with pytest.raises(SatkgcError, match=r"parts\.tsv\.state\.npz: an unfinished proposal with other settings"):
        completer.propose(out, n=51, relations=["near"])
    completer.propose(out, n=50, relations=["near"])
    assert not set(first) & set(asked)
    assert out.read_text() == (tmp_path / "whole.tsv").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parts.tsv", "whole.tsv"]


def test_all_forms_hold_the_same_triples(completer, tmp_path):
    pyoxigraph = pytest.importorskip("pyoxigraph")
    for ending in ("tsv", "csv", "parquet", "nt"):
        completer.propose(tmp_path / f"out.{ending}", n=40, relations=["knows"])
    rows = read(tmp_path / "out.tsv")
    assert rows == read(tmp_path / "out.csv")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == [*COLUMNS, *DESCRIPTIONS]
    assert table["tail"].to_pylist() == [row["tail"] for row in rows]
    assert table["score"].to_pylist() == pytest.approx([float(row["score"]) for row in rows], abs=1e-5)
    triples = [
        (q.subject.value, q.predicate.value, q.object.value)
        for q in pyoxigraph.parse(path=tmp_path / "out.nt", format=pyoxigraph.RdfFormat.N_TRIPLES)
    ]
    assert triples == [
        (f"urn:satkgc:entity:{row['head']}", "urn:satkgc:relation:knows", f"urn:satkgc:entity:{row['tail']}")
        for row in rows
    ]


@pytest.mark.parametrize(
    "id", ["http://example.org/a?b=c#d", "urn:isbn:1", "Q1", "a b", "<>", 'x"y\n', "é", "http://a b", ""]
)
def test_ids_become_iris_that_parse(id):
    pyoxigraph = pytest.importorskip("pyoxigraph")
    term = iri("entity", id)
    (quad,) = pyoxigraph.parse(f"<{term}> <urn:p> <urn:o> .", format=pyoxigraph.RdfFormat.N_TRIPLES)
    assert quad.subject.value == (id if id.startswith(("http://e", "urn:")) else term)


def test_merging_keeps_the_best_of_each_triple():
    nothing = BestTriples(np.empty((0, 3), np.int32), np.empty(0, np.float32), np.empty(0, np.float32))
    rng = np.random.default_rng(0)
    best, truth = nothing, {}
    for _ in range(20):
        triples = rng.integers(0, 4, (30, 3)).astype(np.int32)
        worth = rng.random(30).astype(np.float32)
        best = best.merge(triples, worth, worth, 10, (4, 4))
        for triple, value in zip(map(tuple, triples.tolist()), worth.tolist(), strict=True):
            truth[triple] = max(value, truth.get(triple, 0))
    expected = sorted(truth, key=lambda t: -truth[t])[:10]
    assert list(map(tuple, best.triples.tolist())) == expected
    assert best.values.tolist() == [truth[t] for t in expected]


def test_what_cannot_be_written(completer, tmp_path):
    with pytest.raises(SatkgcError, match=r"cannot tell the form of 'out\.xlsx'"):
        completer.propose(tmp_path / "out.xlsx")
    (tmp_path / "out.tsv").write_text("mine")
    with pytest.raises(SatkgcError, match="the file is there already"):
        completer.propose(tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == "mine"
    with pytest.raises(SatkgcError, match="n is 0"):
        completer.propose(tmp_path / "b.tsv", n=0)
    with pytest.raises(SatkgcError, match="unknown relation 'nearby'; did you mean 'near'"):
        completer.propose(tmp_path / "b.tsv", relations=["nearby"])
