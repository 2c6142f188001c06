"""Whether two systems' ranks of the same questions differ by more than the choice of questions explains.

Ranks come from reports or from Parquet files, which another system may have written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

from satkgc.errors import SatkgcError
from satkgc.evaluation.metrics import DIRECTIONS, HITS, measure_directions
from satkgc.evaluation.ranking import Ranks
from satkgc.evaluation.report import METADATA, Report

TRIPLE = ("head", "relation", "tail")
QUESTION = (*TRIPLE, "asked")
COLUMNS = (*QUESTION, "rank")
REMEDY = "write one with `satkgc evaluate RUN --ranks FILE`"
RULES = ("split", "candidates", "sampled", "ties", "rerank_hops", "rerank_weight")

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


@dataclass(frozen=True, eq=False)
class QuestionRanks:
    """The rank of every question, and how it was taken as far as that is known."""

    table: pa.Table  # in the order of the questions: `COLUMNS`, and candidates where there are
    rules: dict[str, object]  # some of `RULES`
    file: str | None  # where it was read

    @classmethod
    def read(cls, source: Report | Path | str) -> QuestionRanks:
        """The ranks of a report, or of a Parquet file."""
        file = None if isinstance(source, Report) else str(source)
        table = source.rank_table() if isinstance(source, Report) else _read(source)
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            raise SatkgcError(f"no column {missing[0]}", where=file, remedy=f"it takes {', '.join(COLUMNS)}")
        kinds = dict.fromkeys(QUESTION, pa.string()) | {"rank": pa.float64(), "candidates": pa.float64()}
        columns = {n: _cast(table[n], n, kind, file) for n, kind in kinds.items() if n in table.column_names}
        if not len(table):
            raise SatkgcError("no ranks", where=file)
        if columns["rank"].null_count or not pc.all(pc.greater_equal(columns["rank"], 1)).as_py():
            raise SatkgcError("a rank is missing or less than 1", where=file)
        strange = set(columns["asked"].unique().to_pylist()).difference(DIRECTIONS)
        if strange:
            raise SatkgcError(f"column asked has {min(strange)!r}", where=file, remedy="it takes head and tail")
        in_order = pa.table(columns).sort_by([(name, "ascending") for name in QUESTION])
        return cls(in_order, _rules(table, file), file)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Metrics under "head", "tail" and "both"; without `amr` and `amri` where the candidates are unknown."""
        asked, rank = self.table["asked"].to_numpy(), self.table["rank"].to_numpy()
        known = "candidates" in self.table.column_names and not self.table["candidates"].null_count
        candidates = self.table["candidates"].to_numpy() if known else rank
        all_ranks = Ranks(rank - 1, np.zeros_like(rank), candidates)  # ties are settled: what is left are their ranks
        metrics = measure_directions({side: all_ranks.select(asked == side) for side in DIRECTIONS})
        unknown = () if known else ("amr", "amri")
        return {side: {n: v for n, v in values.items() if n not in unknown} for side, values in metrics.items()}

    def refuse_unlike(self, other: QuestionRanks) -> None:
        """Raise where the two cannot be compared."""
        files = " and ".join(file for file in (self.file, other.file) if file) or None
        both = [name for name in RULES if name in self.rules and name in other.rules]
        unlike = [name for name in both if self.rules[name] != other.rules[name]]
        if unlike:
            ways = ", ".join(f"{name} {self.rules[name]} against {other.rules[name]}" for name in unlike)
            raise SatkgcError(f"not ranked in the same way: {ways}", where=files, remedy="evaluate both in one way")
        if len(self.table) != len(other.table):
            problem = f"{len(self.table):,} questions against {len(other.table):,}"
            raise SatkgcError(problem, where=files, remedy="compare ranks of one split and graph")
        if (row := self._first_unlike(other, QUESTION)) is not None:
            problem = f"not the same questions, from ({self._question(row)}) on"
            raise SatkgcError(problem, where=files, remedy="compare ranks of one split and graph")
        if "candidates" not in self.table.column_names or "candidates" not in other.table.column_names:
            return
        if (row := self._first_unlike(other, ("candidates",))) is not None:
            one, two = (f"{part.table['candidates'][row].as_py():,.0f}" for part in (self, other))
            problem = f"not ranked in the same way: among {one} candidates against {two} for ({self._question(row)})"
            raise SatkgcError(problem, where=files, remedy="evaluate both among the same candidates, with one filter")

    def _first_unlike(self, other: QuestionRanks, names: tuple[str, ...]) -> int | None:
        """The first question in which columns differ."""
        unlike = [pc.fill_null(pc.not_equal(self.table[name], other.table[name]), False) for name in names]
        rows = np.flatnonzero(np.any([column.to_numpy() for column in unlike], axis=0))
        return int(rows[0]) if len(rows) else None

    def _question(self, row: int) -> str:
        return " ".join(self.table[name][row].as_py() for name in QUESTION)


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


def _read(file: Path | str) -> pa.Table:
    try:
        return pq.read_table(file)
    except FileNotFoundError as error:
        raise SatkgcError("no such file", where=file, remedy=REMEDY) from error
    except (pa.ArrowException, OSError) as error:
        raise SatkgcError("not a Parquet file of ranks", where=file, remedy=REMEDY) from error


def _cast(column: pa.ChunkedArray, name: str, kind: pa.DataType, file: str | None) -> pa.ChunkedArray:
    """A column as `kind`: other programs write ids as categories or numbers, and ranks as text."""
    try:
        column = column.cast(kind)
    except pa.ArrowException as error:
        what = "numbers" if kind == pa.float64() else "text"
        raise SatkgcError(f"column {name} is {column.type}, not {what}", where=file) from error
    if name in QUESTION and column.null_count:
        raise SatkgcError(f"column {name} has a row without a value", where=file)
    return column


def _rules(table: pa.Table, file: str | None) -> dict[str, object]:
    """What the table's metadata say of how the ranks were taken."""
    try:
        about = dict(json.loads((table.schema.metadata or {}).get(METADATA, b"{}")))
    except (ValueError, TypeError) as error:
        raise SatkgcError("its metadata cannot be read", where=file, remedy="write it anew") from error
    off = ("rerank_weight",) if about.get("rerank_hops") == 0 else ()  # the weight of nothing
    return {name: about[name] for name in RULES if name in about and name not in off}
