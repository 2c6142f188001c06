"""Triton kernels of `aggregate`: a program takes one node, or one chunk of edges, and a block of features.

Sums are kept for each lane of a tile of edges × features and added up at the end, always in the same order, so that a
result does not depend on timing. Node and feature programs are ordered so that those of one block of features run
together: its rows of states, a few megabytes, then stay in the cache, and each is read from memory once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from satkgc.models.paths.graph import Groups, MessageGraph

FEATURES = 64  # of a tile
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
    total = tl.zeros((EDGES, FEATURES), tl.float32)
    squares = tl.zeros((EDGES, FEATURES), tl.float32)
    count = tl.zeros((EDGES,), tl.float32)
    largest = tl.full((EDGES, FEATURES), float("-inf"), tl.float32)
    smallest = tl.full((EDGES, FEATURES), float("inf"), tl.float32)
    at_largest = tl.full((EDGES, FEATURES), NONE, tl.int32)
    at_smallest = tl.full((EDGES, FEATURES), NONE, tl.int32)
    for first in range(low, high, EDGES):
        edge = first + lane
        kept = tl.load(keep + edge, mask=edge < high, other=0).to(tl.int1)
        u = tl.load(source + edge, mask=kept, other=0).to(tl.int64)
        r = tl.load(relation + edge, mask=kept, other=0).to(tl.int64)
        both = kept[:, None] & inside[None, :]
        message = tl.load(states + u[:, None] * width + feature[None, :], mask=both, other=0.0).to(tl.float32)
        message *= tl.load(weights + r[:, None] * width + feature[None, :], mask=both, other=0.0).to(tl.float32)
        total += message
        squares += message * message
        count += kept.to(tl.float32)
        place = (edge - low)[:, None]
        larger = both & (message > largest)
        smaller = both & (message < smallest)
        largest = tl.where(larger, message, largest)
        at_largest = tl.where(larger, place, at_largest)
        smallest = tl.where(smaller, message, smallest)
        at_smallest = tl.where(smaller, place, at_smallest)
    number = tl.sum(count, 0) + 1.0
    mean = (tl.sum(total, 0) + start) / number
    variance = (tl.sum(squares, 0) + start * start) / number - mean * mean
    highest = tl.max(largest, 0)
    lowest = tl.min(smallest, 0)
    at_highest = tl.min(tl.where(largest == highest[None, :], at_largest, NONE), 0)
    at_lowest = tl.min(tl.where(smallest == lowest[None, :], at_smallest, NONE), 0)
    at_highest = tl.where(highest > start, at_highest, -1)  # the start comes before all edges
    at_lowest = tl.where(lowest < start, at_lowest, -1)
    slot = out + node * 4 * width + question * (4 * DIM) + feature % DIM
    tl.store(slot, mean, mask=inside)
    tl.store(slot + DIM, tl.sqrt(tl.maximum(variance, EPS)), mask=inside)
    tl.store(slot + 2 * DIM, tl.maximum(highest, start), mask=inside)
    tl.store(slot + 3 * DIM, tl.minimum(lowest, start), mask=inside)
    tl.store(top + node * width + feature, at_highest, mask=inside)
    tl.store(bottom + node * width + feature, at_lowest, mask=inside)


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


def forward(
    states: Tensor, weights: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Statistics (N, B, 4, D), and the places of the edges with the largest and the smallest message, -1: the start."""
    nodes, batch, dim = states.shape
    width = batch * dim
    out = states.new_empty(nodes, batch, 4, dim)
    top, bottom = (torch.empty_like(states, dtype=graph.place_dtype) for _ in range(2))
    if nodes:
        _forward[(nodes, triton.cdiv(width, FEATURES))](
            states, weights, graph.source, graph.relation, graph.ptr, graph.by_degree, graph.keep, heads, queries,
            out, top, bottom, width, dim, eps, _tile(len(graph.source), nodes), FEATURES,
        )  # fmt: skip
    return out, top, bottom


def backward(
    own: Tensor, other: Tensor, groups: Groups, keep: Tensor,
    constant: Tensor, slope: Tensor, gradient: Tensor, top: Tensor, bottom: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of the groups' rows, summed over each chunk.  # (C, B, D) float32"""
    chunks, (_, batch, dim) = len(groups.start), own.shape
    width = batch * dim
    out = own.new_empty(chunks, batch, dim, dtype=torch.float32)
    if chunks:
        _backward[(chunks, triton.cdiv(width, FEATURES))](
            own, other, groups.edge, groups.target, groups.other, groups.place, groups.start, groups.stop,
            groups.owner, keep, constant, slope, gradient, top, bottom, out,
            width, dim, _tile(len(groups.edge), chunks), FEATURES,
        )  # fmt: skip
    return out


def _tile(edges: int, rows: int) -> Any:
    """Edges of a tile: about as many as a row has."""
    return min(32, max(4, triton.next_power_of_2(edges // max(1, rows) + 1)))
