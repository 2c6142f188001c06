"""The experiments by name, from rows.toml: what `satkgc reproduce` does and what the tables show."""

from __future__ import annotations

import difflib
import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError

MPNET = "all-mpnet-base-v2"
SEEDS = (0, 1)
_FILE = Path(__file__).parent / "rows.toml"


@dataclass(frozen=True)
class Row:
    """One experiment: a recipe on a dataset with a backbone and a seed, and what it changes."""

    name: str
    group: str  # the table it belongs to
    label: str  # what the table calls it
    dataset: str
    recipe: str
    backbone: str = MPNET
    seed: int = 0
    overrides: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None  # the figure to compare with
    sampled: int = 0  # evaluated among so many sampled candidates too


@cache
def table_rows(file: Path = _FILE) -> tuple[Row, ...]:
    """The rows of all tables in the file's order; a row that stands in several tables comes once for each."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = [Row(**entry) for entry in data["row"]]
    for family in data["family"]:
        known = {_experiment(row): row for row in reversed(rows)}
        for row in _unfold(family, data["shared"], data["backbones"]):
            first = known.get(_experiment(row), row)  # the same experiment under another label is not done again
            rows.append(replace(first, group=row.group, label=row.label, paper=row.paper))
    return tuple(rows)


def load_rows() -> dict[str, Row]:
    """All rows by name; one in several tables as it is in the first."""
    rows: dict[str, Row] = {}
    for row in table_rows():
        rows.setdefault(row.name, row)
    return rows


@cache
def load_groups(file: Path = _FILE) -> dict[str, str]:
    """The titles of the tables, in order."""
    return tomllib.loads(file.read_text(encoding="utf-8"))["groups"]


def find_row(name: str) -> Row:
    """A row by its name; an unknown one is answered with those that look like it."""
    rows = load_rows()
    if name not in rows:
        near = difflib.get_close_matches(name, rows, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`satkgc reproduce --list` shows them all"
        raise SatkgcError(f"unknown row {name!r}", remedy=hint)
    return rows[name]


def _unfold(family: dict[str, Any], shared: dict[str, Any], needs: dict[str, Any]) -> Iterator[Row]:
    choices = itertools.product(family["datasets"], family["variants"], family["backbones"], SEEDS)
    for dataset, variant, backbone, seed in choices:
        ending = ("" if backbone == MPNET else f"-{backbone}") + (f"-seed{seed}" if seed else "")
        yield Row(
            name=f"{dataset.lower()}-{family['name']}-{variant['name']}{ending}",
            group=family["name"],
            label=variant["label"],
            dataset=dataset,
            recipe=variant["recipe"],
            backbone=backbone,
            seed=seed,
            overrides={**shared[dataset], **needs[backbone], **variant.get("overrides", {})},
            paper=variant.get("paper"),
        )


def _experiment(row: Row) -> tuple[Any, ...]:
    """What makes two rows the same experiment, whatever they are called."""
    return row.dataset, row.recipe, row.backbone, row.seed, tuple(sorted(row.overrides.items()))
