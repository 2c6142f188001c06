"""Goodness of fit for tests with fixed seeds."""

from __future__ import annotations

from collections import Counter

from scipy.stats import chisquare


def assert_follows(observed: Counter, exact: dict, total: int) -> None:
    """The counts are as probable as `exact` says; nothing happened that it excludes. Rare outcomes are pooled."""
    assert sum(observed.values()) == total
    assert set(observed) <= set(exact), f"impossible outcomes: {sorted(set(observed) - set(exact), key=str)[:5]}"
    assert abs(sum(exact.values()) - 1) < 1e-9
    seen, expected, rare = [], [], [0, 0.0]
    for outcome, probability in exact.items():
        if probability * total < 10:
            rare = [rare[0] + observed[outcome], rare[1] + probability * total]
        else:
            seen.append(observed[outcome])
            expected.append(probability * total)
    if rare[1] > 0:
        seen.append(rare[0])
        expected.append(rare[1])
    p = chisquare(seen, expected).pvalue if len(seen) > 1 else 1.0
    assert p > 1e-3, f"p = {p:.2g}: {seen} seen, {[round(e, 1) for e in expected]} expected"
