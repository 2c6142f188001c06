"""Compiled loops of `aggregate` for a CPU: the same passes as the GPU's kernels, nodes and chunks shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from satkgc.models.paths.graph import Groups, MessageGraph


def forward(
    states: Tensor, weights: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Statistics (N, B, 4, D), and the places of the edges with the largest and the smallest message, -1: the start."""
    nodes, batch, dim = states.shape
    out = states.new_empty(nodes, batch, 4, dim)
    top, bottom = (torch.empty_like(states, dtype=graph.place_dtype) for _ in range(2))
    arrays = [
        *(_rows(part) for part in (states, weights)),
        *(part.numpy() for part in (graph.source, graph.relation, graph.ptr, graph.keep, heads)),
        *(part.detach().numpy() for part in (queries, out)),
        *(_rows(part) for part in (top, bottom)),
    ]
    _share(nodes, lambda first, last: _forward(*arrays, np.float32(eps), first, last))
    return out, top, bottom


def slopes(statistics: Tensor, gradient: Tensor, count: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """∂/∂m of mean and deviation together, by node and feature: constant + slope · m.  # (N, B, D) each"""
    count = count[:, None, None]
    mean, deviation = statistics[:, :, 0], statistics[:, :, 1]
    slope = torch.where(deviation > least, gradient[:, :, 1] / (deviation * count), 0.0)
    return gradient[:, :, 0] / count - slope * mean, slope


def backward(
    own: Tensor, other: Tensor, groups: Groups, keep: Tensor,
    constant: Tensor, slope: Tensor, gradient: Tensor, top: Tensor, bottom: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of the groups' rows, summed over each chunk.  # (C, B, D) float32"""
    chunks, (_, batch, dim) = len(groups.start), own.shape
    out = own.new_empty(chunks, batch, dim)
    parts = (groups.edge, groups.target, groups.other, groups.place, groups.start, groups.stop, groups.owner, keep)
    arrays = [
        *(_rows(part) for part in (own, other)),
        *(part.numpy() for part in parts),
        *(_rows(part) for part in (constant, slope, gradient[:, :, 2], gradient[:, :, 3], top, bottom, out)),
    ]
    _share(chunks, lambda first, last: _backward(*arrays, first, last))
    return out


def _rows(tensor: Tensor) -> Any:
    """A row a node, relation or chunk: its features of all questions."""
    return tensor.detach().flatten(1).numpy()


def _share(size: int, work: Callable[[int, int], None]) -> None:
    """Have pieces of range(size) done by as many threads as PyTorch uses; which does what changes nothing."""
    threads = torch.get_num_threads()
    if threads == 1 or size < 2 * threads:
        return work(0, size)
    bounds = np.linspace(0, size, 8 * threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, bounds[:-1], bounds[1:]))


# LLVM vectorises a loop over few arrays, which is why each of these is several.


@njit(cache=True, nogil=True)
def _add(message, total, squares):  # type: ignore[no-untyped-def]
    for f in range(len(message)):
        total[f] += message[f]
        squares[f] += message[f] * message[f]


@njit(cache=True, nogil=True)
def _raise(message, place, largest, at):  # type: ignore[no-untyped-def]
    for f in range(len(message)):
        larger = message[f] > largest[f]
        at[f] = place if larger else at[f]
        largest[f] = message[f] if larger else largest[f]


@njit(cache=True, nogil=True)
def _multiply(a, b, out):  # type: ignore[no-untyped-def]
    for f in range(len(out)):
        out[f] = a[f] * b[f]


@njit(cache=True, nogil=True)
def _forward(states, weights, source, relation, ptr, keep, heads, queries, out, top, bottom, eps, first, last):  # type: ignore[no-untyped-def]
    width, (batch, dim) = states.shape[1], queries.shape
    total, squares, message, largest, negative = np.empty((5, width), np.float32)
    at_top, at_bottom = np.empty((2, width), np.int32)
    for node in range(first, last):
        for b in range(batch):
            own = heads[b] == node
            for j in range(dim):
                start = queries[b, j] if own else np.float32(0)
                f = b * dim + j
                total[f], squares[f], largest[f], negative[f] = start, start * start, start, -start
        at_top[:] = -1
        at_bottom[:] = -1
        count = np.float32(1)
        for edge in range(ptr[node], ptr[node + 1]):
            if not keep[edge]:
                continue
            count += np.float32(1)
            place = np.int32(edge - ptr[node])
            _multiply(states[source[edge]], weights[relation[edge]], message)
            _add(message, total, squares)
            _raise(message, place, largest, at_top)
            for f in range(width):
                message[f] = -message[f]
            _raise(message, place, negative, at_bottom)
        for f in range(width):
            top[node, f], bottom[node, f] = at_top[f], at_bottom[f]
        for b in range(batch):
            for j in range(dim):
                f = b * dim + j
                mean = total[f] / count
                out[node, b, 0, j] = mean
                out[node, b, 1, j] = np.sqrt(max(squares[f] / count - mean * mean, eps))
                out[node, b, 2, j] = largest[f]
                out[node, b, 3, j] = -negative[f]


@njit(cache=True, nogil=True)
def _pull(constant, slope, mine, yours, pull):  # type: ignore[no-untyped-def]
    for f in range(len(pull)):
        pull[f] = constant[f] + slope[f] * mine[f] * yours[f]


@njit(cache=True, nogil=True)
def _add_where(at, place, gradient, pull):  # type: ignore[no-untyped-def]
    for f in range(len(pull)):
        pull[f] += gradient[f] if at[f] == place else np.float32(0)


@njit(cache=True, nogil=True)
def _backward(  # type: ignore[no-untyped-def]
    own, other, edges, targets, partners, places, starts, stops, owners, keep,
    constant, slope, largest, smallest, top, bottom, out, first, last,
):  # fmt: skip
    pull = np.empty(own.shape[1], np.float32)
    for chunk in range(first, last):
        mine, total = own[owners[chunk]], out[chunk]
        total[:] = 0
        for slot in range(starts[chunk], stops[chunk]):
            if not keep[edges[slot]]:
                continue
            node, place, yours = targets[slot], places[slot], other[partners[slot]]
            _pull(constant[node], slope[node], mine, yours, pull)
            _add_where(top[node], place, largest[node], pull)
            _add_where(bottom[node], place, smallest[node], pull)
            for f in range(len(pull)):
                total[f] += pull[f] * yours[f]
