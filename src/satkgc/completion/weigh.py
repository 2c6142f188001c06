"""Fit which relation joins two entities: on validation triples, and on as many pairs that nothing joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax, logsumexp

from satkgc.arrays import Int32
from satkgc.completion.asking import Asker
from satkgc.completion.calibration import FEWEST, Array
from satkgc.completion.joining import Joining, log_shares

ENCODINGS = 6000  # texts of pairs to learn from
COMPETING = 20  # relations compared for one of them


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of entities (q,) and, for each, relations (n,) that may join them: cosines and logarithms of shares."""

    tails: Any  # (q, n)
    heads: Any  # (q, n)
    shares: Any  # (q, n), -inf where there are fewer
    joined: Any  # (q,) bool: by the relation in column 0, or by none
    relations: int  # that there are; if the columns are fewer, they were drawn evenly, but for the right one

    def some(self, rows: Any) -> Pairs:
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[rows] for name in ("tails", "heads", "shares", "joined")})

    def stand_for(self) -> Array:
        """The logarithm of how many relations each column stands for: the right one for itself alone.  # (q, n)"""
        columns = self.tails.shape[1]
        for_all = np.full(self.tails.shape, np.log(self.relations / columns))
        for_others = np.full(self.tails.shape, np.log(max(1, self.relations - 1) / max(1, columns - 1)))
        for_others[:, 0] = 0.0
        return np.where(self.joined[:, None], for_others, for_all)


def weigh_relations(asker: Asker) -> Joining:
    """Weights from validation triples, and from pairs of the head of one and the tail of another."""
    kg, rng = asker.kg, np.random.default_rng(0)
    competing = min(COMPETING, kg.num_relations)
    count = min(len(kg.valid), ENCODINGS // (4 * competing))
    if count < FEWEST:
        return Joining()
    triples = kg.valid[np.sort(rng.choice(len(kg.valid), count, replace=False))]
    mixed = np.stack([triples[:, 0], rng.permutation(triples[:, 2])], 1)
    mixed = np.array([pair for pair in mixed.tolist() if not _known(asker, *pair)], np.int32).reshape(-1, 2)
    pairs = np.concatenate([triples[:, [0, 2]], mixed])
    joined = np.arange(len(pairs)) < count
    share = log_shares(asker.names.frequency)
    relations = np.zeros((len(pairs), competing), np.int32)
    shares = np.full(relations.shape, -np.inf)
    for row, (head, tail) in enumerate(pairs.tolist()):
        known = _known(asker, head, tail)
        others = [r for r in rng.permutation(kg.num_relations).tolist() if r not in known]
        chosen = ([int(triples[row, 1]), *others] if joined[row] else others)[:competing]
        relations[row, : len(chosen)], shares[row, : len(chosen)] = chosen, share[chosen]
    tails = _cosines(asker, pairs[:, 0], relations, pairs[:, 1])
    heads = _cosines(asker, pairs[:, 1], relations + kg.num_relations, pairs[:, 0])
    return fit_joining(Pairs(tails, heads, shares, joined, kg.num_relations))


def fit_joining(pairs: Pairs) -> Joining:
    """By maximum likelihood; how often the right relation comes first is told by weights from the other half."""
    half = np.random.default_rng(0).permutation(len(pairs.joined)) < len(pairs.joined) // 2
    right = 0
    for part in (half, ~half):
        rest = pairs.some(~part)
        logits = _fit(pairs.some(part)).logits(rest.tails, rest.heads, rest.shares)
        right += int((logits.argmax(1) == 0)[rest.joined].sum())
    count = int(np.sum(pairs.joined))
    return replace(_fit(pairs), questions=count, first=right / count)


def _fit(pairs: Pairs) -> Joining:
    """First which relation, from those that are joined; then whether any, from all."""
    out = ~np.isfinite(pairs.shares)
    # In double precision: the search takes differences of the loss.
    inputs = [np.where(out, 0.0, part).astype(np.float64) for part in (pairs.tails, pairs.heads, pairs.shares)]

    def logits(free: Array) -> Array:
        return np.where(out, -np.inf, Joining(*np.exp(free).tolist()).logits(*inputs))

    def which(free: Array) -> float:
        return -float(log_softmax(logits(free)[pairs.joined], axis=1)[:, 0].sum())

    weights = _search(which, np.log([Joining.by_tail, Joining.by_head, Joining.by_frequency]))
    total = logsumexp(logits(weights) + pairs.stand_for(), axis=1)
    sign = np.where(pairs.joined, 1, -1)

    def whether(free: Array) -> float:
        return -float(log_expit(sign * np.exp(free[1]) * (total - 10 * free[0])).sum())

    none, steep = _search(whether, np.array([Joining.none / 10, np.log(Joining.steep)]))
    by_tail, by_head, by_frequency = np.exp(weights).tolist()
    return Joining(by_tail, by_head, by_frequency, float(10 * none), float(np.exp(steep)))


def _search(loss: Callable[[Array], float], start: Array) -> Array:
    """The least loss; a faint pull to the start keeps it finite where everything is easy."""
    found = minimize(lambda free: loss(free) + float(np.sum((free - start) ** 2)), start, method="L-BFGS-B")
    return np.asarray(found.x)


def _known(asker: Asker, head: int, tail: int) -> set[int]:
    return {r for r in range(asker.kg.num_relations) if asker.holds(head, r, tail)}


def _cosines(asker: Asker, asked: Int32, directed: Int32, answers: Int32) -> Any:
    """Of each entity with each of its directed relations, and its answer.  # (q, n)"""
    queries = list(zip(np.repeat(asked, directed.shape[1]).tolist(), directed.ravel().tolist(), strict=True))
    vectors = asker.encode(queries, progress=True).reshape(*directed.shape, -1)
    return np.einsum("qnd,qd->qn", vectors, asker.vectors.rows(answers))
