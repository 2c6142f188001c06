"""The SaaM schedule (Section 4.2): how often each training triple was visited, and which one was visited least."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.sampling.philox import CENTRE, below, seed_word, words


class Schedule:
    """Visit counts kept sorted, so that choosing and counting are O(1).

    `order` lists the triples by visits; those with c visits are `order[bounds[c]:bounds[c + 1]]`, in no particular
    order. One more visit swaps a triple with the last of its block and moves the border by one. 12 bytes a triple.
    """

    def __init__(self, num_triples: int, seed: int) -> None:
        self.seed = seed_word(seed)
        self.restore(np.zeros(num_triples, np.int32), np.arange(num_triples, dtype=np.int32))

    def restore(self, visits: Any, order: Any) -> None:
        """Take up saved `visits` and `order`; the rest follows from them."""
        self.visits: Int32 = np.array(visits, np.int32)  # (T,)
        self.order: Int32 = np.array(order, np.int32)  # (T,)
        self.place: Int32 = np.empty_like(self.order)  # (T,) order[place[t]] == t
        self.place[self.order] = np.arange(len(self.order), dtype=np.int32)
        counts = np.bincount(self.visits, minlength=1)
        self.bounds: Int64 = np.concatenate([[0], np.cumsum(counts)])
        self.least = int(self.visits.min(initial=0))
        if np.any(np.diff(self.visits[self.order]) < 0):
            raise SatkgcError("the saved order of the triples does not agree with their visit counts")

    def centre(self, step: int) -> int:
        """A least-visited triple, ties broken at random."""
        while self.bounds[self.least + 1] == 0:
            self.least += 1
        return int(_one_of(self.order, self.bounds[self.least + 1], self.seed, step))

    def visit(self, triples: Int32) -> None:
        """Count one visit of each of these distinct triples."""
        if self.bounds[-2] < len(self.visits):  # somebody is in the last block: there must be one after it
            grown = np.full(2 * len(self.bounds), len(self.visits), np.int64)
            grown[: len(self.bounds)] = self.bounds
            self.bounds = grown
        _visit(triples, self.visits, self.order, self.place, self.bounds)


@njit(cache=True, nogil=True)
def _one_of(order, count, seed, step):  # type: ignore[no-untyped-def]
    a, b, _, _ = words(seed, CENTRE, step, 0)
    return order[below(a, b, count)[0]]


@njit(cache=True, nogil=True)
def move(order, place, i, j):  # type: ignore[no-untyped-def]
    """Swap two places."""
    s, t = order[i], order[j]
    order[i], order[j] = t, s
    place[t], place[s] = i, j


@njit(cache=True, nogil=True)
def _visit(triples, visits, order, place, bounds):  # type: ignore[no-untyped-def]
    for t in triples:
        block = visits[t] + 1
        bounds[block] -= 1
        move(order, place, place[t], bounds[block])
        visits[t] = block
