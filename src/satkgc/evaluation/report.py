"""The report of an evaluation: metrics to print or to keep as JSON, and the rank of every triple."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from satkgc.arrays import Int32
from satkgc.evaluation.breakdown import break_down
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.metrics import DIRECTIONS, HITS, measure_directions
from satkgc.evaluation.ranking import TIES, Ranks, sample_candidates
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph

METADATA = b"satkgc"  # the key in a rank table's metadata under which the split and the settings stand as JSON


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The ranks of a split in both directions, and how they were taken."""

    kg: KnowledgeGraph
    split: str
    triples: Int32  # (n, 3) those that were ranked
    config: EvaluationConfig
    num_candidates: int  # before the filter
    ranks: dict[str, Ranks]  # "head" and "tail", a rank for every triple
    seconds: dict[str, float] = field(default_factory=dict)  # by phase

    def metrics(self, ties: str | None = None) -> dict[str, dict[str, float]]:
        """Metrics under "head", "tail" and "both", by the configured tie rule or another."""
        return measure_directions(self.ranks, ties or self.config.ties)

    def sampled(self, candidates: int) -> Report:
        """The same questions ranked among so many sampled candidates each; see `sample_candidates`."""
        config = self.config.replace(sampled=candidates)
        ranks = {side: sample_candidates(part, candidates, config.seed, side) for side, part in self.ranks.items()}
        return replace(self, config=config, ranks=ranks)

    def to_json(self) -> dict[str, Any]:
        """Everything but the single ranks."""
        rerank = None
        if self.config.rerank_hops:
            rerank = {"hops": self.config.rerank_hops, "weight": self.config.rerank_weight}
        return {
            "dataset": self.kg.name,
            "split": self.split,
            "triples": len(self.triples),
            "candidates": self.config.candidates_in_words,
            "num_candidates": self.num_candidates,
            "ties": self.config.ties,
            "rerank": rerank,
            **self.metrics(),
            "by_ties": {ties: self.metrics(ties)["both"] for ties in TIES},
            "breakdown": break_down(self.kg, self.triples, self.ranks, self.config.ties),
            "seconds": self.seconds,
            "config": self.config.model_dump(),
        }

    def table(self) -> Table:
        """The metrics of the two directions and both, for a terminal."""
        table = metrics_table(f"{self.kg.name} {self.split}, {len(self.triples):,} triples", self.metrics())
        table.caption = f"filtered; candidates: {self.config.candidates_in_words}; ties: {self.config.ties}"
        if self.config.rerank_hops:
            table.caption += f"; RE-RANKED: +{self.config.rerank_weight} within {self.config.rerank_hops} hops"
        return table

    def __str__(self) -> str:
        text = StringIO()
        Console(file=text, width=100, force_terminal=False, force_jupyter=False).print(self.table())
        return text.getvalue()

    __repr__ = __str__  # what a notebook shows of it

    def rank_table(self) -> pa.Table:
        """One row per question: the triple's ids, the direction asked, the rank; in the metadata how it was taken."""
        parts = [self.ranks[direction] for direction in DIRECTIONS]
        pooled = Ranks.concatenate(parts)
        ids = (self.kg.entities.ids, self.kg.relations.ids, self.kg.entities.ids)
        columns: dict[str, Any] = {
            name: pa.concat_arrays([source.take(pa.array(self.triples[:, place]))] * len(parts))
            for place, (name, source) in enumerate(zip(("head", "relation", "tail"), ids, strict=True))
        }
        columns["asked"] = np.repeat(DIRECTIONS, len(self.triples))
        columns |= {name: getattr(pooled, name) for name in ("greater", "equal", "candidates")}
        columns["rank"] = pooled.rank(self.config.ties)
        about = {"dataset": self.kg.name, "split": self.split, **self.config.model_dump()}
        return pa.table(columns, metadata={METADATA: json.dumps(about)})

    def save_ranks(self, file: Path | str) -> None:
        """Write `rank_table` to a Parquet file."""
        with atomic_write(Path(file)) as part:
            pq.write_table(self.rank_table(), part)


def metrics_table(title: str, metrics: dict[str, dict[str, float]]) -> Table:
    """A row for each direction that was asked, for a terminal."""
    table = Table(title=title, title_justify="left")
    for column in ("direction", "MRR", *(f"Hits@{k}" for k in HITS), "mean rank", "adjusted (AMRI)"):
        table.add_column(column, justify="left" if column == "direction" else "right")
    for name, values in metrics.items():
        if values["count"]:
            shares = (f"{values[metric]:.3f}" for metric in ("mrr", *(f"hits@{k}" for k in HITS)))
            adjusted = f"{values['amri']:.3f}" if "amri" in values else "unknown"
            table.add_row(name, *shares, f"{values['mr']:,.1f}", adjusted)
    return table
