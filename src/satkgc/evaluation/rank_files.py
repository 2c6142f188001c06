"""Ranks to compare: those of a report or of a file, which another system may have written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from satkgc.errors import SatkgcError
from satkgc.evaluation.metrics import DIRECTIONS, measure_directions
from satkgc.evaluation.ranking import Ranks
from satkgc.evaluation.report import METADATA, Report

TRIPLE = ("head", "relation", "tail")
QUESTION = (*TRIPLE, "asked")
COLUMNS = (*QUESTION, "rank")
RULES = ("split", "candidates", "sampled", "ties", "rerank_hops", "rerank_weight")


@dataclass(frozen=True, eq=False)
class QuestionRanks:
    """The rank of every question, and how it was taken as far as that is known."""

    table: pa.Table  # in the order of the questions: `COLUMNS`, and candidates where there are
    rules: dict[str, object]  # some of `RULES`
    file: str | None  # where it was read

    @classmethod
    def read(cls, source: Report | Path | str) -> QuestionRanks:
        """Those of a report, or of a Parquet file."""
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
        found = measure_directions({side: all_ranks.select(asked == side) for side in DIRECTIONS})
        unknown = () if known else ("amr", "amri")
        return {side: {n: v for n, v in values.items() if n not in unknown} for side, values in found.items()}

    def refuse_unlike(self, other: QuestionRanks) -> None:
        """Raise where the two cannot be compared."""
        files = " and ".join(file for file in (self.file, other.file) if file) or None
        told = [name for name in RULES if name in self.rules and name in other.rules]
        unlike = [name for name in told if self.rules[name] != other.rules[name]]
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


def _read(file: Path | str) -> pa.Table:
    try:
        return pq.read_table(file)
    except FileNotFoundError as error:
        raise SatkgcError("no such file", where=file, remedy="write one with `satkgc evaluate --ranks`") from error
    except (pa.ArrowException, OSError) as error:
        raise SatkgcError("not a Parquet file of ranks", where=file) from error


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
        said = dict(json.loads((table.schema.metadata or {}).get(METADATA, b"{}")))
    except (ValueError, TypeError) as error:
        raise SatkgcError("its metadata cannot be read", where=file, remedy="write it anew") from error
    off = ("rerank_weight",) if said.get("rerank_hops") == 0 else ()  # the weight of nothing
    return {name: said[name] for name in RULES if name in said and name not in off}
