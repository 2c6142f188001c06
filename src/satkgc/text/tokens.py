"""Token sequences of different lengths, laid end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64, UInt8


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """n token sequences, special tokens included; sequence i is `ids[ptr[i]:ptr[i + 1]]`. No padding anywhere."""

    ids: Int32  # (T,)
    ptr: Int64  # (n + 1,)
    type_ids: UInt8 | None = None  # (T,) segment of each token, for the tokenizers that have segments

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> Int64:
        """Tokens of each sequence.  # (n,)"""
        return np.diff(self.ptr)

    def select(self, rows: Int32 | Int64 | Sequence[int]) -> TokenBatch:
        """The sequences at these rows, in this order, repeats allowed."""
        at = np.asarray(rows, np.int64)
        ptr, ids = _gather(at, self.ptr, self.ids)
        types = None if self.type_ids is None else _gather(at, self.ptr, self.type_ids)[1]
        return TokenBatch(ids, ptr, types)

    def unique(self) -> tuple[TokenBatch, Int64]:
        """The distinct sequences, by first appearance, and for each row which of them it is."""
        none = np.zeros(0, np.uint8)
        first, inverse = _distinct(self.ptr, self.ids, none if self.type_ids is None else self.type_ids)
        return (self if len(first) == len(self) else self.select(first)), inverse

    @staticmethod
    def concatenate(batches: Sequence[TokenBatch]) -> TokenBatch:
        """One batch after another."""
        ends = np.cumsum([0] + [len(batch.ids) for batch in batches])
        ptr = [batch.ptr[1:] + start for batch, start in zip(batches, ends, strict=False)]
        types = [batch.type_ids for batch in batches if batch.type_ids is not None]
        return TokenBatch(
            np.concatenate([batch.ids for batch in batches]),
            np.concatenate([np.zeros(1, np.int64), *ptr]),
            np.concatenate(types) if len(types) == len(batches) else None,
        )


@njit(cache=True, nogil=True)
def _gather(rows, ptr, values):  # type: ignore[no-untyped-def]
    new_ptr = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        new_ptr[i + 1] = new_ptr[i] + ptr[rows[i] + 1] - ptr[rows[i]]
    out = np.empty(new_ptr[-1], values.dtype)
    for i in range(len(rows)):
        start = ptr[rows[i]]
        for j in range(new_ptr[i + 1] - new_ptr[i]):
            out[new_ptr[i] + j] = values[start + j]
    return new_ptr, out


@njit(cache=True, nogil=True)
def _distinct(ptr, ids, types):  # type: ignore[no-untyped-def]
    """Rows that are the first of their kind, and for each row which of those it equals: an open hash table."""
    n = len(ptr) - 1
    size = 1
    while size < 2 * n + 1:
        size *= 2
    table = np.full(size, -1, np.int64)  # numbers of distinct rows
    first = np.empty(n, np.int64)
    inverse = np.empty(n, np.int64)
    found = 0
    for row in range(n):
        start, length = ptr[row], ptr[row + 1] - ptr[row]
        key = np.uint64(length)
        for j in range(length):
            key = (key ^ np.uint64(ids[start + j])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(size - 1))
        while table[slot] >= 0:
            other = ptr[first[table[slot]]]
            same = ptr[first[table[slot]] + 1] - other == length
            j = 0
            while same and j < length:
                same = ids[other + j] == ids[start + j] and (len(types) == 0 or types[other + j] == types[start + j])
                j += 1
            if same:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = found
            first[found] = row
            found += 1
        inverse[row] = table[slot]
    return first[:found].copy(), inverse
