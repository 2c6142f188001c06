"""Questions from a file, answers as a stream: files of any length pass through in batches."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from typing import Any

from satkgc.completion.answer import Answer, NewEntity, Question, Role
from satkgc.completion.completer import Completer
from satkgc.errors import SatkgcError
from satkgc.kg import SourceFile, csv_delimiter, triple_rows

BATCH = 256
MISSING = ("", "?")  # what stands in a table for the part that is asked for


def answer_file(
    completer: Completer, file: Path, **defaults: Any
) -> Iterator[tuple[Question, list[Answer] | SatkgcError]]:
    """Read a file's questions and answer them in its order; `defaults` are fields of `Question` that it leaves open.

    A question with a name that is unknown or ambiguous gets the error, with its line, in the place of answers.
    """
    numbered = read_questions(file, **defaults)
    while batch := list(islice(numbered, BATCH)):
        outcomes = completer.ask_each([question for _, question in batch])
        for (line, question), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, SatkgcError):
                outcome = SatkgcError(outcome.what, where=f"{file}:{line}", remedy=outcome.remedy)
            yield question, outcome


def read_questions(file: Path, **defaults: Any) -> Iterator[tuple[int, Question]]:
    """Questions with their line numbers.

    .tsv and .csv have the columns head, relation, tail, one of them empty or "?"; a first line with these three words,
    or others that an import knows, is a header. .jsonl has an object a line with the fields of `Question`; a new
    entity is {"name", "description", "facts"}, a fact {"relation", "side", "other"}.
    """
    read = {".tsv": _table, ".csv": _table, ".jsonl": _objects}.get(file.suffix)
    if read is None:
        raise SatkgcError(
            "cannot tell the form of the questions", where=file, remedy="end the name in .tsv, .csv or .jsonl"
        )
    try:
        for line, record in read(file):
            try:
                yield line, Question(**{**defaults, **_values(record)})
            except SatkgcError as error:
                raise SatkgcError(error.what, where=f"{file}:{line}", remedy=error.remedy) from error
            except (TypeError, AttributeError) as error:
                names = ", ".join(field.name for field in fields(Question))
                raise SatkgcError("not a question", where=f"{file}:{line}", remedy=f"fields are {names}") from error
    except csv.Error as error:
        remedy = "look for a quote that is not closed"
        raise SatkgcError(f"not a table ({error})", where=file, remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SatkgcError("not UTF-8", where=file, remedy="save it as UTF-8") from error
    except OSError as error:
        raise SatkgcError(f"cannot read the questions: {error.strerror}", where=file) from error


def count_questions(file: Path, **defaults: Any) -> int:
    """How many questions a file holds: a bad line is found before a model is loaded and half of the file answered."""
    count = sum(1 for _ in read_questions(file, **defaults))
    if not count:
        raise SatkgcError("no questions", where=file, remedy="write head, relation and tail, with ? for what is asked")
    return count


def _table(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        tabs = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        form = tabs if file.suffix == ".tsv" else {"delimiter": csv_delimiter(SourceFile.of(file))}
        reader = csv.reader(lines, strict=True, **form)
        rows = ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
        for line, row in triple_rows(rows, str(file)):
            if len(row) != 3:
                raise SatkgcError(f"{len(row)} columns", where=f"{file}:{line}", remedy="give head, relation and tail")
            parts = zip(("head", "relation", "tail"), row, strict=True)
            yield line, {name: cell for name, cell in parts if cell not in MISSING}


def _objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SatkgcError("not JSON", where=f"{file}:{number}", remedy="write an object a line") from error


def _values(record: dict[str, Any]) -> dict[str, Any]:
    """JSON's objects and lists as what a question takes."""
    values = dict(record.items())
    for name, kind in (("head", NewEntity), ("tail", NewEntity), ("role", Role)):
        if isinstance(record.get(name), dict):
            parts = dict(record[name])
            if kind is NewEntity and parts.get("facts"):
                parts["facts"] = [_fact(fact) for fact in parts["facts"]]
            values[name] = kind(**parts)
    return values


def _fact(record: Any) -> Role:
    try:
        return Role(**record)
    except TypeError as error:
        raise SatkgcError(f"{record!r} is no fact", remedy="its fields are relation, side and other") from error


def outcome_to_json(question: Question, outcome: list[Answer] | SatkgcError) -> str:
    """One line: the question, and the answers, or why there are none."""
    defaults = {field.name: field.default for field in fields(Question)}
    changed = {name: value for name, value in asdict(question).items() if value != defaults[name]}
    result: dict[str, Any] = {"question": changed}
    if isinstance(outcome, SatkgcError):
        result["error"] = str(outcome)
    else:
        result["answers"] = list(map(answer_to_dict, outcome))
    line = json.dumps(result, ensure_ascii=False)
    return line.encode("utf-8", "backslashreplace").decode()  # half a character, as JSON escapes it


def answer_to_dict(answer: Answer) -> dict[str, Any]:
    """An answer as the command line prints it."""
    parts = {name: getattr(answer, name) for name in ("id", "name", "score", "probability", "known")}
    if answer.experts:
        parts["experts"] = [asdict(expert) for expert in answer.experts]
    if answer.objection is not None:
        parts["objection"] = asdict(answer.objection)
    return parts
