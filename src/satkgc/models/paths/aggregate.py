"""Messages gathered, multiplied and aggregated in one pass over the edges; no message is ever stored.

Node v receives state(u) ∘ w(r) over every kept edge (u, r, v), and the start: the question's own embedding where v is
its entity, else zero. Their mean, deviation, maximum and minimum are what comes out. Here these are Triton kernels for
a GPU; on a CPU the whole layer is one (`cpu_layer`). `aggregate_plain` says the same in PyTorch's own words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from satkgc.models.paths.graph import Groups, MessageGraph

STATISTICS = 4  # mean, deviation, maximum, minimum
EPS = 1e-6  # least variance


def aggregate(states: Tensor, weights: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph) -> Tensor:
    """Mean, deviation, maximum and minimum of what each node receives, for each of B questions.

    # states (N, B, D), weights (2R, B, D), queries (B, D), heads (B,) → (N, B, 4, D)
    """
    return _Aggregate.apply(states, weights, queries, heads, graph)  # type: ignore[no-untyped-call]


def aggregate_plain(
    states: Tensor,
    weights: Tensor,
    queries: Tensor,
    heads: Tensor,
    graph: MessageGraph,
    edge_weights: Tensor | None = None,
) -> Tensor:
    """The same by gather and scatter_reduce. `edge_weights` (E,) multiply the messages: their gradients explain."""
    edges = graph.keep.nonzero().squeeze(1)
    target = graph.target[edges].long()
    messages = states[graph.source[edges].long()] * weights[graph.relation[edges].long()]  # (E, B, D)
    if edge_weights is not None:
        messages = messages * edge_weights[edges][:, None, None]
    start = torch.zeros_like(states).index_put((heads, torch.arange(len(heads), device=heads.device)), queries)
    index = target[:, None, None].expand_as(messages)
    count = graph.count[:, None, None].to(states.dtype)
    mean = start.scatter_reduce(0, index, messages, "sum") / count
    square = (start**2).scatter_reduce(0, index, messages**2, "sum") / count
    deviation = (square - mean**2).clamp(min=EPS).sqrt()
    largest = start.scatter_reduce(0, index, messages, "amax")
    smallest = start.scatter_reduce(0, index, messages, "amin")
    return torch.stack([mean, deviation, largest, smallest], 2)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weights: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph
    ) -> Tensor:
        states, weights, queries = states.contiguous(), weights.contiguous(), queries.contiguous()
        from satkgc.models.paths import gpu_kernels

        statistics, top, bottom = gpu_kernels.forward(states, weights, queries, heads, graph, EPS)
        ctx.graph = graph
        ctx.save_for_backward(states, weights, queries, heads, statistics, top, bottom)
        return statistics

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, weights, queries, heads, statistics, top, bottom = ctx.saved_tensors
        from satkgc.models.paths import gpu_kernels as kernels

        graph = ctx.graph
        gradient = gradient.to(states.dtype).contiguous()  # (N, B, 4, D)
        constant, slope = kernels.slopes(statistics, gradient, graph.count, EPS**0.5 * (1 + 2**-7))

        def summed(own: Tensor, other: Tensor, groups: Groups) -> Tensor:
            parts = kernels.backward(own, other, groups, graph.keep, constant, slope, gradient, top, bottom)
            # Unsafe: the lengths are known to add up, and reading them would make the host wait for the GPU.
            return torch.segment_reduce(parts, "sum", lengths=groups.chunks, axis=0, unsafe=True).to(own.dtype)

        at = heads, torch.arange(len(heads), device=heads.device)
        start = constant[at].float() + slope[at].float() * queries.float()  # (B, D)
        start = start + torch.where(top[at] < 0, gradient[:, :, 2][at].float(), 0.0)
        start = start + torch.where(bottom[at] < 0, gradient[:, :, 3][at].float(), 0.0)
        need = ctx.needs_input_grad
        return (
            summed(states, weights, graph.by_source) if need[0] else None,
            summed(weights, states, graph.by_relation) if need[1] else None,
            start.to(queries.dtype) if need[2] else None,
            None,
            None,
        )
