"""Why an answer: the paths from the question's entity that its score rests on most.

Every message of every layer is given a weight of one. The derivative of the answer's score by that weight says how much
the edge matters in that layer. The weight of a path is the sum over its edges, each in a later layer than the one
before: to first order, what the score would lose without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numba import njit

from satkgc.arrays import Float32, Int32
from satkgc.models.paths.graph import MessageGraph, find_edges

if TYPE_CHECKING:
    from satkgc.models.paths.model import PathModel

SPARE = 8  # ways to an entity that are kept for each path that is wanted: the best may come back to one passed before


@dataclass(frozen=True)
class Path:
    """Edges from a question's entity to an answer."""

    edges: tuple[tuple[int, int, int], ...]  # (entity, directed relation, entity)
    weight: float


def strongest_paths(model: PathModel, head: int, relation: int, answer: int, k: int) -> list[Path]:
    """The k paths that support an answer most, the strongest first; the triple itself is not one of them."""
    if model.answers_nearby:
        nodes, graph = model.graph_near(head)
        if answer not in nodes:
            return []
        ends = np.searchsorted(nodes, [head, answer]).tolist()
        return [
            Path(tuple((int(nodes[u]), r, int(nodes[v])) for u, r, v in path.edges), path.weight)
            for path in _strongest_paths(model, graph, ends[0], relation, ends[1], k)
        ]
    return _strongest_paths(model, model.graph, head, relation, answer, k)


def _strongest_paths(
    model: PathModel, graph: MessageGraph, head: int, relation: int, answer: int, k: int
) -> list[Path]:
    ptr, source, directed, target = (
        part.cpu().numpy() for part in (graph.ptr, graph.source, graph.relation, graph.target)
    )
    both = np.array([[head, answer], [answer, head]], np.int32)
    size = graph.num_relations
    known = find_edges(ptr, source, directed, both, np.array([relation, (relation + size // 2) % size], np.int32))
    graph = graph.without(torch.from_numpy(known).to(model.device))
    ones = [torch.ones(len(source), device=model.device, requires_grad=True) for _ in model.layers]
    with torch.enable_grad():
        ids = torch.tensor([[head], [relation]], device=model.device)
        score = model(ids[0], ids[1], graph, ones)[0, answer]
        gradients = torch.autograd.grad(score, ones)
    weights = torch.stack(gradients).float().cpu().numpy()
    best = best_paths(source, target, graph.keep.cpu().numpy(), weights, graph.num_nodes, head, answer, SPARE * k)
    return [
        Path(tuple((int(source[e]), int(directed[e]), int(target[e])) for e in edges), weight)
        for edges, weight in best[:k]
    ]


def best_paths(
    source: Int32, target: Int32, keep: Any, weights: Float32, nodes: int, head: int, answer: int, k: int
) -> list[tuple[list[int], float]]:
    """The k heaviest paths from head to answer, as edges with their weight; each path once, where it weighs most.

    A path takes its edges in rising layers, may rest in between, and comes to no entity twice. Of the ways to an entity
    k are kept after each layer, so that a path may be missed whose beginning is lighter than those.
    # weights (layers, E)
    """
    best, edges, slots = _best_paths(source, target, keep, weights, nodes, head, k)
    paths = []
    for slot in range(k):
        if best[answer, slot] == -np.inf:
            break
        path, node, at = [], answer, slot
        for layer in range(len(weights) - 1, -1, -1):
            edge, at = edges[layer, node, at], slots[layer, node, at]
            if edge >= 0:
                path.append(int(edge))
                node = int(source[edge])
        if path:  # the head is an answer of no steps to itself
            paths.append((path[::-1], float(best[answer, slot])))
    return paths


@njit(cache=True, nogil=True)
def _best_paths(source, target, keep, weights, nodes, head, k):  # type: ignore[no-untyped-def]
    layers = len(weights)
    best = np.full((nodes, k), -np.inf, np.float64)
    name = np.zeros((nodes, k), np.uint64)  # a hash of each path's edges
    edges = np.full((layers, nodes, k), -1, np.int32)
    slots = np.empty((layers, nodes, k), np.int32)
    best[head, 0] = 0.0
    for layer in range(layers):
        before, names = best.copy(), name.copy()
        for node in range(nodes):
            for slot in range(k):
                slots[layer, node, slot] = slot
        for edge in range(len(source)):
            u, v = source[edge], target[edge]
            if not keep[edge]:
                continue
            for slot in range(k):
                weight = before[u, slot] + weights[layer, edge]
                if before[u, slot] == -np.inf or weight <= best[v, k - 1]:
                    break  # those behind it are lighter still
                key = (names[u, slot] ^ np.uint64(edge + 1)) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
                node, at, passed = u, slot, u == v
                for back in range(layer - 1, -1, -1):
                    came, at = edges[back, node, at], slots[back, node, at]
                    if came >= 0:
                        node = source[came]
                        passed = passed or node == v
                if passed:
                    continue
                place = 0  # of the path itself, or else of the lightest
                while place < k - 1 and not (name[v, place] == key and best[v, place] > -np.inf):
                    place += 1
                if name[v, place] == key and best[v, place] >= weight:
                    continue
                while place > 0 and best[v, place - 1] < weight:
                    best[v, place], name[v, place] = best[v, place - 1], name[v, place - 1]
                    edges[layer, v, place], slots[layer, v, place] = (
                        edges[layer, v, place - 1],
                        slots[layer, v, place - 1],
                    )
                    place -= 1
                best[v, place], name[v, place] = weight, key
                edges[layer, v, place], slots[layer, v, place] = edge, slot
    return best, edges, slots
