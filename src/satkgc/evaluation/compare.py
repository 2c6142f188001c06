"""Whether two systems' ranks of the same questions differ by more than the choice of questions explains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

from satkgc.errors import SatkgcError
from satkgc.evaluation.metrics import HITS
from satkgc.evaluation.report import Report

TRIPLE = ("head", "relation", "tail")
COLUMNS = (*TRIPLE, "asked", "rank")


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


def compare(first: Report | Path | str, second: Report | Path | str) -> list[Difference]:
    """Compare two reports, or the files that `Report.save_ranks` writes; those of another system will do as well.

    The two questions of a triple are no two observations: each triple counts once, by the mean of its questions, and
    the differences of the triples are put to a paired t-test.
    """
    one, other = _read(first), _read(second)
    _refuse_other_questions(one, other, first, second)
    firsts, seconds = _by_triple(one), _by_triple(other)
    if len(firsts["mrr"]) < 2:
        raise SatkgcError("ranks of fewer than two triples are too few to compare")
    found = []
    for metric in firsts:
        test = stats.ttest_rel(seconds[metric], firsts[metric])
        interval = test.confidence_interval(0.95)
        means = float(firsts[metric].mean()), float(seconds[metric].mean())
        same = bool((firsts[metric] == seconds[metric]).all())  # where the test divides nothing by nothing
        low, high, p = (0.0, 0.0, 1.0) if same else (float(interval.low), float(interval.high), float(test.pvalue))
        found.append(Difference(metric, *means, means[1] - means[0], low, high, p))
    return found


def _read(source: Report | Path | str) -> pa.Table:
    """The questions in order, and their ranks."""
    if isinstance(source, Report):
        table = source.rank_table()
    else:
        try:
            table = pq.read_table(source)
        except FileNotFoundError as error:
            raise SatkgcError(
                "no such file", where=source, remedy="write one with `satkgc evaluate --ranks`"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise SatkgcError("not a Parquet file of ranks", where=source) from error
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise SatkgcError(f"no column {missing[0]}", where=source, remedy=f"it takes {', '.join(COLUMNS)}")
    if table["rank"].null_count or not pc.all(pc.greater_equal(table["rank"], 1)).as_py():
        raise SatkgcError("a rank is missing or less than 1", where=source)
    return table.select(list(COLUMNS)).sort_by([(name, "ascending") for name in (*TRIPLE, "asked")])


def _refuse_other_questions(one: pa.Table, other: pa.Table, first: object, second: object) -> None:
    if len(one) != len(other):
        problem = f"{len(one):,} questions against {len(other):,}"
    else:
        differ = [pc.not_equal(one[name], other[name].cast(one[name].type)) for name in (*TRIPLE, "asked")]
        rows = np.flatnonzero(np.any([column.to_numpy() for column in differ], axis=0))
        if not len(rows):
            return
        asked = " ".join(str(one[name][int(rows[0])]) for name in (*TRIPLE, "asked"))
        problem = f"not the same questions, from ({asked}) on"
    where = " and ".join(str(file) for file in (first, second) if not isinstance(file, Report))
    raise SatkgcError(problem, where=where or None, remedy="compare ranks of one split and graph")


def _by_triple(table: pa.Table) -> dict[str, Any]:
    """Each metric's mean over the questions of a triple."""
    ranks = table["rank"].to_numpy().astype(np.float64)
    keys = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in TRIPLE]
    begins = np.concatenate([[True], np.any([key[1:] != key[:-1] for key in keys], axis=0)])
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, len(ranks)))
    values = {"mrr": 1 / ranks} | {f"hits@{k}": (ranks <= k).astype(np.float64) for k in HITS}
    return {metric: np.add.reduceat(value, starts) / counts for metric, value in values.items()}
