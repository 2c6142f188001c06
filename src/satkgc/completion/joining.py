"""Which relation joins two entities: both directions and the relation's frequency, weighed on validation triples.

Cosines of different relations do not compare: a batch of training tells apart the answers of one question, never two
questions about one answer. So the relation is asked from both ends, a frequent one has a head start, and what each of
the three is worth is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

from satkgc.completion.calibration import Array

ENCODINGS = 4000  # texts of validation questions to learn from
COMPETING = 20  # relations compared in one of them


@dataclass(frozen=True)
class Joining:
    """Weights of a softmax over the relations that could be missing between two entities."""

    by_tail: float = 15.0  # of the cosine between (head, relation) and the tail
    by_head: float = 15.0  # of that between (tail, inverse relation) and the head
    by_frequency: float = 0.7  # of the logarithm of the relation's share of the training triples
    questions: int = 0  # it was fitted to; with none the order is worth something, the probability nothing
    first: float = 0.0  # share of them whose right relation came first, by weights fitted to the other half

    def logits(self, tails: Any, heads: Any, shares: Any) -> Array:
        """Of relations (..., n) with these cosines and logarithms of their shares."""
        return np.asarray(self.by_tail * tails + self.by_head * heads + self.by_frequency * shares)

    @staticmethod
    def probability(logits: Array, known: Any) -> Array:
        """Of relations (n,): the unknown share it among them, a known one competes with them as a missing one would."""
        others = logsumexp(logits[~known]) if not known.all() else -np.inf
        return np.where(known, expit(logits - others), np.exp(logits - others))


def log_shares(frequency: Any) -> Array:
    """From the number of training triples of each relation (R,)."""
    return np.asarray(np.log((frequency + 1) / np.sum(frequency + 1)))


def fit_joining(tails: Any, heads: Any, shares: Any, true: Any) -> Joining:
    """By maximum likelihood, from the cosines (q, n) of some relations for each question, their shares (q, n), -inf
    where there are fewer, and the column of the right one (q,)."""
    inputs = [np.asarray(part) for part in (tails, heads, shares, true)]
    half = np.random.default_rng(0).permutation(len(true)) < len(true) // 2
    right = 0
    for part in (half, ~half):
        one, (*others, wanted) = _fit(*(array[part] for array in inputs)), (array[~part] for array in inputs)
        right += int((one.logits(*others).argmax(1) == wanted).sum())
    return replace(_fit(*inputs), questions=len(true), first=right / len(true))


def _fit(tails: Any, heads: Any, shares: Any, true: Any) -> Joining:
    out = ~np.isfinite(shares)
    shares = np.where(out, 0.0, shares)
    start = np.log([Joining.by_tail, Joining.by_head, Joining.by_frequency])
    rows = np.arange(len(true))

    def loss(free: Array) -> float:
        logits = Joining(*np.exp(free)).logits(tails, heads, shares)
        likelihood = log_softmax(np.where(out, -np.inf, logits), axis=1)[rows, true].sum()
        return float(np.sum((free - start) ** 2) - likelihood)  # a faint pull keeps the search finite

    found = minimize(loss, start, method="L-BFGS-B", bounds=[(np.log(0.01), np.log(200))] * 3)
    return Joining(*np.exp(found.x).tolist())
