"""One pass over the edges against gather and scatter, and against a loop, values and gradients; without a GPU the
Triton kernels run in its interpreter."""

import os

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported

from satkgc.models.paths.aggregate import EPS, aggregate, aggregate_plain
from satkgc.models.paths.graph import CHUNK, HUB, MessageGraph, find_edges
from satkgc.models.paths.update import update_plain

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_graph(seed=0, nodes=9, relations=3, edges=30, hub=0):
    random = np.random.default_rng(seed)
    triples = random.integers(0, [nodes, relations, nodes], (edges, 3))
    triples = np.concatenate([triples, [(0, 0, 1 + i % (nodes - 1)) for i in range(hub)]]) if hub else triples
    return MessageGraph.build(triples, nodes, relations, DEVICE)


def inputs(graph, batch=3, dim=5, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_()

    heads = torch.randint(0, graph.num_nodes, (batch,), generator=generator).to(DEVICE)
    return draw(graph.num_nodes, batch, dim), draw(graph.num_relations, batch, dim), draw(batch, dim), heads


pytest.importorskip("triton", reason="the kernels need Triton")


CASES = {
    "plain": lambda: (random_graph(), {}),
    "left out": lambda: (random_graph(1).without(torch.tensor([0, 3, 4, 20], device=DEVICE)), {}),
    "all left out": lambda: ((graph := random_graph(2)).without(torch.arange(len(graph.source), device=DEVICE)), {}),
    "no edges": lambda: (random_graph(edges=0), {}),
    "more features than a tile": lambda: (random_graph(3), {"batch": 5, "dim": 32}),
    "hub": lambda: (random_graph(4, nodes=3, hub=max(2 * CHUNK, HUB) + 40), {"batch": 1, "dim": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_equal_gather_and_scatter(case):
    graph, shape = CASES[case]()
    parts = inputs(graph, **shape)
    upstream = torch.randn(graph.num_nodes, *parts[2].shape[:1], 4, parts[2].shape[1], device=DEVICE)
    results = []
    for function in (aggregate, aggregate_plain):
        statistics = function(*parts, graph)
        gradients = torch.autograd.grad(statistics, parts[:3], upstream)
        results.append((statistics, *gradients))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_values_equal_a_loop_over_messages():
    graph = random_graph(5).without(torch.tensor([2, 7], device=DEVICE))
    states, weights, queries, heads = (part.detach() for part in inputs(graph))
    ours = aggregate(states, weights, queries, heads, graph)
    for node in range(graph.num_nodes):
        for b in range(len(heads)):
            received = [queries[b] if heads[b] == node else torch.zeros_like(queries[b])]
            received += [
                states[graph.source[edge], b] * weights[graph.relation[edge], b]
                for edge in range(len(graph.source))
                if graph.target[edge] == node and graph.keep[edge]
            ]
            stack = torch.stack(received)
            deviation = stack.var(0, correction=0).clamp(min=EPS).sqrt()
            expected = torch.stack([stack.mean(0), deviation, stack.amax(0), stack.amin(0)])
            torch.testing.assert_close(ours[node, b], expected, rtol=1e-4, atol=1e-5)


def test_the_first_of_equal_messages_is_chosen():
    graph = random_graph(6)
    states, weights, queries, heads = (part.detach() for part in inputs(graph))
    states, weights = torch.ones_like(states), torch.ones_like(weights)
    from satkgc.models.paths import gpu_kernels

    _, top, bottom = gpu_kernels.forward(states, weights, queries, heads, graph, EPS)
    first = torch.where((graph.ptr[1:] > graph.ptr[:-1])[:, None, None], 0, -1)
    at = heads, torch.arange(len(heads), device=DEVICE)
    own = torch.zeros_like(top, dtype=torch.bool)
    own[at] = True
    assert torch.equal(torch.where(own, -1, top), torch.where(own, -1, first.expand_as(top)).to(top.dtype))
    assert (torch.where(own, -1, bottom) == -1).all()  # the start, zero, is below one
    assert torch.equal(top[at] < 0, queries >= 1)


def test_half_precision_is_close():
    graph = random_graph(7)
    parts = inputs(graph, dtype=torch.bfloat16)
    full = [part.detach().float() for part in parts[:3]]
    torch.testing.assert_close(
        aggregate(*parts, graph).float(), aggregate_plain(*full, parts[3], graph), rtol=0.02, atol=0.02
    )


def test_edges_between_two_entities_are_found():
    random = np.random.default_rng(0)
    triples = random.integers(0, [6, 4, 6], (80, 3))
    graph = MessageGraph.build(triples, 6, 4)
    ptr, source, relation, target = (part.numpy() for part in (graph.ptr, graph.source, graph.relation, graph.target))
    pairs, directed = random.integers(0, 6, (5, 2)), random.integers(0, 8, 5)
    everything = list(zip(source, relation, target, strict=True))
    wanted = [e for e, (u, _, v) in enumerate(everything) if (u, v) in set(map(tuple, pairs.tolist()))]
    assert find_edges(ptr, source, relation, pairs).tolist() == wanted
    asked = {(u, r, v) for (u, v), r in zip(pairs.tolist(), directed.tolist(), strict=True)}
    wanted = [e for e, edge in enumerate(everything) if edge in asked]
    assert find_edges(ptr, source, relation, pairs, directed).tolist() == wanted


def test_every_edge_is_in_one_chunk_of_each_grouping():
    graph = random_graph(8, hub=2 * CHUNK + 10)
    for groups, key in ((graph.by_source, graph.source), (graph.by_relation, graph.relation)):
        slots = torch.cat([torch.arange(a, b) for a, b in zip(groups.start, groups.stop, strict=True)])
        assert torch.equal(slots, torch.arange(len(key)))
        assert (groups.stop - groups.start <= CHUNK).all()
        owner = torch.repeat_interleave(groups.owner, groups.stop - groups.start)
        assert torch.equal(owner.cpu(), key[groups.edge.long()].cpu())
        assert groups.chunks.sum() == len(groups.start)


@pytest.mark.parametrize(("nodes", "batch", "dim"), [(7, 3, 5), (40, 9, 32)])
def test_the_fused_update_equals_the_plain_one(nodes, batch, dim):
    pytest.importorskip("triton", reason="the fused kernels need Triton")
    from satkgc.models.paths.gpu_kernels import Update

    generator = torch.Generator().manual_seed(0)
    norm = torch.nn.LayerNorm(dim).to(DEVICE)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    shapes = (nodes, batch, dim), (nodes, batch, dim), (nodes, batch, 3, dim)
    parts = [torch.randn(shape, generator=generator).to(DEVICE).requires_grad_() for shape in shapes]
    scale = torch.rand(nodes, generator=generator).to(DEVICE)
    scale[0] = 0.0  # an entity without triples
    upstream = torch.randn(nodes, batch, dim, generator=generator).to(DEVICE)
    fused = Update.apply(*parts, scale, norm.weight, norm.bias, norm.eps)
    leaves = [*parts, norm.weight, norm.bias]
    results = [(out, *torch.autograd.grad(out, leaves, upstream)) for out in (fused, update_plain(*parts, scale, norm))]
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
