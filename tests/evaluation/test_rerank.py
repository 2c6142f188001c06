"""Neighbourhoods against networkx, and their effect on ranks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from by_hand import counts_of, split_graph, unit_vectors

from satkgc.evaluation import EvaluationConfig, evaluate_with
from satkgc.evaluation.rerank import neighbourhood_bonus


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_neighbourhoods_are_those_of_networkx(hops):
    kg = split_graph(3, entities=60, triples=130)
    graph = nx.Graph(kg.train[:, [0, 2]].tolist())
    graph.add_nodes_from(range(60))
    asked = np.array([5, 7, 5, *range(60)], np.int32)
    members = neighbourhood_bonus(kg.adjacency, asked, hops, 0.1).members
    for place, entity in enumerate(asked):
        wanted = nx.single_source_shortest_path_length(graph, int(entity), cutoff=hops)
        assert members.of(place).tolist() == sorted(wanted)


def test_a_bonus_beyond_all_cosines_puts_neighbours_first():
    kg = split_graph(4)
    rng = np.random.default_rng(5)
    entities = unit_vectors(rng, kg.num_entities, 8) * np.float32(0.3)  # cosines within ±0.09
    queries = unit_vectors(rng, kg.num_entities * 2 * kg.num_relations, 8).reshape(kg.num_entities, -1, 8)
    queries *= np.float32(0.3)
    for candidates in ("all", "split"):
        config = EvaluationConfig(candidates, rerank_hops=1, rerank_weight=0.9)
        report = evaluate_with(lambda e: entities[e], lambda e, d: queries[e, d], kg, "test", config)
        plain = evaluate_with(
            lambda e: entities[e], lambda e, d: queries[e, d], kg, "test", EvaluationConfig(candidates)
        )
        for direction, asked, answer in (("head", 2, 0), ("tail", 0, 2)):
            for place, row in enumerate(kg.test):
                near = {*kg.adjacency.neighbours_of(row[asked]).tolist(), int(row[asked])}
                rank = report.ranks[direction].rank()[place]
                assert (rank <= len(near)) if row[answer] in near else (rank >= plain.ranks[direction].rank()[place])
        assert report.to_json()["rerank"] == {"hops": 1, "weight": 0.9}
        assert "RE-RANKED" in str(report)
        assert plain.to_json()["rerank"] is None
        assert (counts_of(report.ranks["head"])[:, 2] == counts_of(plain.ranks["head"])[:, 2]).all()
