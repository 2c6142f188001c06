"""One question to a fused model on a large graph: its candidates, and the mixture's scores normalised over these.

What the whole scores define over all entities (`satkgc.models.fused`) is defined here over the question's candidates C,
the union of the experts' best:

    log-softmax over C of  Σ_i w_i · x_i,    x_i = log-softmax over C of  scale_i · (expert i's scores).

An entity beyond C that is asked for by name has the same normalisers, so that its score can be compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import logsumexp

from satkgc.arrays import Bool, Float32, Float64, Int32
from satkgc.completion.retriever import IndexRetriever
from satkgc.models import LEAST_COSINE, Mixture, parts_of_sum

NONE = np.empty(0, np.int32)


class Opinion(ABC):
    """What one expert says about one question."""

    listed: Int32  # its best candidates

    @abstractmethod
    def at(self, ids: Int32) -> Float64:
        """Its scores, -inf where it has nothing to say.  # (K,)"""

    @abstractmethod
    def best(self, k: int, allow: Int32 | None, exclude: Int32) -> Int32:
        """Its best candidates among some of the graph's entities; both filters ascend."""


class WholeOpinion(Opinion):
    """Of an expert that has scored all entities."""

    def __init__(self, scores: Float32, listed: int) -> None:
        self.scores = scores  # (E,)
        self.listed = self.best(listed, None, NONE)

    def at(self, ids: Int32) -> Float64:
        """Looked up; it knows no new entities."""
        size = len(self.scores)
        return np.where(ids < size, self.scores[np.minimum(ids, size - 1)], -np.inf).astype(np.float64)

    def best(self, k: int, allow: Int32 | None, exclude: Int32) -> Int32:
        """By a partial sort."""
        scores = self.scores
        if len(exclude):
            scores = scores.copy()
            scores[exclude[exclude < len(scores)]] = -np.inf
        ids = None if allow is None else allow[allow < len(scores)]
        return _top(scores if ids is None else scores[ids], ids, k)


class NearOpinion(Opinion):
    """Of a path expert that has read the neighbourhood: all other entities rank behind it, alike."""

    def __init__(self, nodes: Int32, scores: Float32, knows: Bool, listed: int) -> None:
        self.nodes, self.scores, self.knows = nodes, scores, knows  # (m,) ascending, (m,), (E,)
        self.floor = float(scores.min()) - 1
        self.listed = self.best(listed, None, NONE)

    def at(self, ids: Int32) -> Float64:
        """Looked up; it has nothing to say of entities without facts."""
        places = np.minimum(np.searchsorted(self.nodes, ids), len(self.nodes) - 1)
        scores = np.where(self.nodes[places] == ids, self.scores[places], self.floor)
        known = (ids < len(self.knows)) & self.knows[np.minimum(ids, len(self.knows) - 1)]
        return np.where(known, scores, -np.inf).astype(np.float64)

    def best(self, k: int, allow: Int32 | None, exclude: Int32) -> Int32:
        """Of the neighbourhood."""
        left = ~np.isin(self.nodes, exclude)
        if allow is not None:
            left &= np.isin(self.nodes, allow)
        return _top(self.scores[left], self.nodes[left], k)


class VectorOpinion(Opinion):
    """Of an expert with vectors, through its index."""

    def __init__(self, retriever: IndexRetriever, query: Float32, listed: Int32, knows: Bool, barred: int) -> None:
        self.retriever, self.query, self.knows = retriever, query, knows
        self.barred = barred  # the question's entity, where it is no answer; else -1
        self.listed = self._known(listed)
        self.held_out: tuple[int, Float32] | None = None  # an answer, and its vector as if the triple were not known

    def at(self, ids: Int32) -> Float64:
        """Inner products."""
        scores = (self.retriever.index.fetch(ids) @ self.query).astype(np.float64)
        if self.held_out is not None:
            scores[ids == self.held_out[0]] = self.held_out[1] @ self.query
        scores[ids == self.barred] = LEAST_COSINE
        size = len(self.knows)
        return np.where((ids >= size) | self.knows[np.minimum(ids, size - 1)], scores, -np.inf)

    def best(self, k: int, allow: Int32 | None, exclude: Int32) -> Int32:
        """Another search."""
        return self._known(self.retriever.nearest(self.query[None], k, allow, [exclude])[1][0])

    def _known(self, ids: Int32) -> Int32:
        ids = ids[(ids >= 0) & (ids < len(self.knows))]
        return ids[self.knows[ids]]


class Shortlist:
    """A question's candidates, and scores of these or any others."""

    def __init__(
        self, opinions: Sequence[Opinion | None], mixture: Mixture, relation: int, num_entities: int, length: int
    ) -> None:
        """Of the experts that have something to say, the others being None."""
        self.opinions, self.mixture, self.num_entities, self.length = opinions, mixture, num_entities, length
        self.relations = np.array([relation], np.int32)
        self.asked = torch.tensor([[opinion is not None] for opinion in opinions])  # (n, 1)
        self.ids = _union([opinion.listed for opinion in opinions if opinion is not None])  # (C,) ascending
        own = self.raw(self.ids)
        norms = logsumexp(mixture.scales[:, None] * own, axis=1) if len(self.ids) else np.zeros(len(opinions))
        self._norms = np.where(np.isfinite(norms), norms, 0.0)[:, None]  # (n, 1)
        self._total = 0.0
        self._total = float(logsumexp(self.score(own))) if len(self.ids) else 0.0

    def raw(self, ids: Int32) -> Float64:
        """The experts' own scores, -inf where they have nothing to say.  # (K,) → (n, K)"""
        silent = np.full(len(ids), -np.inf)
        return np.stack([silent if opinion is None else opinion.at(ids) for opinion in self.opinions])

    def shares(self, raw: Float64) -> Float64:
        """x of entities, from their raw scores.  # (n, K)"""
        return self.mixture.scales[:, None] * raw - self._norms

    def score(self, raw: Float64) -> Float32:
        """The mixture's, from the experts'.  # (n, K) → (K,)"""
        shares = torch.from_numpy(self.shares(raw))[:, None]
        total = self.mixture.mix(shares, self.relations, self.num_entities, self.asked)[0]
        return (total.numpy() - self._total).astype(np.float32)

    def parts(self, raw: Float64) -> Float32:
        """What each expert adds to the sum, NaN where it has nothing to say.  # (n, K)"""
        shares = torch.from_numpy(self.shares(raw))[:, None]
        weights = torch.from_numpy(self.mixture.weights[self.relations].T.copy())
        return parts_of_sum(shares, weights)[:, 0].numpy().astype(np.float32)

    def search(self, k: int, allow: Int32 | None, exclude: Int32) -> Int32:
        """What a search looks at: the candidates, or lists as long of what the filters leave.

        The lists are made anew where there is something to choose from, more is wanted than they hold, or most of what
        they hold is excluded.
        """
        wanted = max(k, self.length)
        if allow is not None and len(allow) <= wanted:
            return allow[~np.isin(allow, exclude)]
        left = self.ids[~np.isin(self.ids, exclude)]
        if allow is None and k <= min(self.length, len(left)) and 2 * len(left) >= len(self.ids):
            return left
        return _union([o.best(wanted, allow, exclude) for o in self.opinions if o is not None])


def _top(scores: Float32, ids: Int32 | None, k: int) -> Int32:
    """The ids, or places, of the k highest scores that are not -inf; best first."""
    places = np.argpartition(-scores, k)[:k] if k < len(scores) else np.arange(len(scores))
    places = places[np.isfinite(scores[places])]
    places = places[np.argsort(-scores[places], kind="stable")]
    return (places if ids is None else ids[places]).astype(np.int32)


def _union(lists: Sequence[Int32]) -> Int32:
    return np.unique(np.concatenate([NONE, *lists])).astype(np.int32)
