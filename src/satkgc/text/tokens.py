"""Token sequences of different lengths, laid end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from satkgc.kg.adjacency import Int64
from satkgc.kg.vocabulary import Int32

UInt8 = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


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
        parts = [self.ids.astype(np.int32, copy=False)] + ([] if self.type_ids is None else [self.type_ids])
        seen: dict[tuple[bytes, ...], int] = {}
        first: list[int] = []
        inverse = np.empty(len(self), np.int64)
        for row in range(len(self)):
            key = tuple(part[self.ptr[row] : self.ptr[row + 1]].tobytes() for part in parts)
            inverse[row] = seen.setdefault(key, len(seen))
            if len(seen) > len(first):
                first.append(row)
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
