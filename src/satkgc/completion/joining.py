"""Which relation joins two entities, if any: both directions and the relation's frequency, weighed.

Cosines of different relations do not compare: a batch of training tells apart the answers of one question, never two
questions about one answer. So the relation is asked from both ends, a frequent one has a head start, and weigh.py fits
what each of the three is worth. Most pairs nothing joins, so how likely it is that anything does is fitted as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from satkgc.completion.calibration import Array


@dataclass(frozen=True)
class Joining:
    """Weights of a softmax over the relations that could join two entities, and of whether any does."""

    by_tail: float = 15.0  # of the cosine between (head, relation) and the tail
    by_head: float = 15.0  # of that between (tail, inverse relation) and the head
    by_frequency: float = 0.7  # of the logarithm of the relation's share of the training triples
    none: float = 10.0  # the logarithm of the softmax's sum at which it is as likely that none does
    steep: float = 1.0  # how fast that changes with the sum
    questions: int = 0  # joined pairs it was fitted to; without any the order is worth something, the chances nothing
    first: float = 0.0  # share of them whose right relation came first, by weights fitted to the other half

    def logits(self, tails: Any, heads: Any, shares: Any) -> Array:
        """Of relations (..., n) with these cosines and logarithms of their shares."""
        return np.asarray(self.by_tail * tails + self.by_head * heads + self.by_frequency * shares)

    def probability(self, logits: Array) -> Array:
        """Of all relations (..., R), which compete: one that is known leaves little for the others."""
        total = logsumexp(logits, axis=-1, keepdims=True)
        return np.asarray(expit(self.steep * (total - self.none)) * np.exp(logits - total))


def log_shares(frequency: Any) -> Array:
    """From the number of training triples of each relation (R,)."""
    return np.asarray(np.log((frequency + 1) / np.sum(frequency + 1)))
