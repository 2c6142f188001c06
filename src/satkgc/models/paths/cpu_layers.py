"""Layers of the path model on a CPU, in compiled loops: neither messages nor their statistics are ever stored.

Questions are taken in blocks, as many as there are threads to share them, and nothing depends on who takes which.
Within a block nodes come by the number of their edges: those with as many have the same log-degree s, and so one matrix
for all that they received, plain + s · log + inverse / s. The backward pass gathers a node's messages again. Before the
first layer all states but the questions' own are zero, so that most nodes receive nothing there and are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from satkgc.models.paths import cpu_kernels
from satkgc.models.paths.graph import MessageGraph

FEATURES = 2048  # of a block of questions, at most: the more, the less a visit of a node costs
FEW = 256  # a block has no fewer for the sake of more threads
PIECES = 8  # of the nodes, for each thread, where there are fewer blocks than threads


def cpu_layers(
    layers: Iterable[Any],
    queries: Tensor,
    heads: Tensor,
    graph: MessageGraph,
    edge_weights: Sequence[Tensor] | None = None,
) -> Tensor:
    """The states after all layers.  # queries (B, D), heads (B,), edge_weights (E,) of each layer → (N, B, D)"""
    batch, dim = queries.shape
    blocks = max(-(-batch * dim // FEATURES), min(torch.get_num_threads(), -(-batch * dim // FEW)))
    size = -(-batch // blocks)
    blocks = -(-batch // size)
    spare = blocks * size - batch  # questions of none
    heads = functional.pad(heads, (0, spare), value=-1).view(blocks, size)

    def by_block(rows: Tensor) -> Tensor:
        """# (B, n, D) → (n, blocks · D · size)"""
        rows = functional.pad(rows, (0, 0, 0, 0, 0, spare)).view(blocks, size, -1, dim)
        return rows.permute(2, 0, 3, 1).flatten(1).contiguous()

    own, states = by_block(queries[:, None])[0], None
    for number, layer in enumerate(layers):
        weights = by_block(layer.weights(queries).float().view(batch, -1, dim))  # (2R, blocks · D · size)
        norm = layer.norm.weight, layer.norm.bias, layer.norm.eps
        edges = None if edge_weights is None else edge_weights[number]
        parts = states, weights, own, layer.matrices(), layer.own.bias, *norm, heads, graph, edges
        states = _Layer.apply(*parts)  # type: ignore[no-untyped-call]
    assert states is not None
    return states.view(-1, blocks, dim, size).permute(0, 1, 3, 2).flatten(1, 2)[:, :batch]


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor | None, weights: Tensor, queries: Tensor, matrices: Tensor, bias: Tensor,
        gain: Tensor, shift: Tensor, eps: float, heads: Tensor, graph: MessageGraph, edge_weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """# states (N, blocks · D · b), weights (2R, blocks · D · b), queries (blocks · D · b,), matrices (3, D, 5D)"""
        ctx.first = states is None
        if states is None:
            states = _start(queries, heads, graph.num_nodes)
        tensors = states, weights, queries, matrices, bias, gain, shift
        out, changes = torch.empty_like(states), torch.empty_like(states if any(ctx.needs_input_grad) else states[:0])
        ctx.save_for_backward(*tensors, heads, changes, edge_weights)
        ctx.graph, ctx.eps = graph, eps
        given = (*_given(ctx, tensors, heads, edge_weights), out.numpy(), changes.numpy())
        blocks, threads = len(heads), torch.get_num_threads()
        pieces = PIECES * threads if threads > 1 and blocks < 2 * threads else 1
        cuts = np.linspace(0, graph.num_nodes, pieces + 1).astype(int).tolist()
        spans = [(block, *span) for block in range(blocks) for span in pairwise(cuts)]
        _share(lambda span: cpu_kernels.forward(*given, *span), spans)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *tensors, heads, changes, edge_weights = ctx.saved_tensors
        blocks, edges = len(heads), len(ctx.graph.source) if ctx.needs_input_grad[10] else 0
        of_states, of_weights, of_queries = (torch.zeros(tensor.shape) for tensor in tensors[:3])
        of_matrices, of_vectors = torch.zeros(blocks, *tensors[3].shape), torch.zeros(blocks, 3, len(tensors[4]))
        of_edges = torch.zeros(blocks, edges)
        gradients = (of_states, of_weights, of_queries.view(blocks, -1), of_matrices, of_vectors, of_edges)
        parts = (changes, gradient.contiguous(), *gradients)
        given = (*_given(ctx, tensors, heads, edge_weights), *(part.numpy() for part in parts))
        _share(lambda block: cpu_kernels.backward(*given, block), range(blocks))
        if ctx.first:
            of_queries += of_states[_nodes(heads, len(of_queries)).clamp(min=0), torch.arange(len(of_queries))]
        vectors = of_vectors.sum(0)  # each block's own, added in order
        return (
            None if ctx.first else of_states, of_weights, of_queries, of_matrices.sum(0), *vectors,
            None, None, None, of_edges.sum(0) if edges else None,
        )  # fmt: skip


def _start(queries: Tensor, heads: Tensor, nodes: int) -> Tensor:
    """Each question at its own entity, zero elsewhere."""
    node = _nodes(heads, len(queries))
    states = queries.new_zeros(nodes, len(queries))
    there = node >= 0
    states[node[there], there.nonzero().squeeze(1)] = queries[there]
    return states


def _nodes(heads: Tensor, features: int) -> Tensor:
    """The entity of each feature's question."""
    blocks, size = heads.shape
    return heads[:, None].expand(blocks, features // heads.numel(), size).flatten()


def _given(ctx: Any, tensors: Sequence[Tensor], heads: Tensor, edge_weights: Tensor | None) -> tuple[Any, ...]:
    """What the loops read; of the weights of edges there may be none."""
    graph = ctx.graph
    states, weights, queries, *parameters = (tensor.detach().contiguous().numpy() for tensor in tensors)
    edges = graph.source, graph.relation, graph.ptr, graph.keep, graph.count, graph.scale, graph.by_count
    own = np.empty(0, np.float32) if edge_weights is None else edge_weights.detach().numpy()
    return (
        states, weights, queries.reshape(len(heads), -1), *parameters, np.float32(ctx.eps), ctx.first,
        *(part.numpy() for part in edges), own, heads.numpy(),
    )  # fmt: skip


def _share(work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    """Have tasks done by as many threads as PyTorch uses."""
    threads = torch.get_num_threads()
    if threads == 1 or len(tasks) == 1:
        for task in tasks:
            work(task)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, tasks))
