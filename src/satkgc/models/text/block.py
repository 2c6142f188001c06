"""One post-norm transformer layer over packed tokens, the unit that torch.compile sees."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from satkgc.models.text.architecture import LayerWeights
from satkgc.models.text.attention import Attention, attend


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
    inner = gelu(functional.linear(x, w.up.to(x.dtype), w.up_bias.to(x.dtype)))
    inner = functional.linear(inner, w.down.to(x.dtype), w.down_bias.to(x.dtype))
    return _add_norm(x, inner, w.norm2, w.norm2_bias, eps, dropout, seed[1])


def _add_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, eps: float, dropout: float, seed: Tensor) -> Tensor:
    total = x.float() + drop(y.float(), dropout, seed)
    return functional.layer_norm(total, (x.shape[-1],), weight, bias, eps).to(x.dtype)


def gelu(x: Tensor) -> Tensor:
    """GELU. Compiled, by a formula for the normal distribution that costs less than the library's error function."""
    if not torch.compiler.is_compiling():
        return functional.gelu(x)
    out: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
    return out


class _Gelu(torch.autograd.Function):
    """x Φ(x), whose gradient is Φ(x) + x φ(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x.float() * _normal(x.float())[1]).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        density, below = _normal(x.float())
        return (grad.float() * (below + x.float() * density)).to(x.dtype)


def _normal(x: Tensor) -> tuple[Tensor, Tensor]:
    """φ and Φ. Φ is the sigmoid of an odd polynomial, fitted so that x Φ is within 3e-5 of GELU and its gradient within
    1.2e-4, far below what bfloat16 can tell apart; in powers of two and roots, for which GPUs have instructions."""
    square = (x * x).clamp(max=36.0)
    root = torch.rsqrt(1 + torch.exp2(x * ((1.01426909e-3 * square - 0.106775763) * square - 2.30112130)))
    below = root * root
    slope = (-3.51518882e-3 * square + 0.222033958) * square + 1.59501574  # of the polynomial, in powers of e
    return below * (1 - below) * slope, below


def drop(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Dropout. Compiled, the mask is a hash of seed and place: it fuses, is recomputed rather than kept for the
    backward pass, and comes out the same with and without gradients, which gradient caching rests on."""
    if p == 0:
        return x
    if not torch.compiler.is_compiling():
        return functional.dropout(x, p)
    place = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    return torch.where(scramble(place, seed) >= threshold(p), x / (1 - p), 0.0)


def scramble(place: Tensor, seed: Tensor) -> Tensor:
    """A number for each int32, all equally frequent; products wrap. It is cheap, as a step takes 10^10 of them."""
    # The seed comes first: a product of a place alone is index arithmetic to the compiler, which overflows it.
    x = (place ^ seed) * -1640531535  # 2^32 / golden ratio, odd
    x = (x ^ (x >> 15)) + seed  # again, or near seeds would give each other's numbers in another order
    x = x * 0x7FEB352D
    return (x ^ (x >> 15)) * -2073254261


def threshold(p: float) -> int:
    """A share p of the numbers that `scramble` gives are smaller."""
    return int(p * 2**32) - 2**31
