"""Proposals against the graph's logic, with networkx as the judge."""

from __future__ import annotations

import csv
from dataclasses import replace

import networkx as nx
import numpy as np

from little_world import write_run
from satkgc import KnowledgeGraph
from satkgc.completion import Completer
from satkgc.completion.consistency import Conflict, Consistency
from satkgc.kg import SPLITS, RelationLogic, Vocabulary, relation_logic

pytest_plugins = ["world"]


def words(kg, triples):
    return {(kg.relations.name(r), h, t) for h, r, t in triples}


def test_on_wordnet_nothing_is_mirrored_implied_or_cyclic():
    """Candidates made to be refused: mirrors, ancestors, cycles, and pairs at random."""
    kg = KnowledgeGraph.load("wordnet-sample")
    logic = [replace(one, functional=False, inverse_functional=False) for one in relation_logic(kg)]
    by_name = {kg.relations.id(r): r for r in range(kg.num_relations)}
    hypernym = by_name["hypernym"]
    assert logic[hypernym].hierarchy
    everything = np.concatenate([kg.split(split) for split in SPLITS])
    rng = np.random.default_rng(3)
    chosen = everything[rng.permutation(len(everything))[:1500]]
    turned = [(t, r, h) for h, r, t in chosen.tolist()]
    tree = nx.DiGraph((h, t) for h, r, t in everything.tolist() if r == hypernym)
    up = [(h, hypernym, next(iter(tree[t]))) for h, t in tree.edges if tree[t]][:500]
    random = np.stack(
        [
            rng.integers(0, kg.num_entities, 2000),
            rng.integers(0, kg.num_relations, 2000),
            rng.integers(0, kg.num_entities, 2000),
        ],
        1,
    )
    known = set(map(tuple, everything.tolist()))
    pool = [t for t in dict.fromkeys([*turned, *up, *map(tuple, random.tolist())]) if t not in known]
    candidates = np.array(pool, np.int32)[rng.permutation(len(pool))]
    kept, dropped = Consistency(kg, logic).keep(candidates, 10**6)
    assert {"mirrored", "implied", "cyclic"} == dropped.keys()
    new = [tuple(t) for t in candidates[kept].tolist()]
    held, together = set(known), set(known)
    for h, r, t in new:
        mirror = r if logic[r].symmetric else logic[r].inverse
        assert mirror is None or (t, mirror, h) not in held
        held.add((h, r, t))
    together |= set(new)
    for r, properties in enumerate(logic):
        if properties.hierarchy:
            edges = nx.DiGraph((h, t) for h, s, t in together if s == r)
            edges.add_edges_from((t, h) for h, s, t in together if s == properties.inverse)
            assert nx.is_directed_acyclic_graph(edges)
            for h, t in [(h, t) for h, s, t in new if s == r][:200]:
                before = edges.copy()
                before.remove_edge(h, t)
                later = {(a, b) for a, s, b in new[new.index((h, r, t)) :] if s == r}
                before.remove_edges_from(later)
                before.remove_edges_from((b, a) for a, s, b in new[new.index((h, r, t)) :] if s == properties.inverse)
                assert not (before.has_node(h) and before.has_node(t) and nx.has_path(before, h, t))


def test_what_follows_from_a_relation_that_implies_another():
    ids = ["a", "b", "c"]
    relations = Vocabulary.build("relation", ["married", "knows"], ["married", "knows"], ["", ""])
    kg = KnowledgeGraph.from_arrays("g", Vocabulary.build("entity", ids, ids, [""] * 3), relations, [(0, 0, 1)])
    logic = [RelationLogic(symmetric=True, implies=(1,)), RelationLogic()]
    judge = Consistency(kg, logic)
    assert judge.conflict(0, 1, 1) == Conflict("implied", ((0, 0, 1),))
    assert judge.conflict(1, 0, 0) == Conflict("mirrored", ((0, 0, 1),))
    assert judge.conflict(0, 1, 2) is None
    kept, dropped = judge.keep(np.array([(1, 0, 2), (2, 0, 1), (1, 1, 2), (2, 1, 0)], np.int32), 10)
    assert kept.tolist() == [True, False, False, True]
    assert dropped == {"mirrored": 1, "implied": 1}


def test_proposals_take_a_logic(completer, tmp_path, caplog):
    """As if `near` were symmetric: of a triple and its mirror one is proposed, and none whose mirror is known."""

    def read(file):
        with file.open(newline="") as lines:
            return [(row["head"], row["tail"]) for row in csv.DictReader(lines)]

    (tmp_path / "logic.toml").write_text('[[relation]]\nid = "near"\nsymmetric = true\n')
    completer.propose(tmp_path / "all.csv", n=10**5, relations=["near"], implied=True)
    completer.propose(tmp_path / "some.csv", n=10**5, relations=["near"], logic=tmp_path / "logic.toml")
    kg, near = completer.kg, completer.kg.relations.index("near")
    known = {(kg.entities.id(h), kg.entities.id(t)) for s in SPLITS for h, r, t in kg.split(s).tolist() if r == near}
    expected: list[tuple[str, str]] = []
    for head, tail in read(tmp_path / "all.csv"):
        if (tail, head) not in known and (tail, head) not in expected:
            expected.append((head, tail))
    assert read(tmp_path / "some.csv") == expected
    assert len(expected) < len(read(tmp_path / "all.csv"))
    assert "mirrored; --implied keeps them" in caplog.text


def test_two_hundred_proposals_on_a_thesaurus(tmp_path, tiny_backbone):
    """Each pair written both ways, as thesauri do; networkx says what is mirrored, implied or cyclic."""
    rng = np.random.default_rng(5)
    broader = {(i, int(rng.integers(0, i))) for i in range(1, 150) for _ in range(2)}
    related = {tuple(sorted(pair)) for pair in rng.integers(0, 150, (60, 2)).tolist() if pair[0] != pair[1]}
    lines = ["@prefix : <http://e/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"]
    lines += [f":c{h} skos:broader :c{t} . :c{t} skos:narrower :c{h} .\n" for h, t in broader]
    lines += [f":c{a} skos:related :c{b} . :c{b} skos:related :c{a} .\n" for a, b in related]
    (tmp_path / "t.ttl").write_text("".join(lines))
    kg = KnowledgeGraph.load(tmp_path / "t.ttl")
    completer = Completer.load(write_run(tmp_path / "run", kg, tiny_backbone))

    def wrong(file, **options):
        completer.propose(tmp_path / file, n=200, second_answers=True, **options)
        with (tmp_path / file).open(newline="") as table:
            rows = [
                tuple(row[c].rpartition("/")[2] for c in ("head", "relation", "tail")) for row in csv.DictReader(table)
            ]
        assert len(rows) == 200
        tree = nx.DiGraph((f"c{h}", f"c{t}") for h, t in broader)
        sides = {frozenset((f"c{a}", f"c{b}")) for a, b in related}
        count = 0
        for head, relation, tail in rows:
            if relation.endswith("related"):
                count += frozenset((head, tail)) in sides
                sides.add(frozenset((head, tail)))
                continue
            low, high = (head, tail) if relation.endswith("broader") else (tail, head)
            count += nx.has_path(tree, low, high) or nx.has_path(tree, high, low)
            tree.add_edge(low, high)
        return count

    assert wrong("logic.csv") == 0
    assert wrong("all.csv", implied=True) > 20
