"""Proposals that a person has looked through: the rows of the table that were accepted, in another form."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from satkgc.completion.cells import unescape
from satkgc.completion.proposals import ACCEPT, COLUMNS, DESCRIPTIONS, Row, check_ending, write_triples
from satkgc.errors import SatkgcError
from satkgc.files import check_writable
from satkgc.kg import SourceFile, csv_delimiter

YES = ("yes", "y", "x", "true", "1")
NO = ("no", "n", "", "false", "0")


def accept_proposals(reviewed: str | Path, out: str | Path, column: str = ACCEPT) -> tuple[int, int]:
    """Write the rows of a .tsv or .csv of proposals whose column says yes; how many those are, and of how many."""
    reviewed, out = Path(reviewed), Path(out)
    check_ending(check_writable(out))
    if out.exists():
        raise SatkgcError("the file is there already", where=out, remedy="choose another name, or remove it")
    if reviewed.suffix not in (".tsv", ".csv"):
        raise SatkgcError("cannot tell the form of this table", where=reviewed, remedy="end its name in .tsv or .csv")
    rows = list(_rows(reviewed, column))
    accepted = [row for row, yes in rows if yes]
    if not accepted:
        remedy = "write yes where a triple is right, and save it"
        raise SatkgcError(f"no row says yes in column {column!r}", where=reviewed, remedy=remedy)
    return write_triples(out, [accepted]), len(rows)


def _rows(file: Path, column: str) -> Iterator[tuple[Row, bool]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            tabs = file.suffix == ".tsv"
            form: dict[str, Any] = {"delimiter": "\t" if tabs else csv_delimiter(SourceFile.of(file))}
            if tabs and not _quoted(file):
                form["quoting"] = csv.QUOTE_NONE
            reader = csv.DictReader(lines, strict=True, **form)
            missing = [name for name in (*COLUMNS[:3], column) if name not in (reader.fieldnames or ())]
            if missing:
                remedy = "give the table that `satkgc propose` wrote, or name the column with --column"
                raise SatkgcError(f"there is no column {missing[0]!r}", where=f"{file}:1", remedy=remedy)
            for record in reader:
                where = f"{file}:{reader.line_num}"
                if not any(isinstance(cell, str) and cell.strip() for cell in record.values()):
                    continue  # a row that was emptied
                verdict = (record[column] or "").strip().lower()
                if verdict not in YES + NO:
                    raise SatkgcError(f"{column} is {verdict!r}", where=where, remedy="write yes, or leave it empty")
                words = [unescape((record.get(name) or "").strip()) for name in (*COLUMNS[:6], *DESCRIPTIONS)]
                head, relation, tail, *names = words
                if not (head and relation and tail):
                    raise SatkgcError("a triple without head, relation or tail", where=where, remedy="fill it in")
                score, probability = (_number(record, name, where) for name in COLUMNS[6:])
                row = head, relation, tail, names[0], names[1], names[2], score or 0.0, probability, names[3], names[4]
                yield row, verdict in YES
    except csv.Error as error:
        where, remedy = f"{file}:{reader.line_num}", "look for a quote that is not closed"
        raise SatkgcError(f"not a table ({error})", where=where, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SatkgcError("not UTF-8", where=file, remedy="save it as CSV in UTF-8") from error
    except OSError as error:
        raise SatkgcError(f"cannot read the table: {error.strerror}", where=file) from error


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


def _number(record: dict[str, str], name: str, where: str) -> float | None:
    text = (record.get(name) or "").strip()
    try:
        return float(text.replace(",", ".")) if text else None  # a spreadsheet may have written a decimal comma
    except ValueError as error:
        raise SatkgcError(f"{name} is {text!r}", where=where, remedy="leave the numbers as they were") from error
