"""MCMC subgraphs (Appendix B, Algorithm 1): tails that the model finds likely, and triples they head."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.hashset import contains, insert, new_set
from satkgc.sampling.philox import CHAIN, HEADED, PATH, below, words
from satkgc.sampling.saam import SubgraphSampler
from satkgc.sampling.sampler import Needs, SamplingVectors
from satkgc.sampling.walk import start_entity

LEAST_COSINE = 1e-6


class McmcSampler(SubgraphSampler):
    """Subgraphs by Metropolis-Hastings: a path from the centre, and what the model finds likely along it.

    1. A depth-first path of d triples. It starts with the centre, from the end that a walk would start from; each step
       goes to a neighbour not on the path yet, uniformly chosen, by a uniform one of the parallel triples, and back
       where there is none. It is shorter than d where the component is.
    2. A chain over the entities, started at a uniform one. For path triple (h, r, t) its target is
       p(y) ∝ cos(x_hr, x_y)^α; the next triple inherits the state. The proposal q(y|x) is, with probability ½ each,
       uniform over all entities or uniform over the k nearest to x by cosine.
    3. After `burn_in` steps, k steps for each path triple; each state is one negative tail.
    4. For each negative, a triple that it heads, uniformly chosen. The subgraph is the path and these triples.

    Where the paper leaves it open:

    - Algorithm 1 prints no acceptance test after the burn-in. Without one the chain would follow q and forget the
      target, so the test is kept throughout.
    - It spends the burn-in on the first triples of the path, which then get no negatives, while the text has d·k of
      them. Here the burn-in runs on the first triple before it gets its own.
    - A cosine below 1e-6, negative ones above all, counts as 1e-6: powers of negative numbers are not defined, and such
      an entity should be left soon rather than never.
    - q(x|y)/q(y|x) uses both parts of the mixture: q(y|x) = ½/|E| + ½[y is one of the k nearest of x]/k.
    - The nearest are exact, found block by block for all entities at each refresh: |E|² products, fit for tens of
      thousands of entities.
    - An entity that heads no triple gives one that it ends, whose inverse it heads; one without triples gives none.

    The vectors are read when `refresh` is called, and before the first draw. A trainer that streams ahead should end
    its stream before it refreshes, so that the batches do not depend on timing.
    """

    vectors: SamplingVectors

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: SamplingConfig,
        seed: int,
        needs: Needs = Needs(),
        vectors: SamplingVectors | None = None,
    ) -> None:
        if vectors is None:
            raise SatkgcError('sampling.sampler = "mcmc" needs the vectors of a model', remedy="choose another sampler")
        super().__init__(kg, config, seed, needs, vectors)
        self.period = config.mcmc.refresh
        self.by_head = _grouped(kg.train[:, 0], kg.num_entities)
        self.by_tail = _grouped(kg.train[:, 2], kg.num_entities)
        self.entities: Any = None  # (E, D) of unit length
        self.nearest: Any = None  # (E, k)

    def refresh(self) -> None:
        """Read the entities' vectors anew."""
        vectors = np.asarray(self.vectors.entity_vectors(), np.float32)
        if len(vectors) != self.kg.num_entities:
            raise SatkgcError(f"{len(vectors):,} entity vectors for {self.kg.num_entities:,} entities")
        self.entities = _unit(vectors)
        self.nearest = nearest(self.entities, self.config.mcmc.k)

    def subgraph(self, centre: int, step: int) -> Int32:
        """Distinct training triples around the centre."""
        if self.entities is None:
            self.refresh()
        config, graph = self.config.mcmc, self.kg.adjacency
        start = start_entity(self.kg.train, graph.neighbour_ptr, centre, self.seed, step)
        path = depth_first(
            start,
            centre,
            self.kg.train,
            (graph.neighbour_ptr, graph.neighbours, graph.edge_ptr, graph.edges),
            config.path,
            self.seed,
            step,
        )
        queries = _unit(np.asarray(self.vectors.query_vectors(path), np.float32))  # (d, D)
        negatives = chain(queries, self.entities, self.nearest, config.k, config.alpha, config.burn_in, self.seed, step)
        triples = triples_of(negatives, *self.by_head, *self.by_tail, self.seed, step)
        return np.unique(np.concatenate([path, triples[triples >= 0]]))


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _grouped(keys: Int32, size: int) -> tuple[Int64, Int32]:
    """Rows grouped by key: those with key i are order[ptr[i]:ptr[i + 1]]."""
    ptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
    return ptr, np.argsort(keys, kind="stable").astype(np.int32)


def nearest(vectors: Any, k: int, block: int = 512) -> Int32:
    """The k nearest others of each unit vector, exact, in no particular order.  # (E, D) -> (E, min(k, E - 1))"""
    k = min(k, len(vectors) - 1)
    result = np.empty((len(vectors), k), np.int32)
    if k == 0:
        return result
    for first in range(0, len(vectors), block):
        cosines = vectors[first : first + block] @ vectors.T  # (block, E)
        rows = np.arange(len(cosines))
        cosines[rows, first + rows] = -np.inf
        result[first : first + block] = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    return result


@njit(cache=True, nogil=True)
def chain(queries, entities, nearest, k, alpha, burn_in, seed, step):  # type: ignore[no-untyped-def]
    """The states of Algorithm 1's chain after the burn-in, k for each query.  # (d * k,)"""
    states = np.empty(len(queries) * k, np.int32)
    a, b, _, _ = words(seed, CHAIN, step, 0)
    x = below(a, b, len(entities))[0]
    index = 1
    for i in range(len(queries)):
        of_x = _target(queries[i], entities[x], alpha)
        for j in range(-burn_in if i == 0 else 0, k):
            a, b, c, d = words(seed, CHAIN, step, index)
            index += 1
            near = nearest.shape[1] > 0 and a < np.uint64(1 << 31)
            y = np.int64(nearest[x, below(b, c, nearest.shape[1])[0]]) if near else below(b, c, len(entities))[0]
            of_y = _target(queries[i], entities[y], alpha)
            ratio = of_y / of_x * _proposal(x, y, nearest) / _proposal(y, x, nearest)
            if np.float64(d) < ratio * 4294967296.0:
                x, of_x = y, of_y
            if j >= 0:
                states[i * k + j] = x
    return states


@njit(cache=True, nogil=True)
def _target(query, entity, alpha):  # type: ignore[no-untyped-def]
    cosine = 0.0
    for i in range(len(query)):
        cosine += query[i] * entity[i]
    return max(cosine, LEAST_COSINE) ** alpha


@njit(cache=True, nogil=True)
def _proposal(y, x, nearest):  # type: ignore[no-untyped-def]
    """q(y|x), the part of the uniform half being 1/|E| and the whole doubled."""
    value = 1.0 / len(nearest)
    for z in nearest[x]:
        if z == y:
            value += 1.0 / nearest.shape[1]
    return value


@njit(cache=True, nogil=True)
def triples_of(entities, head_ptr, by_head, tail_ptr, by_tail, seed, step):  # type: ignore[no-untyped-def]
    """A uniform triple headed by each entity, else one it ends, else -1.  # (m,) -> (m,)"""
    result = np.full(len(entities), -1, np.int32)
    for i in range(len(entities)):
        e = entities[i]
        a, b, _, _ = words(seed, HEADED, step, i)
        if head_ptr[e + 1] > head_ptr[e]:
            result[i] = by_head[head_ptr[e] + below(a, b, head_ptr[e + 1] - head_ptr[e])[0]]
        elif tail_ptr[e + 1] > tail_ptr[e]:
            result[i] = by_tail[tail_ptr[e] + below(a, b, tail_ptr[e + 1] - tail_ptr[e])[0]]
    return result


@njit(cache=True, nogil=True)
def depth_first(start, centre, triples, graph, length, seed, step):  # type: ignore[no-untyped-def]
    """The triples of a depth-first path that begins with the centre."""
    ptr, neighbours, edge_ptr, edges = graph
    path = np.empty(length, np.int32)
    path[0] = centre
    other = triples[centre, 2] if triples[centre, 0] == start else triples[centre, 0]
    stack = np.empty(length + 1, np.int32)
    stack[0], stack[1] = start, other
    depth = 2
    visited = new_set(length + 1)
    insert(visited, start)
    insert(visited, other)
    count = 1
    index = 0
    while count < length and depth > 0:
        u = stack[depth - 1]
        degree = ptr[u + 1] - ptr[u]
        slot = np.int64(-1)
        for _ in range(16):  # a uniform slot whose entity is new; hubs seldom need more tries
            a, b, _, _ = words(seed, PATH, step, index)
            index += 1
            at = ptr[u] + below(a, b, degree)[0]
            if not contains(visited, neighbours[at]):
                slot = at
                break
        if slot < 0:  # the same choice, by counting those that are left
            left = 0
            for v in neighbours[ptr[u] : ptr[u + 1]]:
                left += not contains(visited, v)
            if left == 0:
                depth -= 1
                continue
            a, b, _, _ = words(seed, PATH, step, index)
            index += 1
            rank = below(a, b, left)[0]
            slot = ptr[u]
            while rank > 0 or contains(visited, neighbours[slot]):
                rank -= not contains(visited, neighbours[slot])
                slot += 1
        a, b, _, _ = words(seed, PATH, step, index)
        index += 1
        path[count] = edges[edge_ptr[slot] + below(a, b, edge_ptr[slot + 1] - edge_ptr[slot])[0]]
        count += 1
        insert(visited, neighbours[slot])
        stack[depth] = neighbours[slot]
        depth += 1
    return path[:count].copy()
