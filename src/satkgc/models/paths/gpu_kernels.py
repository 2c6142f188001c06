"""Triton kernels of the path model: a program takes one node, or one chunk of edges, and a block of features.

Sums are added in an order that the edges alone decide, so that a result does not depend on timing. Lanes of a program
with few edges lie along the features, and have nothing to exchange. Programs of one block of features run together: its
rows of states, a few megabytes, then stay in the cache, and each is read from memory about once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from satkgc.models.paths.graph import Groups, MessageGraph

# Features of a program, at most; edges that it reads together; warps.
LIGHT = 512, 4, 2  # a node with few edges
HEAVY = 32, 64, 4  # one with many, whose programs would otherwise outlast all others
GROUP = 256, 4, 2  # a chunk of edges of one source or relation
ELEMENTS = 1024  # of a program that goes over all states one by one
NONE = tl.constexpr(2**30)


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    states, weights, source, relation, ptr, by_degree, keep, heads, queries, out, top, bottom,
    width, DIM: tl.constexpr, EPS: tl.constexpr, EDGES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    node = tl.load(by_degree + tl.program_id(0)).to(tl.int64)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < width
    question = feature // DIM
    own = tl.load(heads + question, mask=inside, other=-1) == node
    start = tl.load(queries + feature, mask=own, other=0.0).to(tl.float32)
    low, high = tl.load(ptr + node), tl.load(ptr + node + 1)
    lane = tl.arange(0, EDGES)
    total, squares, largest, smallest = start, start * start, start, start
    at_largest = tl.full((FEATURES,), -1, tl.int32)
    at_smallest = tl.full((FEATURES,), -1, tl.int32)
    count = 1.0
    for first in range(low, high, EDGES):
        edge = first + lane
        kept = tl.load(keep + edge, mask=edge < high, other=0).to(tl.int1)
        u = tl.load(source + edge, mask=kept, other=0).to(tl.int64)
        r = tl.load(relation + edge, mask=kept, other=0).to(tl.int64)
        both = kept[:, None] & inside[None, :]
        message = tl.load(states + u[:, None] * width + feature[None, :], mask=both, other=0.0).to(tl.float32)
        message *= tl.load(weights + r[:, None] * width + feature[None, :], mask=both, other=0.0).to(tl.float32)
        total += tl.sum(message, 0)
        squares += tl.sum(message * message, 0)
        count += tl.sum(kept.to(tl.float32), 0)
        place = (edge - low)[:, None]
        high_message = tl.where(both, message, float("-inf"))
        low_message = tl.where(both, message, float("inf"))
        highest = tl.max(high_message, 0)
        lowest = tl.min(low_message, 0)
        at_highest = tl.min(tl.where(high_message == highest[None, :], place, NONE), 0)
        at_lowest = tl.min(tl.where(low_message == lowest[None, :], place, NONE), 0)
        at_largest = tl.where(highest > largest, at_highest, at_largest)  # the first of equals; the start before all
        largest = tl.maximum(highest, largest)
        at_smallest = tl.where(lowest < smallest, at_lowest, at_smallest)
        smallest = tl.minimum(lowest, smallest)
    mean = total / count
    slot = out + node * 4 * width + question * (4 * DIM) + feature % DIM
    tl.store(slot, mean, mask=inside)
    tl.store(slot + DIM, tl.sqrt(tl.maximum(squares / count - mean * mean, EPS)), mask=inside)
    tl.store(slot + 2 * DIM, largest, mask=inside)
    tl.store(slot + 3 * DIM, smallest, mask=inside)
    tl.store(top + node * width + feature, at_largest, mask=inside)
    tl.store(bottom + node * width + feature, at_smallest, mask=inside)


@triton.jit
def _slopes(  # type: ignore[no-untyped-def]
    statistics, gradient, count, constant, slope, size, width,
    DIM: tl.constexpr, LEAST: tl.constexpr, ELEMENTS: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * ELEMENTS + tl.arange(0, ELEMENTS)
    inside = at < size
    slot = at // DIM * (4 * DIM) + at % DIM
    number = tl.load(count + at // width, mask=inside, other=1.0)
    mean = tl.load(statistics + slot, mask=inside, other=0.0).to(tl.float32)
    deviation = tl.load(statistics + slot + DIM, mask=inside, other=1.0).to(tl.float32)
    of_mean = tl.load(gradient + slot, mask=inside, other=0.0).to(tl.float32)
    of_deviation = tl.load(gradient + slot + DIM, mask=inside, other=0.0).to(tl.float32)
    steep = tl.where(deviation > LEAST, of_deviation / (deviation * number), 0.0)
    tl.store(slope + at, steep, mask=inside)
    tl.store(constant + at, of_mean / number - steep * mean, mask=inside)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    own, other, edge, target, partner, place, start, stop, owner, keep, constant, slope, gradient, top, bottom, out,
    width, DIM: tl.constexpr, EDGES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0).to(tl.int64)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = feature < width
    shift = feature // DIM * (4 * DIM) + feature % DIM  # of a feature within a node's statistics
    mine = tl.load(own + tl.load(owner + chunk).to(tl.int64) * width + feature, mask=inside, other=0.0).to(tl.float32)
    low, high = tl.load(start + chunk), tl.load(stop + chunk)
    lane = tl.arange(0, EDGES)
    total = tl.zeros((EDGES, FEATURES), tl.float32)
    for first in range(low, high, EDGES):
        slot = first + lane
        valid = slot < high
        kept = tl.load(keep + tl.load(edge + slot, mask=valid, other=0), mask=valid, other=0).to(tl.int1)
        v = tl.load(target + slot, mask=kept, other=0).to(tl.int64)
        p = tl.load(partner + slot, mask=kept, other=0).to(tl.int64)
        at = tl.load(place + slot, mask=kept, other=-2)[:, None]
        both = kept[:, None] & inside[None, :]
        yours = tl.load(other + p[:, None] * width + feature[None, :], mask=both, other=0.0).to(tl.float32)
        here = v[:, None] * width + feature[None, :]
        pull = tl.load(constant + here, mask=both, other=0.0).to(tl.float32)
        pull += tl.load(slope + here, mask=both, other=0.0).to(tl.float32) * mine[None, :] * yours
        statistic = gradient + v[:, None] * 4 * width + shift[None, :]
        is_top = both & (tl.load(top + here, mask=both, other=-1).to(tl.int32) == at)
        is_bottom = both & (tl.load(bottom + here, mask=both, other=-1).to(tl.int32) == at)
        pull += tl.load(statistic + 2 * DIM, mask=is_top, other=0.0).to(tl.float32)
        pull += tl.load(statistic + 3 * DIM, mask=is_bottom, other=0.0).to(tl.float32)
        total += pull * yours
    tl.store(out + chunk * width + feature, tl.sum(total, 0), mask=inside)


@triton.jit
def _normal(  # type: ignore[no-untyped-def]
    own, parts, scale, weight, bias, row, batch, rows, EPS: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """What `_update` normalises, and its weights; columns beyond DIM are zero."""
    column = tl.arange(0, WIDE)
    inside = (row < rows)[:, None] & (column < DIM)[None, :]
    at = row[:, None] * DIM + column[None, :]
    part = row[:, None] * (3 * DIM) + column[None, :]
    s = tl.load(scale + row // batch, mask=row < rows, other=1.0)[:, None]
    inverse = 1.0 / tl.maximum(s, 0.01)
    x = tl.load(own + at, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(parts + part, mask=inside, other=0.0).to(tl.float32)
    x += s * tl.load(parts + part + DIM, mask=inside, other=0.0).to(tl.float32)
    x += inverse * tl.load(parts + part + 2 * DIM, mask=inside, other=0.0).to(tl.float32)
    x = tl.where(inside, x - (tl.sum(x, 1) / DIM)[:, None], 0.0)
    rate = 1.0 / tl.sqrt(tl.sum(x * x, 1) / DIM + EPS)
    w = tl.load(weight + column, mask=column < DIM, other=0.0)[None, :]
    b = tl.load(bias + column, mask=column < DIM, other=0.0)[None, :]
    return x * rate[:, None], rate[:, None], w, b, s, inverse, inside, at, part


@triton.jit
def _update(  # type: ignore[no-untyped-def]
    states, own, parts, scale, weight, bias, out, batch, rows,
    EPS: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    x, _, w, b, _, _, inside, at, _ = _normal(own, parts, scale, weight, bias, row, batch, rows, EPS, DIM, WIDE)
    state = tl.load(states + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, state + tl.maximum(x * w + b, 0.0), mask=inside)


@triton.jit
def _update_backward(  # type: ignore[no-untyped-def]
    gradient, own, parts, scale, weight, bias, of_parts, of_weight, of_bias, batch, rows,
    EPS: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    total_weight = tl.zeros((WIDE,), tl.float32)
    total_bias = tl.zeros((WIDE,), tl.float32)
    for block in range(BLOCKS):
        row = (tl.program_id(0).to(tl.int64) * BLOCKS + block) * ROWS + tl.arange(0, ROWS)
        x, rate, w, b, s, inverse, inside, at, part = _normal(
            own, parts, scale, weight, bias, row, batch, rows, EPS, DIM, WIDE
        )
        g = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
        g = tl.where(x * w + b > 0, g, 0.0)
        total_weight += tl.sum(g * x, 0)
        total_bias += tl.sum(g, 0)
        g = g * w
        g = rate * (g - (tl.sum(g, 1) / DIM)[:, None] - x * (tl.sum(g * x, 1) / DIM)[:, None])
        tl.store(of_parts + part, g, mask=inside)
        tl.store(of_parts + part + DIM, g * s, mask=inside)
        tl.store(of_parts + part + 2 * DIM, g * inverse, mask=inside)
    column = tl.arange(0, WIDE)
    tl.store(of_weight + tl.program_id(0) * DIM + column, total_weight, mask=column < DIM)
    tl.store(of_bias + tl.program_id(0) * DIM + column, total_bias, mask=column < DIM)


def forward(
    states: Tensor, weights: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Statistics (N, B, 4, D), and the places of the edges with the largest and the smallest message, -1: the start."""
    nodes, batch, dim = states.shape
    width = batch * dim
    out = states.new_empty(nodes, batch, 4, dim)
    top, bottom = (torch.empty_like(states, dtype=graph.place_dtype) for _ in range(2))
    for by_degree, (most, edges, warps) in (
        (graph.by_degree[: graph.num_hubs], HEAVY),
        (graph.by_degree[graph.num_hubs :], LIGHT),
    ):
        features = _features(width, most)
        if len(by_degree):
            _forward[(len(by_degree), triton.cdiv(width, features))](
                states, weights, graph.source, graph.relation, graph.ptr, by_degree, graph.keep, heads, queries,
                out, top, bottom, width, dim, eps, edges, features, num_warps=warps,
            )  # fmt: skip
    return out, top, bottom


def slopes(statistics: Tensor, gradient: Tensor, count: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """∂/∂m of mean and deviation together, by node and feature: constant + slope · m.  # (N, B, D) each"""
    nodes, batch, _, dim = statistics.shape
    constant, slope = (statistics.new_empty(nodes, batch, dim) for _ in range(2))
    _slopes[(triton.cdiv(constant.numel(), ELEMENTS),)](
        statistics, gradient, count, constant, slope, constant.numel(), batch * dim, dim, least, ELEMENTS
    )
    return constant, slope


def backward(
    own: Tensor, other: Tensor, groups: Groups, keep: Tensor,
    constant: Tensor, slope: Tensor, gradient: Tensor, top: Tensor, bottom: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of the groups' rows, summed over each chunk.  # (C, B, D) float32"""
    chunks, (_, batch, dim) = len(groups.start), own.shape
    width = batch * dim
    out = own.new_empty(chunks, batch, dim, dtype=torch.float32)
    most, edges, warps = GROUP
    features = _features(width, most)
    if chunks:
        _backward[(chunks, triton.cdiv(width, features))](
            own, other, groups.edge, groups.target, groups.other, groups.place, groups.start, groups.stop,
            groups.owner, keep, constant, slope, gradient, top, bottom, out,
            width, dim, edges, features, num_warps=warps,
        )  # fmt: skip
    return out


class Update(torch.autograd.Function):
    """`update_plain` of paths/update.py in one kernel each way: nothing is kept but its input."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, own: Tensor, parts: Tensor, scale: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> Tensor:
        batch, dim = states.shape[1:]
        rows, wide, tall = states.shape[0] * batch, triton.next_power_of_2(dim), _rows(dim)
        states, own, parts = states.contiguous(), own.contiguous(), parts.contiguous()
        out = torch.empty_like(states)
        _update[(triton.cdiv(rows, tall),)](
            states, own, parts, scale, weight, bias, out, batch, rows, eps, dim, wide, tall
        )
        ctx.save_for_backward(own, parts, scale, weight, bias)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        own, parts, scale, weight, bias = ctx.saved_tensors
        gradient, (nodes, batch, dim), blocks = gradient.contiguous(), own.shape, 16
        rows, wide, tall = nodes * batch, triton.next_power_of_2(dim), _rows(dim)
        programs = triton.cdiv(rows, tall * blocks)
        of_parts = torch.empty_like(parts)
        of_weight, of_bias = weight.new_empty(2, programs, dim)
        _update_backward[(programs,)](
            gradient, own, parts, scale, weight, bias, of_parts, of_weight, of_bias, batch, rows,
            ctx.eps, dim, wide, tall, blocks,
        )  # fmt: skip
        return gradient, of_parts[:, :, 0], of_parts, None, of_weight.sum(0), of_bias.sum(0), None


def _features(width: int, most: int) -> int:
    return min(most, max(32, triton.next_power_of_2(width)))


def _rows(dim: int) -> int:
    """Rows of states that make a tile."""
    return max(1, ELEMENTS // triton.next_power_of_2(dim))
