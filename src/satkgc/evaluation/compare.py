"""Whether two systems' ranks of the same questions differ by more than the choice of questions explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from satkgc.errors import SatkgcError
from satkgc.evaluation.metrics import HITS
from satkgc.evaluation.rank_files import TRIPLE, QuestionRanks
from satkgc.evaluation.report import Report

Source = Report | Path | str


@dataclass(frozen=True)
class Difference:
    """A metric of two systems, the second's minus the first's, its 95 % interval, and how often chance does as much."""

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    first_seeds: tuple[float, ...]  # of each seed; `first` is their mean
    second_seeds: tuple[float, ...]

    @property
    def spreads(self) -> tuple[float, float]:
        """How far apart the best and the worst seed of either system are."""
        first, second = (max(seeds) - min(seeds) for seeds in (self.first_seeds, self.second_seeds))
        return first, second


def compare(first: Source | Sequence[Source], second: Source | Sequence[Source]) -> list[Difference]:
    """Compare two reports, or the files that `Report.save_ranks` writes; those of another system will do as well.

    Several of a side are seeds of one system: their values are averaged question by question. The two questions of a
    triple are no two observations: each triple counts once, by the mean of its questions, and the differences of the
    triples are put to a paired t-test.
    """
    sides = [_read_side(side) for side in (first, second)]
    for other in (*sides[0][1:], *sides[1]):
        sides[0][0].refuse_unlike(other)
    seeds = [[_by_triple(ranks) for ranks in side] for side in sides]
    if len(seeds[0][0]["mrr"]) < 2:
        raise SatkgcError("ranks of fewer than two triples are too few to compare")
    return [_difference(metric, *([values[metric] for values in side] for side in seeds)) for metric in seeds[0][0]]


def _read_side(side: Source | Sequence[Source]) -> list[QuestionRanks]:
    sources = [side] if isinstance(side, Source) else side
    if not sources:
        raise SatkgcError("nothing to compare", remedy="give a report or a file for either side")
    return [QuestionRanks.read(source) for source in sources]


def _difference(metric: str, firsts: list[Any], seconds: list[Any]) -> Difference:
    """Of one metric: for each side a list of seeds, each a value for every triple."""
    first, second = np.mean(firsts, axis=0), np.mean(seconds, axis=0)
    test = stats.ttest_rel(second, first)
    interval = test.confidence_interval(0.95)
    means = float(first.mean()), float(second.mean())
    same = bool((first == second).all())  # where the test divides nothing by nothing
    low, high, p = (0.0, 0.0, 1.0) if same else (float(interval.low), float(interval.high), float(test.pvalue))
    of_seeds = (tuple(float(values.mean()) for values in side) for side in (firsts, seconds))
    return Difference(metric, *means, means[1] - means[0], low, high, p, *of_seeds)


def _by_triple(ranks: QuestionRanks) -> dict[str, Any]:
    """Each metric's mean over the questions of a triple."""
    rank = ranks.table["rank"].to_numpy()
    keys = [ranks.table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in TRIPLE]
    begins = np.concatenate([[True], np.any([key[1:] != key[:-1] for key in keys], axis=0)])
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, len(rank)))
    values = {"mrr": 1 / rank} | {f"hits@{k}": (rank <= k).astype(np.float64) for k in HITS}
    return {metric: np.add.reduceat(value, starts) / counts for metric, value in values.items()}
