"""Candidates without comparing all pairs: entities that share something rare, and neighbours in an order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64

SAME_NAME = 50  # entities of one name that are all compared with each other
RARE = 20  # entities that share an n-gram or a neighbour
RAREST = 5  # n-grams of a name by which candidates are found
WINDOW = 3  # entities after an entity in the order of names


def pairs_of_groups(keys: Int64, entities: Int32, most: int) -> Int32:
    """All pairs of entities that have a key in common which at most so many have.  # (m,), (m,) → (n, 2)"""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0)) if len(keys) else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, len(keys)))
    kept = (sizes >= 2) & (sizes <= most)
    return _pairs(entities[order], starts[kept], sizes[kept])


def rarest(keys: Int64, entities: Int32, count: int) -> tuple[Int64, Int32]:
    """Of each entity the keys that the fewest others have, but some have."""
    _, place, frequency = np.unique(keys, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(frequency[place] > 1)
    rows = rows[np.lexsort((keys[rows], frequency[place[rows]], entities[rows]))]
    own = entities[rows]
    first = np.searchsorted(own, own)  # where its entity begins
    rows = rows[np.arange(len(rows)) - first < count]
    return keys[rows], entities[rows]


def pairs_in_order(texts: Sequence[str]) -> Int32:
    """Pairs that are near each other when texts are sorted, from their beginnings and from their ends."""
    named = [i for i, text in enumerate(texts) if text]
    parts = [np.empty((0, 2), np.int32)]
    for key in (lambda i: texts[i], lambda i: texts[i][::-1]):
        order = np.array(sorted(named, key=key), np.int32)
        parts += [np.stack([order[:-step], order[step:]], 1) for step in range(1, WINDOW + 1) if len(order) > step]
    return np.concatenate(parts)


def distinct(parts: Sequence[Int32], num_entities: int) -> Int32:
    """Each pair once, the lower entity first.  # (n, 2)"""
    pairs = np.sort(np.concatenate([np.empty((0, 2), np.int32), *parts]), axis=1).astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.stack(np.divmod(np.unique(pairs[:, 0] * num_entities + pairs[:, 1]), num_entities), 1).astype(np.int32)


@njit(cache=True, nogil=True)
def _pairs(entities, starts, sizes):  # type: ignore[no-untyped-def]
    result = np.empty((int((sizes * (sizes - 1) // 2).sum()), 2), np.int32)
    row = 0
    for group in range(len(starts)):
        for i in range(starts[group], starts[group] + sizes[group]):
            for j in range(i + 1, starts[group] + sizes[group]):
                result[row, 0], result[row, 1] = entities[i], entities[j]
                row += 1
    return result
