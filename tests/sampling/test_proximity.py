"""ω from hops, written out sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from satkgc.errors import SatkgcError
from satkgc.sampling import closeness, proximity

DISTANCES = np.array([[0, 1], [2, 3], [1, -1]], np.int32)
HEADS = [0, 2, 1, 1, 3, -1]  # of the six samples: three triples, and the same turned round
TAILS = [1, 3, -1, 0, 2, 1]


def test_the_paper_takes_the_reciprocal_of_the_product():
    for (i, j), omega in np.ndenumerate(proximity(DISTANCES)):
        d1, d2 = HEADS[i], TAILS[j]
        assert omega == pytest.approx(0 if -1 in (d1, d2) else 1 / (max(d1, 1) * max(d2, 1)))


def test_the_authors_take_two_tails():
    for (i, j), omega in np.ndenumerate(proximity(DISTANCES, "authors")):
        d1, d2 = TAILS[i], TAILS[j]
        assert omega == pytest.approx(0 if -1 in (d1, d2) else 1 / (d1 + 2) / (d2 + 2))


def test_the_sum():
    for (i, j), omega in np.ndenumerate(proximity(DISTANCES, "sum")):
        d1, d2 = HEADS[i], TAILS[j]
        assert omega == pytest.approx(0 if -1 in (d1, d2) else 1 / max(d1 + d2, 1))


def test_exact_pairs():
    pairs = np.array([[0, 1], [4, -1]], np.int32)
    np.testing.assert_allclose(proximity(DISTANCES[:1], "exact", pairs), [[1, 1], [0.25, 0]])
    with pytest.raises(SatkgcError, match="pairs"):
        proximity(DISTANCES, "exact")


@pytest.mark.parametrize("rule", ["product", "authors"])
def test_two_rules_are_outer_products(rule):
    left, right = closeness(DISTANCES, rule)
    assert left.dtype == right.dtype == np.float32
    np.testing.assert_allclose(np.outer(left, right), proximity(DISTANCES, rule))


def test_the_others_are_not():
    with pytest.raises(SatkgcError, match="outer product"):
        closeness(DISTANCES, "sum")
