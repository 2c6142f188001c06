"""What indexes that may miss some of the nearest have in common: how much they read is tuned on questions, and what is
excluded is fetched on top and dropped where that costs less than to refuse it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from satkgc.arrays import Float32, Int32, Int64
from satkgc.completion.index.results import empty_results

RECALL = 0.97  # a little over 0.95, since it is tuned on a sample
SPARE = 256  # excluded entities up to which it is cheaper to fetch more and drop them
Probe = Callable[[Int64, int, Int32 | None], tuple[Float32, Int32]]  # rows of queries, k, what is excluded for all


def fewest_probes(recall: Callable[[int], float], least: float, most: int) -> tuple[int, float]:
    """The fewest probes that give this recall, by bisection, and the recall they give."""
    low, high = 0, 1
    while (best := recall(high)) < least and high < most:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if (finer := recall(middle)) >= least:
            high, best = middle, finer
        else:
            low = middle
    return high, best


def share_of(truth: Int32, near: Int32) -> float:
    """How many of the truly nearest are among those found."""
    hits = sum(len(np.intersect1d(a[a >= 0], b)) for a, b in zip(truth, near, strict=True))
    return hits / int((truth >= 0).sum())


def search_without(probe: Probe, count: int, k: int, exclude: Sequence[Int32] | None) -> tuple[Float32, Int32]:
    """The k best of each query that are none of its excluded ones; those with many of these are asked one by one."""
    if exclude is None or not any(map(len, exclude)):
        return probe(np.arange(count), k, None)
    scores, ids = empty_results(count, k)
    sizes = np.array([len(one) for one in exclude], np.int64)
    usual = np.flatnonzero(sizes <= SPARE)
    if len(usual):
        near, places = probe(usual, k + int(sizes[usual].max()), None)
        for i, row in enumerate(usual.tolist()):
            keep = ~np.isin(places[i], exclude[row])
            size = min(k, int(keep.sum()))
            scores[row, :size], ids[row, :size] = near[i, keep][:size], places[i, keep][:size]
    for row in np.flatnonzero(sizes > SPARE).tolist():
        scores[row], ids[row] = (part[0] for part in probe(np.array([row]), k, exclude[row]))
    return scores, ids
