"""Figure 2: are false triples ranked too high more often where the tail has many neighbours?

    python -m satkgc.analysis.fp_by_degree RUN [RUN …] --plot fp_by_degree.png

The degrees that occur in the training graph are cut into five groups of equally many distinct degrees. The ratio of a
group is the false positives per question whose entity has such a degree, divided by the number of such entities.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.kg import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class ByDegree:
    """One entry a group, from low degrees to high."""

    bounds: list[tuple[int, int]]  # lowest and highest degree
    false_positives: np.ndarray[tuple[int], np.dtype[np.float64]]  # per question
    entities: Int64

    @property
    def groups(self) -> list[str]:
        """The degrees of each group, as labels."""
        return [f"{low}–{high}" for low, high in self.bounds]

    @property
    def ratio(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """False positives per question and entity."""
        return self.false_positives / self.entities


def fp_by_degree(kg: KnowledgeGraph, found: Iterable[tuple[int, Int32]], groups: int = 5) -> ByDegree:
    """From (asked entity, false positives) of each question."""
    degree = kg.adjacency.degree
    parts = [part for part in np.array_split(np.unique(degree), groups) if len(part)]
    group = np.searchsorted([part[-1] for part in parts], degree)  # (E,) the group of every entity
    count, questions = np.zeros(len(parts), np.int64), 0
    for _, wrong in found:
        count += np.bincount(group[wrong], minlength=len(parts))
        questions += 1
    bounds = [(int(part[0]), int(part[-1])) for part in parts]
    return ByDegree(bounds, count / max(questions, 1), np.bincount(group, minlength=len(parts)))


if __name__ == "__main__":
    from satkgc.analysis.plots import main

    main(__doc__, fp_by_degree, "degree of the tail")
