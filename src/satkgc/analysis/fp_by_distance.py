"""Figure 1: are false triples ranked too high more often where head and tail are near each other?

    python -m satkgc.analysis.fp_by_distance RUN [RUN …] --plot fp_by_distance.png

The ratio at a distance is the number of false positives whose two entities lie that far apart in the training graph,
divided by the number of entity pairs that do (the figure's footnote). Entities without a path count nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from satkgc.analysis.hops import add_counts, choose_sources, hops_from, pairs_at_distance
from satkgc.arrays import Int32, Int64
from satkgc.kg import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class ByDistance:
    """Index i is distance i + 1."""

    false_positives: Int64
    pairs: np.ndarray[tuple[int], np.dtype[np.float64]]  # unordered

    @property
    def groups(self) -> list[str]:
        """The distances, as labels."""
        return [str(distance) for distance in range(1, len(self.pairs) + 1)]

    @property
    def ratio(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """False positives per pair."""
        return self.false_positives / np.maximum(self.pairs, 1)


def fp_by_distance(
    kg: KnowledgeGraph, found: Iterable[tuple[int, Int32]], sources: int | None = 2_000, seed: int = 0
) -> ByDistance:
    """From (asked entity, false positives) of each question; pairs are counted from at most `sources` entities."""
    count: Int64 = np.zeros(1, np.int64)
    for asked, wrong in found:
        hops = hops_from(kg.adjacency, np.array([asked], np.int32))[0, wrong]
        count = add_counts(count, np.bincount(hops[hops >= 0]))
    chosen = choose_sources(kg.num_entities, sources, seed)
    pairs = pairs_at_distance(kg.adjacency, chosen) * (kg.num_entities / len(chosen) / 2)
    length = max(len(count) - 1, len(pairs))
    wrong_counts = add_counts(count[1:], np.zeros(length, np.int64))
    return ByDistance(wrong_counts, np.pad(pairs, (0, length - len(pairs))))


if __name__ == "__main__":
    from satkgc.analysis.plots import main

    main(__doc__, fp_by_distance, "distance between head and tail")
