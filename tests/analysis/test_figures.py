"""The paper's figures against brute force: networkx distances and plain counting."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from graphs import random_graph
from satkgc.analysis.distance_similarity import distance_similarity
from satkgc.analysis.false_positives import false_positives
from satkgc.analysis.fp_by_degree import fp_by_degree
from satkgc.analysis.fp_by_distance import fp_by_distance
from satkgc.analysis.hops import choose_sources, hops_from
from satkgc.analysis.plots import draw, wrong_answers
from satkgc.evaluation.questions import Questions
from satkgc.models.text import EncoderConfig, Towers
from satkgc.training import Config, Run

KG = random_graph(5, entities=70, triples=90)
GRAPH = nx.Graph(KG.train[:, [0, 2]].tolist())
GRAPH.add_nodes_from(range(70))
HOPS = dict(nx.all_pairs_shortest_path_length(GRAPH))
RNG = np.random.default_rng(6)
VECTORS = RNG.normal(size=(70, 8)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


QUESTIONS = Questions.of(KG, KG.train[:50], "tail", np.arange(70, dtype=np.int32))
QUERIES = VECTORS[RNG.integers(0, 70, 50)]
FOUND = list(false_positives(QUESTIONS, QUERIES, VECTORS))


def test_false_positives_are_the_better_ones_that_are_no_answers():
    assert len(FOUND) == 50
    scores = QUERIES.astype(np.float64) @ VECTORS.T.astype(np.float64)
    for place, (asked, wrong) in enumerate(FOUND):
        assert asked == QUESTIONS.entities[place]
        true = set(QUESTIONS.known.of(place).tolist())
        own = scores[place, QUESTIONS.answers[place]]
        assert wrong.tolist() == [e for e in range(70) if scores[place, e] > own and e not in true]
    assert any(len(wrong) > 5 for _, wrong in FOUND)


def test_a_run_has_as_many_as_its_ranks_say(tiny_backbone, tmp_path):
    config = Config(encoder=EncoderConfig(backbone=str(tiny_backbone)))
    run = Run.create(tmp_path, config, KG, "made up")
    Towers.create(config.encoder).save(tmp_path / "model")
    kg, found = wrong_answers(tmp_path, "train", "cpu")
    found = list(found)
    ranks = run.evaluate("train").ranks
    assert [len(wrong) for _, wrong in found] == [*ranks["head"].greater, *ranks["tail"].greater]
    assert [asked for asked, _ in found] == [*kg.train[:, 2], *kg.train[:, 0]]


def test_hops_are_those_of_networkx():
    hops = hops_from(KG.adjacency, np.array([3, 0, 69], np.int32))
    for row, source in zip(hops, (3, 0, 69), strict=True):
        assert row.tolist() == [HOPS[source].get(e, -1) for e in range(70)]
    assert (hops == -1).any()


def test_figure_1_by_brute_force():
    bars = fp_by_distance(KG, FOUND)
    for distance in range(1, len(bars.pairs) + 1):
        pairs = sum(HOPS[a].get(b) == distance for a, b in combinations(range(70), 2))
        wrong = sum(HOPS[asked].get(int(e)) == distance for asked, entities in FOUND for e in entities)
        assert bars.pairs[distance - 1] == pairs
        assert bars.false_positives[distance - 1] == wrong
        assert bars.ratio[distance - 1] == pytest.approx(wrong / pairs)
    assert bars.groups[:2] == ["1", "2"]


def test_figure_1_from_a_sample_of_sources_is_near():
    exact, sampled = fp_by_distance(KG, FOUND), fp_by_distance(KG, FOUND, sources=60)
    assert (exact.pairs[:4] != sampled.pairs[:4]).any()
    np.testing.assert_allclose(sampled.pairs[:4], exact.pairs[:4], rtol=0.3)


def test_figure_2_by_brute_force():
    bars = fp_by_degree(KG, FOUND)
    degree = {e: len(set(GRAPH[e])) for e in range(70)}
    distinct = sorted(set(degree.values()))
    assert [d for low, high in bars.bounds for d in distinct if low <= d <= high] == distinct
    sizes = [sum(low <= d <= high for d in distinct) for low, high in bars.bounds]
    assert max(sizes) - min(sizes) <= 1
    for place, (low, high) in enumerate(bars.bounds):
        inside = {e for e in degree if low <= degree[e] <= high}
        wrong = sum(int(e) in inside for _, entities in FOUND for e in entities)
        assert bars.ratio[place] == pytest.approx(wrong / 50 / len(inside))


def test_similarity_by_distance_by_brute_force():
    means = distance_similarity(KG, VECTORS, most=8)
    for distance, mean in enumerate(means, 1):
        cosines = [VECTORS[a] @ VECTORS[b] for a, b in combinations(range(70), 2) if HOPS[a].get(b) == distance]
        assert (mean == pytest.approx(np.mean(cosines), abs=1e-6)) if cosines else np.isnan(mean)


def test_sources_are_all_or_a_seeded_sample():
    assert choose_sources(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert choose_sources(500, 10, seed=1).tolist() == choose_sources(500, 10, seed=1).tolist()
    assert len(set(choose_sources(500, 10).tolist())) == 10


def test_a_picture_is_drawn_for_runs_of_different_lengths(tmp_path):
    short, long = fp_by_degree(KG, FOUND), fp_by_distance(KG, FOUND)
    draw({"one": short, "two": long}, "distance", tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("module", ["fp_by_distance", "distance_similarity"])
def test_a_folder_without_a_run_is_one_line(module, tmp_path):
    command = [sys.executable, "-m", f"satkgc.analysis.{module}", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path}: no run here")
    assert done.stderr.count("\n") == 1
