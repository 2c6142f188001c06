"""What samplers visit, against plain counting and networkx."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from graphs import random_graph
from satkgc.analysis.options import Options
from satkgc.analysis.visits import (
    chart_extremes,
    chart_frequencies,
    chart_occurrences,
    chart_restart,
    frequency_by_degree,
    in_descending_order,
    measure_extremes,
)
from satkgc.kg import betweenness
from satkgc.models import EmbeddingConfig
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.training import Config, RunFolder

KG = random_graph(5, entities=70, triples=140)
GRAPH = nx.Graph([(h, t) for h, _, t in KG.train.tolist() if h != t])
GRAPH.add_nodes_from(range(70))
EVERYONE = np.arange(70, dtype=np.int32)
STEPS = 7


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that was not trained: batches are drawn from its settings."""
    sampling = SamplingConfig(batch_size=16, subgraph_triples=40)
    config = Config(model=EmbeddingConfig(), sampling=sampling)
    return {"run": RunFolder.create(tmp_path_factory.mktemp("runs") / "run", config, KG, "made up")}


def batches(sampler, restart=1 / 25):
    """The triples of each step, drawn anew."""
    config = SamplingConfig(batch_size=16, subgraph_triples=40, sampler=sampler, restart=restart)
    drawn = make_sampler(KG, config, 0)
    return [drawn.draw(step).triples.tolist() for step in range(STEPS)]


def test_betweenness_is_that_of_networkx():
    expected = nx.betweenness_centrality(GRAPH)
    np.testing.assert_allclose(betweenness(KG.adjacency, EVERYONE), [expected[e] for e in range(70)], atol=1e-12)


def test_betweenness_of_a_sample_of_sources_is_that_of_networkx_from_them():
    sources = EVERYONE[3::2]
    total = np.zeros(70)
    for source in sources.tolist():
        for target in nx.descendants(GRAPH, source):
            paths = list(nx.all_shortest_paths(GRAPH, source, target))
            for path in paths:
                total[path[1:-1]] += 1 / len(paths)
    np.testing.assert_allclose(betweenness(KG.adjacency, sources), total * 70 / len(sources) / (69 * 68), atol=1e-12)


def test_occurrences_of_every_sampler_are_counted(runs):
    triples, entities, skew = chart_occurrences(runs, Options(steps=STEPS))
    for name, sampler in (("RANDOM", "random"), ("RWR", "rwr"), ("BRWR_P", "brwr_p"), ("BRWR", "brwr")):
        drawn = batches(sampler)
        rows = Counter(row for batch in drawn for row in batch)
        ends = Counter(int(e) for batch in drawn for row in batch for e in KG.train[row, ::2])
        for chart, counts, size in ((triples, rows, len(KG.train)), (entities, ends, 70)):
            ordered = sorted(counts.values(), reverse=True) + [0] * (size - len(counts))
            assert chart.to_json()[name] == {group: ordered[int(group) - 1] for group in chart.groups}
            mean_difference = np.abs(np.subtract.outer(ordered, ordered)).mean()
            of = "triples" if chart is triples else "entities"
            assert skew.to_json()[name][of] == pytest.approx(mean_difference / 2 / np.mean(ordered))
        assert triples.groups[0] == "1"
        assert triples.groups[-1] == str(len(KG.train))


def test_a_curve_has_both_ends():
    assert in_descending_order(np.array([3, 9, 1])) == {"1": 9, "2": 3, "3": 1}


def test_frequencies_are_shares_by_degree():
    counts = np.random.default_rng(0).integers(0, 9, 70)
    order = sorted(range(70), key=lambda e: (len(set(KG.adjacency.neighbours_of(e).tolist())), e))
    means = frequency_by_degree(KG, counts)
    places = np.array_split(np.arange(70), len(means))
    for mean, part in zip(means, places, strict=True):
        assert mean == pytest.approx(np.mean([counts[order[place]] for place in part]) / counts.sum())
    assert sum(mean * len(part) for mean, part in zip(means, places, strict=True)) == pytest.approx(1)


def test_frequencies_of_the_graph_and_of_both_kinds_of_batches(runs):
    (chart,) = chart_frequencies(runs, Options(steps=STEPS))
    expected = {
        "graph": KG.train[:, ::2],
        "random batches": KG.train[np.ravel(batches("random"))][:, ::2],
        "SaaM batches": KG.train[np.ravel(batches("brwr"))][:, ::2],
    }
    for name, ends in expected.items():
        counts = np.bincount(ends.ravel(), minlength=70)
        np.testing.assert_allclose(chart.series[name], frequency_by_degree(KG, counts))
    assert list(chart.series) == list(expected)


def test_the_most_and_the_least_visited_by_brute_force():
    visits = np.random.default_rng(1).integers(0, 5, len(KG.train))
    found = measure_extremes(KG, visits, EVERYONE, most=10)
    central = nx.betweenness_centrality(GRAPH)
    for name, sign in (("most visited", -1), ("least visited", 1)):
        rows = sorted(range(len(visits)), key=lambda row: (sign * visits[row], row))[:10]
        members = {int(e) for row in rows for e in KG.train[row, ::2]}
        assert found["degree"][name] == pytest.approx(np.mean([KG.adjacency.degree[e] for e in members]))
        assert found["betweenness"][name] == pytest.approx(np.mean([central[e] for e in members]))


def test_extremes_and_duplicates_of_a_run(runs):
    degree, between = chart_extremes(runs, Options(steps=STEPS))
    visits = np.bincount(np.ravel(batches("brwr")), minlength=len(KG.train))
    expected = measure_extremes(KG, visits, EVERYONE)
    assert degree.to_json() == {"run": pytest.approx(expected["degree"])}
    assert between.to_json() == {"run": pytest.approx(expected["betweenness"])}
    (chart,) = chart_restart(runs, Options(steps=STEPS))
    for name, restart in (("1/100", 0.01), ("1/2", 0.5)):
        duplicates = [16 - len(set(KG.train[batch][:, ::2].ravel().tolist())) for batch in batches("brwr", restart)]
        assert chart.to_json()["run"][name] == pytest.approx(np.mean(duplicates))
