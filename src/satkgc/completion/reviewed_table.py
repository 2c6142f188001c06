"""Tables that a person has looked through, in a spreadsheet or an editor: rows, and whether they say yes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from satkgc.completion.cells import unescape
from satkgc.errors import SatkgcError
from satkgc.kg import YES, SourceFile, csv_delimiter

NO = ("no", "n", "", "false", "0")
Record = dict[str, str]


def check_table(file: Path) -> None:
    """Refuse a file whose ending is not that of a table of text."""
    if file.suffix not in (".tsv", ".csv"):
        raise SatkgcError("cannot tell the form of this table", where=file, remedy="end its name in .tsv or .csv")


def reviewed_records(
    file: Path, needed: Sequence[str], column: str | None, command: str
) -> Iterator[tuple[Record, bool, str]]:
    """The rows of a table that have anything in them, whether their column of acceptance says yes, and the place.

    `command` is the one that writes such tables, and `needed` the columns that it always has.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            tabs = file.suffix == ".tsv"
            form: dict[str, Any] = {"delimiter": "\t" if tabs else csv_delimiter(SourceFile.of(file))}
            if tabs and not _quoted(file):
                form["quoting"] = csv.QUOTE_NONE
            reader = csv.DictReader(lines, strict=True, **form)
            missing = [name for name in (*needed, column) if name and name not in (reader.fieldnames or ())]
            if missing:
                remedy = f"give the table that `satkgc {command}` wrote, or name the column with --column"
                raise SatkgcError(f"there is no column {missing[0]!r}", where=f"{file}:1", remedy=remedy)
            for record in reader:
                where = f"{file}:{reader.line_num}"
                if not any(isinstance(cell, str) and cell.strip() for cell in record.values()):
                    continue  # a row that was emptied
                verdict = ((record[column] if column else None) or "").strip().lower()
                if verdict not in YES + NO:
                    raise SatkgcError(f"{column} is {verdict!r}", where=where, remedy="write yes, or leave it empty")
                yield record, verdict in YES, where
    except csv.Error as error:
        where, remedy = f"{file}:{reader.line_num}", "look for a quote that is not closed"
        raise SatkgcError(f"not a table ({error})", where=where, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SatkgcError("not UTF-8", where=file, remedy="save it as CSV in UTF-8") from error
    except OSError as error:
        raise SatkgcError(f"cannot read the table: {error.strerror}", where=file) from error


def cell(record: Record, name: str) -> str:
    """A text as it was before it was escaped for a spreadsheet; empty where there is none."""
    return unescape(record.get(name) or "")  # with spaces around it: an id may have some


def number(record: Record, name: str, where: str) -> float | None:
    """A number, or None where the cell is empty."""
    text = (record.get(name) or "").strip()
    try:
        value = float(text.replace(",", ".")) if text else None  # a spreadsheet may have written a decimal comma
        if value is not None and not math.isfinite(value):
            raise ValueError(text)
        return value
    except ValueError as error:
        raise SatkgcError(f"{name} is {text!r}", where=where, remedy="leave the numbers as they were") from error


def _quoted(file: Path) -> bool:
    """Whether cells of a TSV file stand in quotes, all that need it and no others.

    So do a spreadsheet and the page of `satkgc serve`; `satkgc propose` has none: there a quote is one.
    """
    with file.open(encoding="utf-8-sig", newline="") as lines:
        text = lines.read()
    again = io.StringIO(newline="")
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
        csv.writer(again, delimiter="\t", lineterminator="\n").writerows(rows)
    except csv.Error:
        return False
    return again.getvalue().replace("\r\n", "\n").rstrip("\n") == text.replace("\r\n", "\n").rstrip("\n")
