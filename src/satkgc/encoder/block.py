"""One post-norm transformer layer over packed tokens, the unit that torch.compile sees."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from satkgc.encoder.architecture import LayerWeights
from satkgc.encoder.attention import Attention, attend


def block(
    x: Tensor,  # (T, dim)
    weights: LayerWeights,
    how: Attention,
    eps: float,
    dropout: float,  # 0 outside training
    seed: Tensor,  # (3,) int32: one stream of dropout masks each
) -> Tensor:
    """Attention and feed-forward, each with dropout, residual and layer norm, in x's precision."""
    w = weights
    qkv_weight = torch.cat([w.query, w.key, w.value]).to(x.dtype)
    qkv_bias = torch.cat([w.query_bias, w.key_bias, w.value_bias]).to(x.dtype)
    attended = attend(functional.linear(x, qkv_weight, qkv_bias), how, seed[2])
    attended = functional.linear(attended, w.out.to(x.dtype), w.out_bias.to(x.dtype))
    x = _add_norm(x, attended, w.norm1, w.norm1_bias, eps, dropout, seed[0])
    inner = functional.gelu(functional.linear(x, w.up.to(x.dtype), w.up_bias.to(x.dtype)))
    inner = functional.linear(inner, w.down.to(x.dtype), w.down_bias.to(x.dtype))
    return _add_norm(x, inner, w.norm2, w.norm2_bias, eps, dropout, seed[1])


def _add_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, eps: float, dropout: float, seed: Tensor) -> Tensor:
    total = x.float() + drop(y.float(), dropout, seed)
    return functional.layer_norm(total, (x.shape[-1],), weight, bias, eps).to(x.dtype)


def drop(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Dropout. Compiled, the mask is a hash of seed and place: it fuses, is recomputed rather than kept for the
    backward pass, and comes out the same with and without gradients, which gradient caching rests on."""
    if p == 0:
        return x
    if not torch.compiler.is_compiling():
        return functional.dropout(x, p)
    place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    return torch.where(scramble(place, seed) >= _threshold(p), x / (1 - p), 0.0)


def scramble(place: Tensor, seed: Tensor) -> Tensor:
    """A well-mixed number in [0, 2^31) for each int32; multiplications wrap, right shifts bring in zeros."""
    # The seed comes first: a product of a place alone is index arithmetic to the compiler, which overflows it.
    x = (place ^ seed) * -1640531535  # 2^32 / golden ratio, odd
    x = x ^ ((x >> 16) & 0xFFFF)
    x = (x + seed) * 0x7FEB352D  # again, or near seeds would give each other's numbers in another order
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = x * -2073254261
    x = x ^ ((x >> 16) & 0xFFFF)
    return x & 0x7FFFFFFF


def _threshold(p: float) -> int:
    return int(p * 2**31)
