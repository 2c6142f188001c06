"""What two entities have in common in the graph: the same relation to the same neighbour, which counts more the rarer
it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from satkgc.arrays import Float32, Float64, Int32, Int64
from satkgc.kg import SPLITS, KnowledgeGraph, RelationLogic


class NeighbourTable:
    """Of every entity its links, each a directed relation and the entity across, with how rare it is.

    What is said twice, by a symmetric relation or an inverse one, is one link. One that k of E entities have weighs
    log(E / k) / log(E): 0 if all have it, nearly 1 if two have it.
    """

    def __init__(self, kg: KnowledgeGraph, logic: Sequence[RelationLogic] = ()) -> None:
        self._size, self._relations = kg.num_entities, kg.num_relations
        triples = np.concatenate([kg.split(split) for split in SPLITS]).astype(np.int64)
        heads, relations, tails = triples.T
        entities = np.concatenate([heads, tails])
        directed = _one_way(self._relations, logic)[np.concatenate([relations, relations + self._relations])]
        links = directed * self._size + np.concatenate([tails, heads])
        order = np.lexsort((links, entities))
        entities, links = entities[order], links[order]
        first = np.append(True, (np.diff(entities) != 0) | (np.diff(links) != 0))[: len(links)]
        self.entities: Int32 = entities[first].astype(np.int32)
        self.links: Int64 = links[first]
        self.ptr: Int64 = np.searchsorted(self.entities, np.arange(self._size + 1))
        _, place, counts = np.unique(self.links, return_inverse=True, return_counts=True)
        weights = np.log(self._size / counts) / np.log(max(2, self._size))
        self.weights: Float64 = weights[place].reshape(-1)

    def similarity(self, pairs: Int32) -> Float32:
        """From 0 to 1: the share of the links of the one with fewer that both have, by weight, times S / (1 + S), S
        being the weight of all that both have: one link in common says less than three.  # (n, 2) → (n,)"""
        return _similarity(pairs, self.ptr, self.links, self.weights)

    def shared(self, a: int, b: int) -> list[tuple[int, int]]:
        """Directed relations and entities across that both have, the rarest first."""
        own = slice(self.ptr[a], self.ptr[a + 1])
        both = np.isin(self.links[own], self.links[self.ptr[b] : self.ptr[b + 1]])
        links, weights = self.links[own][both], self.weights[own][both]
        return [divmod(link, self._size) for link in links[np.argsort(-weights, kind="stable")].tolist()]


def _one_way(size: int, logic: Sequence[RelationLogic]) -> Int64:
    """For each directed relation the one that stands for all that say the same.  # (2R,)"""
    result = np.arange(2 * size)
    for r, one in enumerate(logic):
        other = r if one.symmetric else one.inverse
        if other is not None:
            result[r] = result[other + size] = min(r, other + size)
            result[r + size] = result[other] = min(other, r + size)
    return result


@njit(cache=True, nogil=True)
def _similarity(pairs, ptr, links, weights):  # type: ignore[no-untyped-def]
    result = np.zeros(len(pairs), np.float32)
    for row in range(len(pairs)):
        i, j = ptr[pairs[row, 0]], ptr[pairs[row, 1]]
        last_i, last_j = ptr[pairs[row, 0] + 1], ptr[pairs[row, 1] + 1]
        own, other, both = weights[i:last_i].sum(), weights[j:last_j].sum(), 0.0
        while i < last_i and j < last_j:
            if links[i] == links[j]:
                both += weights[i]
                i += 1
                j += 1
            elif links[i] < links[j]:
                i += 1
            else:
                j += 1
        if both > 0:
            result[row] = both / min(own, other) * both / (1 + both)
    return result
