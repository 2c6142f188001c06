"""Alias tables (Walker 1977, built as by Vose 1991): a neighbour by a power of its degree, O(1) at any degree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.kg import Adjacency


def alias_tables(adjacency: Adjacency, power: int) -> Any:
    """One table an entity, laid over its neighbour slots: weight |N(v)|^power.  # (D, 2) uint32

    Row j holds a threshold on a 32-bit coin and the slot, counted from the entity's first, that the draw goes to
    when the coin is not below it. Eight bytes a slot, linear to build.
    """
    return _build(adjacency.neighbour_ptr, adjacency.neighbours, adjacency.degree, float(power))


@njit(cache=True, nogil=True)
def _build(ptr, neighbours, degree, power):  # type: ignore[no-untyped-def]
    table = np.empty((len(neighbours), 2), np.uint32)
    widest = 1
    for u in range(len(ptr) - 1):
        widest = max(widest, ptr[u + 1] - ptr[u])
    share = np.empty(widest)  # the weight of a slot in units of the mean weight
    work = np.empty(widest, np.int64)  # slots below the mean from the left, those above it from the right
    for u in range(len(ptr) - 1):
        first, n = ptr[u], ptr[u + 1] - ptr[u]
        total = 0.0
        for j in range(n):
            share[j] = float(degree[neighbours[first + j]]) ** power
            total += share[j]
        small, large = 0, n
        for j in range(n):
            share[j] *= n / total
            if share[j] < 1.0:
                work[small] = j
                small += 1
            else:
                large -= 1
                work[large] = j
        while small > 0 and large < n:
            small -= 1
            poor, rich = work[small], work[large]
            table[first + poor, 0] = np.uint32(share[poor] * 4294967296.0)
            table[first + poor, 1] = np.uint32(rich)
            share[rich] -= 1.0 - share[poor]
            if share[rich] < 1.0:
                large += 1
                work[small] = rich
                small += 1
        for i in range(small):  # left over by rounding: exactly one mean weight
            table[first + work[i], 0], table[first + work[i], 1] = np.uint32(0xFFFFFFFF), np.uint32(work[i])
        for i in range(large, n):
            table[first + work[i], 0], table[first + work[i], 1] = np.uint32(0xFFFFFFFF), np.uint32(work[i])
    return table
