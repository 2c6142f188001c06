"""MCMC subgraphs (Appendix B, Algorithm 1): tails that the model finds likely, and triples they head."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.chain import chain, nearest, triples_of
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.path import depth_first
from satkgc.sampling.philox import seed_word
from satkgc.sampling.walk import start_entity


class Vectors(Protocol):
    """What the sampler asks of the model in training; both answers come from one state of the model until `refresh`."""

    def query_vectors(self, triples: Int32) -> Any:
        """x_hr of these training triples, float32.  # (n,) -> (n, D)"""
        ...

    def entity_vectors(self) -> Any:
        """x_e of all entities, float32.  # (E, D)"""
        ...


class McmcSubgraphs:
    """The subgraph of a centre triple by Metropolis-Hastings.

    1. A depth-first path of d triples. It starts with the centre, from the end that a walk would start from; each step
       goes to a neighbour not on the path yet, uniformly chosen, by a uniform one of the parallel triples, and back
       where there is none. It is shorter than d where the component is.
    2. A chain over the entities, started at a uniform one. For path triple (h, r, t) its target is
       p(y) ∝ cos(x_hr, x_y)^α; the next triple inherits the state. The proposal q(y|x) is, with probability ½ each,
       uniform over all entities or uniform over the k nearest to x by cosine.
    3. After `burn_in` steps, k steps for each path triple; each state is one negative tail.
    4. For each negative, a triple that it heads, uniformly chosen. The subgraph is the path and these triples.

    Where the paper leaves room:

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

    def __init__(self, kg: KnowledgeGraph, config: SamplingConfig, seed: int, vectors: Vectors) -> None:
        self.kg = kg
        self.config = config.mcmc
        self.seed = seed_word(seed)
        self.vectors = vectors
        self.headed = _grouped(kg.train[:, 0], kg.num_entities)
        self.ended = _grouped(kg.train[:, 2], kg.num_entities)
        self.entities: Any = None  # (E, D) of unit length
        self.nearest: Any = None  # (E, k)

    def refresh(self) -> None:
        """Read the entities' vectors anew."""
        vectors = np.asarray(self.vectors.entity_vectors(), np.float32)
        if len(vectors) != self.kg.num_entities:
            raise SatkgcError(f"{len(vectors):,} entity vectors for {self.kg.num_entities:,} entities")
        self.entities = _unit(vectors)
        self.nearest = nearest(self.entities, self.config.k)

    def subgraph(self, centre: int, step: int) -> Int32:
        """Distinct training triples around the centre."""
        if self.entities is None:
            self.refresh()
        config, graph = self.config, self.kg.adjacency
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
        triples = triples_of(negatives, *self.headed, *self.ended, self.seed, step)
        return np.unique(np.concatenate([path, triples[triples >= 0]]))


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _grouped(keys: Int32, size: int) -> tuple[Any, Int32]:
    """Rows grouped by key: those with key i are order[ptr[i]:ptr[i + 1]]."""
    ptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=size))])
    return ptr, np.argsort(keys, kind="stable").astype(np.int32)
