"""The graph as a walker sees it: one record for each way from an entity to a neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.kg import Adjacency

# The columns of a record.
THRESHOLD, ALIAS, FIRST, DEGREE, TRIPLE = range(5)
PARALLEL = 0xFFFFFFFF  # instead of a triple: there are several, look them up


def moves(adjacency: Adjacency, power: int) -> Any:
    """A record per neighbour slot, from which the next neighbour is drawn with weight |N(v)|^power.  # (D, 5) uint32

    THRESHOLD and ALIAS are an alias table (Walker 1977, built as by Vose 1991) over the slots of each entity: a slot
    drawn uniformly stands unless a 32-bit coin reaches its threshold, and then gives way to its alias. So a draw is
    O(1) at any degree. FIRST and DEGREE are the slots of the neighbour, TRIPLE what joins the two. With all of it in
    one place a step of the walk waits for memory once or twice, not six times. 20 bytes a slot, linear to build.
    """
    # Allocated by numpy, which asks for huge pages: a walk jumps about, and would wait for the page table as well.
    table = np.empty((len(adjacency.neighbours), 5), np.uint32)
    graph = adjacency.neighbour_ptr, adjacency.neighbours, adjacency.edge_ptr, adjacency.edges
    _build(*graph, adjacency.degree, power, table)
    return table


@njit(cache=True, nogil=True)
def _build(ptr, neighbours, edge_ptr, edges, degree, power, table):  # type: ignore[no-untyped-def]
    for slot in range(len(neighbours)):
        v = neighbours[slot]
        table[slot, FIRST] = np.uint32(ptr[v])
        table[slot, DEGREE] = np.uint32(degree[v])
        single = edge_ptr[slot + 1] - edge_ptr[slot] == 1
        table[slot, TRIPLE] = np.uint32(edges[edge_ptr[slot]]) if single else np.uint32(PARALLEL)

    widest = 1
    for u in range(len(ptr) - 1):
        widest = max(widest, ptr[u + 1] - ptr[u])
    share = np.empty(widest)  # the weight of a slot in units of the mean weight
    work = np.empty(widest, np.int64)  # slots below the mean from the left, the others from the right
    for u in range(len(ptr) - 1):
        first, n = ptr[u], ptr[u + 1] - ptr[u]
        total = 0.0
        for j in range(n):
            share[j] = float(degree[neighbours[first + j]]) ** power
            total += share[j]
        small, large = 0, n
        for j in range(n):
            share[j] *= n / total
            table[first + j, THRESHOLD] = np.uint32(0xFFFFFFFF)  # stands as it is unless said otherwise below
            table[first + j, ALIAS] = np.uint32(first + j)
            if share[j] < 1.0:
                work[small] = j
                small += 1
            else:
                large -= 1
                work[large] = j
        while small > 0 and large < n:
            small -= 1
            poor, rich = work[small], work[large]
            table[first + poor, THRESHOLD] = np.uint32(share[poor] * 4294967296.0)
            table[first + poor, ALIAS] = np.uint32(first + rich)
            share[rich] -= 1.0 - share[poor]
            if share[rich] < 1.0:
                large += 1
                work[small] = rich
                small += 1
