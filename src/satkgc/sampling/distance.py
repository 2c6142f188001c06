"""Hops from the centre's head to the entities of a batch (Section 4.3)."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.batch import Batch
from satkgc.sampling.bfs import all_pairs, search_edges, search_graph
from satkgc.sampling.config import DistanceScope

_MOST = np.iinfo(np.int32).max


class Distances:
    """Breadth-first distances in the undirected training graph, as far as `scope` asks.

    "graph": exact, searching from both sides until every entity of the batch was met. "subgraph": over the triples of
    the walked subgraph and of the batch alone, so never shorter than the truth, in time that cannot grow with the
    graph. "pairs": exact, and besides the hops between every head and every tail of the batch. "none": all -1, for an
    objective without proximity.
    """

    def __init__(self, kg: KnowledgeGraph, scope: DistanceScope) -> None:
        self.kg = kg
        self.scope = scope
        # Who was met by the search at hand: its marks lie above those of all searches before it (`base`), so that
        # none of them has to be wiped.
        self.mark: Int32 = np.zeros(kg.num_entities if scope != "none" else 0, np.int32)  # (E,)
        whole = kg.num_entities if scope in ("graph", "pairs") else 0
        self.queue: Int32 = np.empty(whole, np.int32)  # (E,)
        self.back = np.zeros(whole, np.int64)  # (E,) likewise, for searches from the other side
        self.base = 1

    def batch(self, step: int, triples: Int32, subgraph: Int32) -> Batch:
        """The batch of these triples, the first of which is the centre, with its distances."""
        distances = np.full((len(triples), 2), -1, np.int32)
        if self.scope == "none":
            return Batch(step, int(triples[0]), triples, distances)
        ends = self._ends(triples)
        if self.base > _MOST - self.kg.num_entities - 2:
            self.mark[:] = 0
            self.back[:] = 0
            self.base = 1
        if self.scope == "subgraph":
            edges = np.concatenate([ends, self._ends(subgraph)])
            self.base = search_edges(ends, edges, self.mark, self.base, distances)
        else:
            graph = self.kg.adjacency
            arrays = graph.neighbour_ptr, graph.neighbours, self.mark, self.back, self.queue
            self.base = search_graph(ends, *arrays, self.base, distances)
        pairs = self._pairs(ends) if self.scope == "pairs" else None
        return Batch(step, int(triples[0]), triples, distances, pairs)

    def _ends(self, triples: Int32) -> Int32:
        """Head and tail of each triple.  # (n, 2)"""
        return np.ascontiguousarray(self.kg.train[triples][:, ::2])

    def _pairs(self, ends: Int32) -> Int32:
        """Hops from sample i's head to sample j's tail.  # (2n, 2n)"""
        graph = self.kg.adjacency
        heads, tails = ends.T.ravel(), ends[:, ::-1].T.ravel()  # (2n,) each: sample n + i is triple i turned round
        entities, number = np.unique(np.concatenate([heads, tails]), return_inverse=True)
        hops = all_pairs(entities, graph.neighbour_ptr, graph.neighbours)  # (U, U)
        return hops[np.ix_(number[: len(heads)], number[len(heads) :])]
