"""Evidence against networkx and against looking at every triple."""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

from little_world import little_world, write_run
from satkgc.completion import Completer, NewEntity, Question, Role
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph

pytest_plugins = ["world"]


def as_networkx(kg, without=None):
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(kg.num_entities))
    graph.add_edges_from((h, t) for h, r, t in kg.train.tolist() if (h, r, t) != without)
    return graph


def test_the_path_is_a_shortest_one_and_made_of_training_triples(completer):
    kg = completer.kg
    rng = np.random.default_rng(2)
    triples = {(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.train.tolist()}
    lengths = set()
    for h, t in rng.choice(90, (25, 2)).tolist():
        if h == t:
            continue
        path = completer.evidence(f"Q{h}", "near", f"Q{t}", k=1).path
        without = as_networkx(kg, (h, 3, t))
        if not nx.has_path(without, h, t):
            assert path is None
            continue
        assert len(path) == nx.shortest_path_length(without, h, t)
        lengths.add(len(path))
        assert (path[0].source, path[-1].target) == (f"Q{h}", f"Q{t}")
        for step, after in pairwise(path):
            assert step.target == after.source
        for step in path:
            ends = (step.source, step.target) if step.direction == "out" else (step.target, step.source)
            assert (ends[0], step.relation, ends[1]) in triples
    assert len(lengths) > 1


def test_the_asked_triple_is_no_evidence_for_itself(completer):
    kg = completer.kg
    checked = 0
    for h, r, t in kg.train.tolist():
        alone = sum((a, c) in ((h, t), (t, h)) for a, _, c in kg.train.tolist()) == 1
        if h == t or not alone:
            continue
        evidence = completer.evidence(f"Q{h}", kg.relations.id(r), f"Q{t}", k=1)
        assert evidence.known
        without = as_networkx(kg, (h, r, t))
        expected = nx.shortest_path_length(without, h, t) if nx.has_path(without, h, t) else None
        assert (None if evidence.path is None else len(evidence.path)) == expected != 1
        checked += 1
        if checked == 5:
            break
    assert checked == 5
    # Another relation between the two is evidence.
    pairs = [(h, t) for h, _, t in kg.train.tolist()]
    h, t = next(pair for pair in pairs if pair[0] != pair[1] and pairs.count(pair) > 1)
    r = next(r for a, r, c in kg.train.tolist() if (a, c) == (h, t))
    (step,) = completer.evidence(f"Q{h}", kg.relations.id(r), f"Q{t}").path
    assert (step.relation, step.direction) != (kg.relations.id(r), "out")


def test_similar_triples_have_the_nearest_heads_of_the_relation(completer):
    kg = completer.kg
    vectors = completer.vectors()
    for h, t in ((3, 41), (17, 2)):
        similar = completer.evidence(f"Q{h}", "born in", f"Q{t}", k=4).similar
        everything = np.concatenate([kg.train, kg.valid, kg.test])
        heads = sorted(
            {int(a) for a, r, _ in everything if r == 0} - {h}, key=lambda a: -float(vectors[a] @ vectors[h])
        )
        best = [float(vectors[a] @ vectors[h]) for a in heads[:4]]
        assert [s.similarity for s in similar] == pytest.approx(best, abs=1e-5)
        for triple in similar:
            head, tails = int(triple.head[1:]), [int(c) for a, r, c in everything if (f"Q{a}", r) == (triple.head, 0)]
            assert head != h
            assert int(triple.tail[1:]) in tails
            nearest = max(float(vectors[c] @ vectors[t]) for c in tails)
            assert float(vectors[int(triple.tail[1:])] @ vectors[t]) == pytest.approx(nearest, abs=1e-6)


def test_it_tells_the_score_and_the_texts_compared(completer):
    answer = completer.tails("Q12", "knows", k=1)[0]
    evidence = completer.evidence("Q12", "knows", answer.id)
    assert evidence.score == pytest.approx(answer.score, abs=1e-5)
    assert evidence.probability == pytest.approx(answer.probability, rel=1e-2)
    assert evidence.known == answer.known
    squeezed = evidence.query_text.replace(" ", "").replace("##", "")
    assert squeezed.startswith("[CLS]leonardodamila")
    assert squeezed.endswith("[SEP]knows[SEP]")
    assert evidence.entity_text.replace(" ", "").startswith("[CLS]" + answer.name.lower())


@pytest.mark.parametrize("asked", ["head", "relation", "tail"])
@pytest.mark.parametrize("end", ["Q12", NewEntity("bora", "a town", facts=(Role("near", "head", "Q3"),))])
def test_its_numbers_are_those_of_the_list_whichever_part_is_asked(completer, asked, end):
    triple = {"head": end, "relation": "near", "tail": "Q3"}
    if asked == "head":
        triple |= {"head": "Q3", "tail": end}
    answers = completer.ask([Question(**{part: ref for part, ref in triple.items() if part != asked}, k=60)])[0]
    assert len(answers) > 3
    for answer in [*answers[:3], *answers[-2:], *(a for a in answers if a.known)]:
        evidence = completer.evidence(**triple | {asked: answer.id}, k=1, asked=asked)
        assert evidence.score == pytest.approx(answer.score, abs=1e-5)
        assert answer.probability is not None
        assert evidence.probability == pytest.approx(answer.probability, rel=1e-3)
        assert (evidence.known, evidence.asked) == (answer.known, asked)


def test_the_texts_are_those_of_the_question_asked(completer):
    def texts(asked):
        found = completer.evidence("Q12", "knows", "Q41", k=1, asked=asked)
        return [text.replace(" ", "").replace("##", "") for text in (found.query_text, found.entity_text)]

    query, answer = texts("head")
    assert query.startswith("[CLS]" + completer.entity("Q41").name.lower())
    assert query.endswith("[SEP]inverseknows[SEP]")
    assert answer.startswith("[CLS]leonardodamila")
    assert texts("relation") == texts("tail")
    with pytest.raises(SatkgcError, match="asked is 'middle'; say head, relation or tail"):
        completer.evidence("Q12", "knows", "Q41", asked="middle")


def test_new_text_has_similar_triples_and_no_path(completer):
    evidence = completer.evidence(NewEntity("bora", "a town"), "near", NewEntity("mila"))
    assert evidence.path is None
    assert not evidence.known
    assert len(evidence.similar) == 5
    assert evidence.query_text.replace(" ", "").startswith("[CLS]bora:atown")


def test_facts_join_a_new_entity_to_the_graph(completer):
    """The oracle: networkx over the training graph with one more node."""
    kg, rng = completer.kg, np.random.default_rng(5)
    facts = (Role("near", "head", "Q3"), Role("knows", "tail", "Q8"), Role("born in", "head", "Q20"))
    new, graph = NewEntity("Nia", "a guest", facts=facts), as_networkx(kg)
    graph.add_edges_from(("new", int(fact.other[1:])) for fact in facts)
    lengths = set()
    for t in rng.choice(90, 30, replace=False).tolist():
        expected = nx.shortest_path_length(graph, "new", t) if nx.has_path(graph, "new", t) else None
        there = completer.evidence(new, "capital of", f"Q{t}", k=1).path
        back = completer.evidence(f"Q{t}", "capital of", new, k=1).path
        assert (there and len(there)) == (back and len(back)) == expected
        lengths.add(expected)
        if not there:
            continue
        assert (there[0].source, there[0].source_name, there[-1].target) == ("", "Nia", f"Q{t}")
        assert (back[0].source, back[-1].target, back[-1].target_name) == (f"Q{t}", "", "Nia")
        first = Role(there[0].relation_name, "head" if there[0].direction == "out" else "tail", there[0].target)
        last = Role(back[-1].relation_name, "tail" if back[-1].direction == "out" else "head", back[-1].source)
        assert {first, last} <= set(facts)
    assert len(lengths) > 2
    # The fact that is asked about is no evidence for itself.
    alone = NewEntity("Nia", facts=(Role("near", "head", "Q3"),))
    assert completer.evidence(alone, "near", "Q3", k=1).path is None
    assert completer.evidence("Q3", "near", alone, k=1).path is not None


def test_the_inference_split_is_evidence_and_shows_at_its_entities(tmp_path, tiny_backbone):
    whole = little_world()
    old = (whole.train[:, [0, 2]] < 60).all(1)
    new = (whole.train[:, [0, 2]] >= 60).all(1)
    kg = KnowledgeGraph.from_arrays(
        "two", whole.entities, whole.relations, whole.train[old], whole.valid[:9], inference=whole.train[new]
    )
    completer = Completer.load(write_run(tmp_path / "run", kg, tiny_backbone))
    graph = nx.MultiGraph((h, t) for h, _, t in kg.inference.tolist())
    lengths = set()
    for h, t in combinations(sorted(graph)[:12], 2):
        path = completer.evidence(f"Q{h}", "capital_of", f"Q{t}", k=1).path
        if graph.has_edge(h, t) or not nx.has_path(graph, h, t):
            continue
        assert len(path) == nx.shortest_path_length(graph, h, t)
        lengths.add(len(path))
    assert len(lengths) > 1
    shown = completer.entity(f"Q{h}")
    assert shown.degree == len(set(graph[h]))
    assert {neighbour.id for neighbour in shown.neighbours} == {f"Q{other}" for other in graph[h]}
