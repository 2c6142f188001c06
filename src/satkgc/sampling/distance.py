"""Hops from the centre's head to the entities of a batch (Section 4.3)."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.bfs import search_graph

_MOST = np.iinfo(np.int32).max


class Distances:
    """Exact breadth-first distances in the undirected training graph."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        # Who was met by the search at hand: its marks lie above those of all searches before it (`base`), so that
        # none of them has to be wiped.
        self.mark: Int32 = np.zeros(kg.num_entities, np.int32)  # (E,)
        self.queue: Int32 = np.empty(kg.num_entities, np.int32)  # (E,)
        self.back = np.zeros(kg.num_entities, np.int64)  # (E,) likewise, for searches from the other side
        self.base = 1

    def hops(self, triples: Int32) -> Int32:
        """From the first triple's head to the tail of each sample, -1 where there is no path.  # (n,) -> (2n,)"""
        if self.base > _MOST - self.kg.num_entities - 2:
            self.mark[:] = 0
            self.back[:] = 0
            self.base = 1
        ends = np.ascontiguousarray(self.kg.train[triples][:, ::2])  # (n, 2)
        distances = np.empty(ends.shape, np.int32)
        graph = self.kg.adjacency
        arrays = graph.neighbour_ptr, graph.neighbours, self.mark, self.back, self.queue
        self.base = search_graph(ends, *arrays, self.base, distances)
        return distances.T[::-1].ravel()  # tails, then heads: those are the tails of the inverses
