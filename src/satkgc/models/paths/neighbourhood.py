"""The part of a large graph that a question is answered from: the entities nearest to it by personalised PageRank."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg import Adjacency

RESTART = 0.15
PRECISION = 0.1  # mass left at an entity when it is not passed on any more, in shares of an equal part


def neighbourhood(adjacency: Adjacency, entity: int, size: int) -> Int32:
    """At most `size` entities, ascending: the entity itself, and where walks from it that restart are most often.

    Approximate, by forward push (Andersen et al., 2006): the cost depends on `size`, not on the graph.
    """
    mass = _push(adjacency.neighbour_ptr, adjacency.neighbours, entity, RESTART, PRECISION / size)
    nodes = np.array(list(mass[0]), np.int32)
    order = np.lexsort((nodes, -np.array(list(mass[1]))))[:size]
    return np.union1d(nodes[order], [entity]).astype(np.int32)


def triples_within(adjacency: Adjacency, triples: Int32, nodes: Int32) -> Int32:
    """The triples with both ends among ascending nodes, renumbered to their places.  # (n, 3)"""
    rows = _rows_within(adjacency.neighbour_ptr, adjacency.neighbours, adjacency.edge_ptr, adjacency.edges, nodes)
    inside = triples[rows].copy()
    inside[:, [0, 2]] = np.searchsorted(nodes, inside[:, [0, 2]])
    return inside


@njit(cache=True, nogil=True)
def _push(ptr, neighbours, entity, restart, least):  # type: ignore[no-untyped-def]
    slot = {np.int64(entity): 0}
    nodes = [np.int64(entity)]
    mass = [0.0]
    residue = [1.0]
    queue = [0]
    first = 0
    while first < len(queue):
        at = queue[first]
        first += 1
        node, rest = nodes[at], residue[at]
        degree = ptr[node + 1] - ptr[node]
        residue[at] = 0.0
        mass[at] += restart * rest if degree else rest
        if degree == 0:
            continue
        share = (1 - restart) * rest / degree
        for j in range(ptr[node], ptr[node + 1]):
            other = np.int64(neighbours[j])
            if other not in slot:
                slot[other] = len(nodes)
                nodes.append(other)
                mass.append(0.0)
                residue.append(0.0)
            to = slot[other]
            bound = least * max(1, ptr[other + 1] - ptr[other])
            if residue[to] < bound <= residue[to] + share:
                queue.append(to)
            residue[to] += share
    for at in range(len(nodes)):
        mass[at] += restart * residue[at]
    return nodes, mass


@njit(cache=True, nogil=True)
def _rows_within(ptr, neighbours, edge_ptr, edges, nodes):  # type: ignore[no-untyped-def]
    slots = [0 for _ in range(0)]  # of pairs of neighbours, each once
    for node in nodes:
        low, high = ptr[node], ptr[node + 1]
        if high - low <= len(nodes):
            for j in range(low, high):
                at = np.searchsorted(nodes, neighbours[j])
                if neighbours[j] >= node and at < len(nodes) and nodes[at] == neighbours[j]:
                    slots.append(j)
        else:  # a hub may have more neighbours than there are nodes
            for other in nodes:
                j = low + np.searchsorted(neighbours[low:high], other)
                if other >= node and j < high and neighbours[j] == other:
                    slots.append(j)
    total = 0
    for j in slots:
        total += edge_ptr[j + 1] - edge_ptr[j]
    rows = np.empty(total, np.int32)
    at = 0
    for j in slots:
        for e in range(edge_ptr[j], edge_ptr[j + 1]):
            rows[at] = edges[e]
            at += 1
    return np.sort(rows)
