"""Pairs of entities as a table for a spreadsheet, with an empty column to accept them in."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from satkgc.completion.cells import escape
from satkgc.completion.duplicates.find import Duplicate
from satkgc.completion.proposals import ACCEPT
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_new

PAIR = ("entity", "duplicate")
DEGREES = ("entity_degree", "duplicate_degree")
NUMBERS = ("score", "name_similarity", "vector_similarity", "shared_similarity")
COLUMNS = [*PAIR, "entity_name", "duplicate_name", NUMBERS[0], ACCEPT, *NUMBERS[1:], "shared", "objection", *DEGREES,
           "entity_description", "duplicate_description"]  # fmt: skip
MOST = 1_000_000  # pairs listed


def check_duplicates_file(out: Path, n: int, min_score: float) -> None:
    """Refuse what cannot be written, before anything is loaded."""
    check_limits(n, min_score)
    check_new(out, ".csv")


def check_limits(n: int, min_score: float) -> None:
    """Refuse numbers that make no sense."""
    if not 1 <= n <= MOST:
        raise SatkgcError(f"n is {n}", remedy=f"ask for 1 to {MOST:,} pairs")
    if not 0 <= min_score <= 1:
        raise SatkgcError(f"the least score is {min_score:g}", remedy="give one from 0 to 1")


def write_duplicates(out: Path, duplicates: Sequence[Duplicate]) -> None:
    """Write the table, and put it in place when it is whole."""
    with atomic_write(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_cells(duplicate) for duplicate in duplicates)


def _cells(duplicate: Duplicate) -> dict[str, str]:
    values = {**vars(duplicate), "shared": "; ".join(duplicate.shared), ACCEPT: "", "objection": duplicate.objection}
    numbers = {name: "" if values[name] is None else f"{values[name]:.4f}" for name in NUMBERS}
    degrees = {name: str(values[name]) for name in DEGREES}
    rest = {name: escape(values[name] or "") for name in COLUMNS if name not in numbers and name not in degrees}
    return rest | numbers | degrees
