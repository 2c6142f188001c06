"""Neighbourhoods against networkx, and their effect on ranks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from array_model import ArrayModel, random_model
from by_hand import counts_of, split_graph

from satkgc.evaluation import EvaluationConfig, evaluate
from satkgc.evaluation.rerank import neighbourhood_bonus


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_neighbourhoods_are_those_of_networkx(hops):
    kg = split_graph(3, entities=60, triples=130)
    graph = nx.Graph(kg.train[:, [0, 2]].tolist())
    graph.add_nodes_from(range(60))
    sources = np.array([5, 7, 5, *range(60)], np.int32)
    members = neighbourhood_bonus(kg.adjacency, sources, hops, 0.1).members
    for place, entity in enumerate(sources):
        expected = nx.single_source_shortest_path_length(graph, int(entity), cutoff=hops)
        assert members.of(place).tolist() == sorted(expected)


def test_a_bonus_beyond_all_cosines_puts_neighbours_first():
    kg = split_graph(4)
    unit = random_model(kg, 5)
    short = np.float32(0.3)  # cosines within ±0.09
    model = ArrayModel(kg, short * unit.entities, short * unit.queries)
    for candidates in ("all", "split"):
        plain_config = EvaluationConfig(candidates=candidates)
        report = evaluate(model, kg, "test", plain_config.replace(rerank_hops=1, rerank_weight=0.9))
        plain = evaluate(model, kg, "test", plain_config)
        for direction, source, answer in (("head", 2, 0), ("tail", 0, 2)):
            for place, row in enumerate(kg.test):
                near = {*kg.adjacency.neighbours_of(row[source]).tolist(), int(row[source])}
                rank = report.ranks[direction].rank()[place]
                assert (rank <= len(near)) if row[answer] in near else (rank >= plain.ranks[direction].rank()[place])
        assert report.to_json()["rerank"] == {"hops": 1, "weight": 0.9}
        assert "RE-RANKED" in str(report)
        assert plain.to_json()["rerank"] is None
        assert (counts_of(report.ranks["head"])[:, 2] == counts_of(plain.ranks["head"])[:, 2]).all()
