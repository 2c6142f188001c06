"""Answers against the scores of all entities."""

from __future__ import annotations

import numpy as np


def agree(answers, scores, usable, k):
    """The answers are the k best usable entities; models may round a batch differently, so scores are compared."""
    best = sorted((scores[i] for i in usable), reverse=True)[:k]
    np.testing.assert_allclose([a.score for a in answers], best, atol=1e-5)
    places = [int(a.id[1:]) for a in answers]
    assert len(set(places)) == len(places)
    assert set(places) <= set(usable)
    np.testing.assert_allclose([scores[i] for i in places], best, atol=1e-5)
