"""Attention over packed short texts in one Triton kernel each way: nothing is padded, copied or kept but its input.

A program takes one head of one text after another. A whole text fits one tile, so the softmax needs no running
maximum, and the backward pass computes it again instead of having it stored. MPNet's position bias is read once a
program, its gradient summed in registers over the program's texts, then over programs in a fixed order: the result
does not depend on timing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

from satkgc.models.text.transformer import threshold

PROGRAMS = 1056  # eight for each multiprocessor of a large GPU
WARPS, STAGES = 4, 2


@triton.jit
def _kept(seed, place, threshold):  # type: ignore[no-untyped-def]
    """Whether dropout keeps an element: the hash of `transformer.scramble`."""
    x = (place ^ seed) * -1640531535
    x = ((x ^ (x >> 15)) + seed) * 0x7FEB352D
    return (x ^ (x >> 15)) * -2073254261 >= threshold


@triton.jit
def _probabilities(q, k, bias, keys_inside, scale, precision: tl.constexpr):  # type: ignore[no-untyped-def]
    # Scores are logarithms to the base of two, as the bias is, since powers of two are what a GPU computes.
    scores = tl.dot(q, tl.trans(k), input_precision=precision) * (scale * 1.4426950408889634) + bias
    scores = tl.where(keys_inside, scores, float("-inf"))
    weights = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return weights * (1.0 / tl.sum(weights, 1))[:, None]


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    qkv, starts, bias, seed, out, texts,
    scale: tl.constexpr, threshold: tl.constexpr, keep: tl.constexpr,
    heads: tl.constexpr, size: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    row, column = tl.arange(0, TILE), tl.arange(0, WIDE)
    square = row[:, None] * TILE + row[None, :]
    at = row[:, None] * (3 * heads * size) + column[None, :]  # places within a text, in qkv and in its output
    place = row[:, None] * (heads * size) + column[None, :]
    position = tl.zeros((TILE, TILE), tl.float32)
    if HAS_BIAS:
        position = tl.load(bias + head * TILE * TILE + square).to(tl.float32) * 1.4426950408889634
    if DROPOUT:
        stream = tl.load(seed)
    for text in range(tl.program_id(0), texts, tl.num_programs(0)):
        start = tl.load(starts + text).to(tl.int64)
        length = (tl.load(starts + text + 1) - start).to(tl.int32)
        inside = row[:, None] < length
        if size != WIDE:
            inside = inside & (column[None, :] < size)
        source = qkv + start * (3 * heads * size) + head * size
        q = tl.load(source + at, mask=inside, other=0.0)
        k = tl.load(source + heads * size + at, mask=inside, other=0.0)
        v = tl.load(source + 2 * heads * size + at, mask=inside, other=0.0)
        p = _probabilities(q, k, position, row[None, :] < length, scale, PRECISION)
        if DROPOUT:
            kept = _kept(stream, (text * heads + head) * TILE * TILE + square, threshold)
            p = tl.where(kept, p * keep, 0.0)
        o = tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        tl.store(out + start * (heads * size) + head * size + place, o.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    qkv, starts, bias, seed, grad, dqkv, dbias, texts,
    scale: tl.constexpr, threshold: tl.constexpr, keep: tl.constexpr,
    heads: tl.constexpr, size: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
    HAS_BIAS: tl.constexpr, DROPOUT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    row, column = tl.arange(0, TILE), tl.arange(0, WIDE)
    square = row[:, None] * TILE + row[None, :]
    at = row[:, None] * (3 * heads * size) + column[None, :]  # places within a text, in qkv and in its output
    place = row[:, None] * (heads * size) + column[None, :]
    position = tl.zeros((TILE, TILE), tl.float32)
    if HAS_BIAS:
        position = tl.load(bias + head * TILE * TILE + square).to(tl.float32) * 1.4426950408889634
    if DROPOUT:
        stream = tl.load(seed)
    dposition = tl.zeros((TILE, TILE), tl.float32)
    for text in range(tl.program_id(0), texts, tl.num_programs(0)):
        start = tl.load(starts + text).to(tl.int64)
        length = (tl.load(starts + text + 1) - start).to(tl.int32)
        inside = row[:, None] < length
        if size != WIDE:
            inside = inside & (column[None, :] < size)
        source = qkv + start * (3 * heads * size) + head * size
        q = tl.load(source + at, mask=inside, other=0.0)
        k = tl.load(source + heads * size + at, mask=inside, other=0.0)
        v = tl.load(source + 2 * heads * size + at, mask=inside, other=0.0)
        do = tl.load(grad + start * (heads * size) + head * size + place, mask=inside, other=0.0)
        p = _probabilities(q, k, position, row[None, :] < length, scale, PRECISION)
        dp = tl.dot(do, tl.trans(v), input_precision=PRECISION)
        dropped = p
        if DROPOUT:
            kept = _kept(stream, (text * heads + head) * TILE * TILE + square, threshold)
            dropped = tl.where(kept, p * keep, 0.0)
            dp = tl.where(kept, dp * keep, 0.0)
        dv = tl.dot(tl.trans(dropped.to(do.dtype)), do, input_precision=PRECISION)
        ds = p * (dp - tl.sum(p * dp, 1)[:, None])  # the softmax's gradient; zero outside the text
        if HAS_BIAS:
            dposition += ds
        ds = (ds * scale).to(q.dtype)
        dq = tl.dot(ds, k, input_precision=PRECISION)
        dk = tl.dot(tl.trans(ds), q, input_precision=PRECISION)
        target = dqkv + start * (3 * heads * size) + head * size
        tl.store(target + at, dq.to(dqkv.dtype.element_ty), mask=inside)
        tl.store(target + heads * size + at, dk.to(dqkv.dtype.element_ty), mask=inside)
        tl.store(target + 2 * heads * size + at, dv.to(dqkv.dtype.element_ty), mask=inside)
    if HAS_BIAS:
        tl.store(dbias + (tl.program_id(0) * heads + head) * TILE * TILE + square, dposition)


def tile(width: int) -> int:
    """The tile that holds texts of up to `width` tokens; the bias must be this wide and high."""
    return max(16, triton.next_power_of_2(width))


def _settings(qkv: Tensor, bias: Tensor | None, heads: int, width: int, dropout: float) -> dict[str, object]:
    size = qkv.shape[1] // 3 // heads
    return {
        "scale": size**-0.5,
        "threshold": threshold(dropout),
        "keep": 1 / (1 - dropout),
        "heads": heads,
        "size": size,
        "TILE": width,
        "WIDE": max(16, triton.next_power_of_2(size)),
        "HAS_BIAS": bias is not None,
        "DROPOUT": dropout > 0,
        "PRECISION": "ieee" if qkv.dtype == torch.float32 else "tf32",  # bfloat16 products are exact either way
        "num_warps": WARPS if width <= 64 else 8,
        "num_stages": STAGES,
    }


@triton_op("satkgc::packed_attention", mutates_args=())
def packed_attention(
    qkv: Tensor, starts: Tensor, bias: Tensor | None, seed: Tensor, heads: int, width: int, dropout: float
) -> Tensor:
    """(T, 3 * dim) queries, keys and values of packed texts → (T, dim); `bias` is (heads, width, width) float32,
    `width` what `tile` gives for the longest text."""
    texts = starts.shape[0] - 1
    out = qkv.new_empty(qkv.shape[0], qkv.shape[1] // 3)
    grid = (min(texts, max(1, PROGRAMS // heads)), heads)
    wrap_triton(_forward)[grid](qkv, starts, bias, seed, out, texts, **_settings(qkv, bias, heads, width, dropout))
    return out


@triton_op("satkgc::packed_attention_backward", mutates_args=())
def packed_attention_backward(
    grad: Tensor, qkv: Tensor, starts: Tensor, bias: Tensor | None, seed: Tensor, heads: int, width: int, dropout: float
) -> tuple[Tensor, Tensor]:
    """Gradients of `packed_attention` by qkv and, where there is one, by the bias."""
    texts = starts.shape[0] - 1
    groups = min(texts, max(1, PROGRAMS // heads))
    dqkv = torch.empty_like(qkv)
    side = width if bias is not None else 0
    dbias = qkv.new_empty((groups, heads, side, side), dtype=torch.float32)
    settings = _settings(qkv, bias, heads, width, dropout)
    wrap_triton(_backward)[(groups, heads)](qkv, starts, bias, seed, grad.contiguous(), dqkv, dbias, texts, **settings)
    return dqkv, dbias.sum(0)


def _save(ctx, inputs, output):  # type: ignore[no-untyped-def]
    qkv, starts, bias, seed, ctx.heads, ctx.width, ctx.dropout = inputs
    ctx.save_for_backward(qkv, starts, bias, seed)


def _gradients(ctx, grad):  # type: ignore[no-untyped-def]
    qkv, starts, bias, seed = ctx.saved_tensors
    settings = (ctx.heads, ctx.width, ctx.dropout)
    dqkv, dbias = packed_attention_backward(grad, qkv, starts, bias, seed, *settings)
    return dqkv, None, None if bias is None else dbias, None, None, None, None


packed_attention.register_autograd(_gradients, setup_context=_save)
