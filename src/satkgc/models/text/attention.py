"""How packed texts attend: a fused kernel on a GPU, else torch's own on a table, the one place that is padded."""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from satkgc.models.text.architecture import position_bias
from satkgc.models.text.packed import Packed

LONGEST = 128  # tokens of a text: the largest tile whose backward pass fits a GPU's registers


class Attention(NamedTuple):
    """What the layers of one forward need to attend; made once, shared by all of them."""

    heads: int
    dropout: float  # 0 outside training
    width: int  # of the table, or of the fused kernel's tile
    fused: bool
    bias: (
        Tensor | None
    )  # table: (m, 1 or heads, 1 or L, L), what is added to scores; fused: (heads, tile, tile) or None
    slots: Tensor  # (T,)
    starts: Tensor  # (m + 1,)


def plan_attention(batch: Packed, model: Any, dropout: float, dtype: torch.dtype, kernel: str) -> Attention:
    """Choose the kernel, and lay out the position bias for it."""
    heads = model.config.num_attention_heads
    if kernel == "auto" and batch.width <= LONGEST and fused_here(batch.ids.device):
        from satkgc.models.text.fused_attention import tile  # also registers the operator that `attend` calls

        width = tile(batch.width)
        bias = position_bias(model, width)
        bias = None if bias is None else bias.float().contiguous()
        return Attention(heads, dropout, width, True, bias, batch.slots, batch.starts)
    mask = _mask(batch, position_bias(model, batch.width), dtype)
    return Attention(heads, dropout, batch.width, False, mask, batch.slots, batch.starts)


def fused_here(device: torch.device) -> bool:
    """Whether the fused kernel runs on this device."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def attend(qkv: Tensor, how: Attention, seed: Tensor) -> Tensor:
    """(T, 3 * dim) queries, keys and values → (T, dim), each text attending to itself alone."""
    if how.fused:
        kernel = torch.ops.satkgc.packed_attention
        out: Tensor = kernel(qkv, how.starts, how.bias, seed, how.heads, how.width, how.dropout)
        return out
    texts, dim = len(how.starts) - 1, qkv.shape[1] // 3
    table = qkv.new_zeros(texts * how.width, 3 * dim).index_copy(0, how.slots, qkv)
    split = table.view(texts, how.width, 3, how.heads, dim // how.heads)
    q, k, v = split.permute(2, 0, 3, 1, 4)  # each (m, heads, L, dim / heads)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=how.bias, dropout_p=how.dropout)
    return out.transpose(1, 2).reshape(texts * how.width, dim).index_select(0, how.slots)


def _mask(batch: Packed, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """What is added to the scores: minus infinity past a text's end, plus the position bias; once for all layers."""
    lengths = batch.starts.diff()
    inside = torch.arange(batch.width, device=lengths.device) < lengths[:, None]  # (m, L)
    if bias is None:
        return inside[:, None, None, :]  # (m, 1, 1, L) bool
    outside = torch.zeros(inside.shape, dtype=dtype, device=lengths.device).masked_fill(~inside, float("-inf"))
    return bias.to(dtype) + outside[:, None, None, :]  # (m, heads, L, L)
