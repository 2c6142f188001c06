"""From a text's token vectors to one vector of length one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from satkgc.models.text.config import Pooling
from satkgc.models.text.packed import Packed


def pool_packed(hidden: Tensor, batch: Packed, pooling: Pooling) -> Tensor:
    """(T, dim) packed token vectors → (n, dim), float32, normalised."""
    starts = batch.starts[: batch.count + 1].long()
    if pooling == "cls":
        pooled = hidden.index_select(0, starts[:-1]).float()
    else:
        real = hidden[: batch.tokens].float()  # without the made-up texts
        pooled = torch.segment_reduce(real, pooling, offsets=starts, axis=0, unsafe=True)
    return functional.normalize(pooled, dim=-1)


def pool_padded(hidden: Tensor, inside: Tensor, pooling: Pooling) -> Tensor:
    """(n, L, dim) padded token vectors and an (n, L) mask → (n, dim), float32, normalised."""
    hidden, inside = hidden.float(), inside[:, :, None]
    if pooling == "cls":
        pooled = hidden[:, 0]
    elif pooling == "max":
        pooled = hidden.masked_fill(~inside, -torch.inf).amax(1)
    else:
        pooled = (hidden * inside).sum(1) / inside.sum(1)
    return functional.normalize(pooled, dim=-1)
