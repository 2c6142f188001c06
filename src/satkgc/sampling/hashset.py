"""A small set of whole numbers inside compiled code: linear probing, no removal, sized by what a batch can hold."""

from __future__ import annotations

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def new_set(capacity):  # type: ignore[no-untyped-def]
    """An empty set for up to `capacity` numbers, at most half full."""
    size = 16
    while size < 2 * capacity:
        size *= 2
    return np.full(size, -1, np.int32)


@njit(cache=True, nogil=True)
def _slot(table, number):  # type: ignore[no-untyped-def]
    """Where the number is, or the free slot where it would go."""
    mask = len(table) - 1
    at = np.int64((np.uint64(number) * _GOLDEN) >> np.uint64(32)) & mask
    while table[at] != -1 and table[at] != number:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def insert(table, number):  # type: ignore[no-untyped-def]
    """Add a number >= 0; True if it was new."""
    at = _slot(table, number)
    new = table[at] == -1
    table[at] = number
    return new


@njit(cache=True, nogil=True)
def contains(table, number):  # type: ignore[no-untyped-def]
    """Whether the number was added."""
    return table[_slot(table, number)] == number
