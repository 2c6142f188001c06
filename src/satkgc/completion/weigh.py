"""Fit which relation joins two entities: on validation triples, and on as many pairs that nothing joins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from satkgc.completion.asking import Asker
from satkgc.completion.calibration import FEWEST, Array
from satkgc.completion.joining import Joining, log_shares
from satkgc.kg.vocabulary import Int32

ENCODINGS = 6000  # texts of pairs to learn from
COMPETING = 20  # relations compared for one of them


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of entities (q,) and, for each, relations (n,) that may join them: cosines and logarithms of shares."""

    tails: Any  # (q, n)
    heads: Any  # (q, n)
    shares: Any  # (q, n), -inf where there are fewer
    joined: Any  # (q,) bool: by the relation in column 0, or by none
    drawn: float = 1.0  # share of all relations that the columns are, drawn evenly

    def some(self, rows: Any) -> Pairs:
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[rows] for name in ("tails", "heads", "shares", "joined")})


def weigh_relations(asker: Asker, encodings: int = ENCODINGS, competing: int = COMPETING) -> Joining:
    """Weights from validation triples, and from pairs of the head of one and the tail of another."""
    kg, rng = asker.kg, np.random.default_rng(0)
    competing = min(competing, kg.num_relations)
    count = min(len(kg.valid), encodings // (4 * competing))
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
    return fit_joining(Pairs(tails, heads, shares, joined, competing / kg.num_relations))


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
    out = ~np.isfinite(pairs.shares)
    # In double precision: the search takes differences of the loss.
    tails, heads, shares = (
        np.where(out, 0.0, part).astype(np.float64) for part in (pairs.tails, pairs.heads, pairs.shares)
    )
    start = np.array([*np.log([Joining.by_tail, Joining.by_head, Joining.by_frequency]), Joining.none])
    faint = np.array([1, 1, 1, 0.04])  # a pull to the start, which keeps the search finite where everything is easy

    def loss(free: Array) -> float:
        logits = _weights(free).logits(tails, heads, shares) - np.log(pairs.drawn)  # each stands for more
        none = np.full(len(logits), free[3])
        chances = log_softmax(np.column_stack([np.where(out, -np.inf, logits), none]), axis=1)
        likelihood = np.where(pairs.joined, chances[:, 0], chances[:, -1]).sum()
        return float(np.sum(faint * (free - start) ** 2) - likelihood)

    bounds = [(np.log(0.01), np.log(200))] * 3 + [(-100, 100)]
    return _weights(minimize(loss, start, method="L-BFGS-B", bounds=bounds).x)


def _weights(free: Array) -> Joining:
    by_tail, by_head, by_frequency = np.exp(free[:3]).tolist()
    return Joining(by_tail, by_head, by_frequency, float(free[3]))


def _known(asker: Asker, head: int, tail: int) -> set[int]:
    return {r for r in range(asker.kg.num_relations) if asker.holds(head, r, tail)}


def _cosines(asker: Asker, asked: Int32, directed: Int32, answers: Int32) -> Any:
    """Of each entity with each of its directed relations, and its answer.  # (q, n)"""
    queries = list(zip(np.repeat(asked, directed.shape[1]).tolist(), directed.ravel().tolist(), strict=True))
    vectors = asker.encode(queries, progress=True).reshape(*directed.shape, -1)
    return np.einsum("qnd,qd->qn", vectors, asker.vectors.rows(answers))
