"""The analyses of the paper against brute force: networkx distances and plain counting."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from graphs import random_graph
from satkgc.analysis import analyse
from satkgc.analysis.false_positives import count_by_degree, count_by_distance, find_false_positives
from satkgc.analysis.similarity import choose_sources, similarity_by_distance
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.models import EncoderConfig, TextModel, TextModelConfig

KG = random_graph(5, entities=70, triples=90)
GRAPH = nx.Graph(KG.train[:, [0, 2]].tolist())
GRAPH.add_nodes_from(range(70))
HOPS = dict(nx.all_pairs_shortest_path_length(GRAPH))
RNG = np.random.default_rng(6)
VECTORS = RNG.normal(size=(70, 8)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
SCORES = RNG.integers(-9, 10, (70, 2 * KG.num_relations, 70))  # of every (entity, directed relation, entity)


class TableModel:
    """Answers questions from a table of scores."""

    def score(self, questions, candidates=None):
        return SCORES[questions.entities, questions.relations]


FALSE_POSITIVES = list(find_false_positives(TableModel(), KG, "train"))


def test_false_positives_are_the_better_ones_that_are_no_answers():
    triples = KG.train.tolist()
    questions = [(t, r + KG.num_relations, h) for h, r, t in triples] + [(h, r, t) for h, r, t in triples]
    known = set(questions)
    better = []
    for entity, relation, answer in questions:
        row = SCORES[entity, relation]
        better.append((entity, [e for e in range(70) if row[e] > row[answer] and (entity, relation, e) not in known]))
    assert sorted((entity, wrong.tolist()) for entity, wrong in FALSE_POSITIVES) == sorted(better)
    assert any(len(wrong) > 5 for _, wrong in FALSE_POSITIVES)


def test_a_text_model_has_as_many_as_its_ranks_say(tiny_backbone):
    model = TextModel(KG, TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone))))
    wrong = list(find_false_positives(model, KG, "train"))
    ranks = evaluate(model, KG, "train").ranks
    assert [len(entities) for _, entities in wrong] == [*ranks["head"].greater, *ranks["tail"].greater]
    assert [entity for entity, _ in wrong] == [*KG.train[:, 2], *KG.train[:, 0]]


def test_figure_1_by_brute_force():
    bars = count_by_distance(KG, FALSE_POSITIVES)
    for distance in range(1, len(bars.pairs) + 1):
        pairs = sum(HOPS[a].get(b) == distance for a, b in combinations(range(70), 2))
        wrong = sum(HOPS[entity].get(int(e)) == distance for entity, entities in FALSE_POSITIVES for e in entities)
        assert bars.pairs[distance - 1] == pairs
        assert bars.false_positives[distance - 1] == wrong
        assert bars.values[distance - 1] == pytest.approx(wrong / pairs)
    assert bars.groups[:2] == ["1", "2"]


def test_figure_1_from_a_sample_of_sources_is_near():
    exact, sampled = count_by_distance(KG, FALSE_POSITIVES), count_by_distance(KG, FALSE_POSITIVES, sources=60)
    assert (exact.pairs[:4] != sampled.pairs[:4]).any()
    np.testing.assert_allclose(sampled.pairs[:4], exact.pairs[:4], rtol=0.3)


def test_figure_2_by_brute_force():
    bars = count_by_degree(KG, FALSE_POSITIVES)
    degree = {e: len(set(GRAPH[e])) for e in range(70)}
    distinct = sorted(set(degree.values()))
    assert [d for low, high in bars.bounds for d in distinct if low <= d <= high] == distinct
    sizes = [sum(low <= d <= high for d in distinct) for low, high in bars.bounds]
    assert max(sizes) - min(sizes) <= 1
    for place, (low, high) in enumerate(bars.bounds):
        inside = {e for e in degree if low <= degree[e] <= high}
        wrong = sum(int(e) in inside for _, entities in FALSE_POSITIVES for e in entities)
        assert bars.values[place] == pytest.approx(wrong / len(FALSE_POSITIVES) / len(inside))
    degrees = [degree[int(e)] for _, entities in FALSE_POSITIVES for e in entities]
    assert bars.mean_degree == pytest.approx(np.mean(degrees))


def test_similarity_by_distance_by_brute_force():
    for distance, mean in enumerate(similarity_by_distance(KG, VECTORS, most=60), 1):
        cosines = [VECTORS[a] @ VECTORS[b] for a, b in combinations(range(70), 2) if HOPS[a].get(b) == distance]
        assert (mean == pytest.approx(np.mean(cosines), abs=1e-6)) if cosines else np.isnan(mean)


def test_sources_are_all_or_a_seeded_sample():
    assert choose_sources(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert choose_sources(500, 10, seed=1).tolist() == choose_sources(500, 10, seed=1).tolist()
    assert len(set(choose_sources(500, 10).tolist())) == 10


def test_an_unknown_analysis_is_refused_in_one_line():
    with pytest.raises(SatkgcError, match="did you mean false-positives-by-degree"):
        analyse("false-positive-by-degree", {})
    with pytest.raises(SatkgcError, match="there are false-positives-by-distance, false-positives-by-degree, false"):
        analyse("x", {})
