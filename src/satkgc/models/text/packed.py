"""A batch of texts as the packed forward wants it: tokens end to end, and where each of them belongs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from satkgc.text import TokenBatch


@dataclass(frozen=True, eq=False)
class Packed:
    """Tensors made from a TokenBatch, on the prefetch thread, so that the GPU only ever waits for a copy.

    The number of tokens may be rounded up by made-up texts after the real ones, which keeps the shapes that kernels
    see few; nothing reads their vectors, so they have no gradient.
    """

    ids: Tensor  # (T,) int64
    positions: Tensor  # (T,) int64 place within the text
    types: Tensor | None  # (T,) int64 segment
    starts: Tensor  # (m + 1,) int32 first token of each text, made-up ones included
    slots: Tensor  # (T,) int64 row * width + place: where a token stands in an (m, width) table
    count: int  # n real texts, the first of the m
    width: int  # of that table: the longest text, or a little more
    tokens: int  # real tokens

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, batch: TokenBatch, round_tokens: int = 1, round_width: int = 1) -> Packed:
        """Work out places and slots; the tokens, made-up ones included, and the width are multiples as asked for."""
        longest = int(batch.lengths.max(initial=1))
        width = -(-longest // round_width) * round_width
        ids, positions, slots, starts = _plan(batch.ids, batch.ptr, -len(batch.ids) % round_tokens, longest, width)
        types = None
        if batch.type_ids is not None:
            types = torch.zeros(len(ids), dtype=torch.int64)
            types[: len(batch.type_ids)] = torch.from_numpy(batch.type_ids)
        tensors = (torch.from_numpy(array) for array in (ids, positions, starts, slots))
        ids, positions, starts, slots = tensors
        return cls(ids, positions, types, starts, slots, len(batch), width, len(batch.ids))

    def pin(self) -> Packed:
        """The same in page-locked memory, from where copies to a GPU need not wait."""
        return self._each(lambda tensor: tensor.pin_memory())

    def to(self, device: Any, non_blocking: bool = False) -> Packed:
        """The same on a device."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def _each(self, change: Any) -> Packed:
        values = (getattr(self, field.name) for field in fields(self))
        return Packed(*(change(value) if isinstance(value, Tensor) else value for value in values))


@njit(cache=True, nogil=True)
def _plan(ids, ptr, extra, longest, width):  # type: ignore[no-untyped-def]
    real = len(ids)
    made_up = -(-extra // longest)
    n = len(ptr) - 1
    starts = np.empty(n + made_up + 1, np.int32)
    for i in range(n + 1):  # loops: slices would compile what they say of unequal shapes, which takes 2 s
        starts[i] = ptr[i]
    for i in range(made_up):
        starts[n + 1 + i] = min(real + (i + 1) * longest, real + extra)
    out = np.zeros(real + extra, np.int64)
    for i in range(real):
        out[i] = ids[i]
    positions = np.empty(real + extra, np.int64)
    slots = np.empty(real + extra, np.int64)
    for row in range(n + made_up):
        for at in range(starts[row], starts[row + 1]):
            positions[at] = at - starts[row]
            slots[at] = row * width + positions[at]
    return out, positions, slots, starts
