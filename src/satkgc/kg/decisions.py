"""What people decided about statements: one append-only file of JSON lines, in which the last word counts."""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, sync
from satkgc.manifest import SUM, own_sum

log = logging.getLogger("satkgc.kg")

DECISIONS = "decisions.jsonl"  # in a run folder
DIGITS = 16  # of a line's own sum
Verdict = Literal["accept", "reject", "skip", "open"]  # open: taken back
Statement = tuple[str, str, str]  # ids of head, relation, tail


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict on a statement, with what the model had said of it."""

    head: str
    relation: str
    tail: str
    verdict: Verdict
    head_name: str = ""
    relation_name: str = ""
    tail_name: str = ""
    score: float | None = None
    probability: float | None = None
    at: str = ""  # UTC

    @property
    def statement(self) -> Statement:
        """What it is about."""
        return self.head, self.relation, self.tail


class Decisions:
    """A file of decisions: read as it grows, also by other processes, and appended to.

    A decision is on the disk when `add` returns. A process that is killed leaves at worst a torn last line, which says
    nothing; the next decision begins a line of its own. May be used from several threads.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._read = self._lines = 0  # bytes and lines
        self._last: dict[Statement, Decision] = {}

    def last(self) -> dict[Statement, Decision]:
        """The last decision on each statement, in the order in which they were made; not those taken back."""
        with self._lock:
            self._catch_up()
            return dict(self._last)

    def add(self, decision: Decision) -> None:
        """Append a decision, with the time of day where it has none."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = _line(replace(decision, at=decision.at or now))
        with self._lock:
            try:
                if not self.file.exists():
                    self.file.touch()
                    sync(self.file.parent)
                _append(self.file, line)
            except OSError as error:
                remedy = "nothing of it counts: make room or give write access, and decide again"
                raise SatkgcError(
                    f"the decision cannot be written ({error.strerror})", where=self.file, remedy=remedy
                ) from error

    def check_writable(self) -> None:
        """Refuse a place where decisions cannot be kept, before the first is made."""
        folder_or_file = self.file if self.file.exists() else self.file.parent
        if not os.access(folder_or_file, os.W_OK):
            remedy = "give write access, or copy the run"
            raise SatkgcError("decisions cannot be written here", where=self.file, remedy=remedy)

    def _catch_up(self) -> None:
        try:
            with self.file.open("rb") as stream:
                if os.fstat(stream.fileno()).st_size < self._read:  # another file has taken its name
                    self._read, self._lines, self._last = 0, 0, {}
                stream.seek(self._read)
                whole, newline, _ = stream.read().rpartition(b"\n")
        except FileNotFoundError:
            self._read, self._lines, self._last = 0, 0, {}
            return
        except OSError as error:
            raise SatkgcError(f"cannot read the decisions ({error.strerror})", where=self.file) from error
        for line in whole.split(b"\n") if newline else ():
            self._lines += 1
            if (decision := _parse(line)) is None:
                log.warning("%s:%d: no decision, left out: the line was torn or altered", self.file, self._lines)
                continue
            self._last.pop(decision.statement, None)
            if decision.verdict != "open":
                self._last[decision.statement] = decision
        self._read += len(whole) + len(newline)


def read_decisions(run: Path) -> dict[Statement, Decision]:
    """The last decision on each statement that the run folder has; none where nobody decided anything."""
    return Decisions(run / DECISIONS).last()


def all_decisions(file: Path) -> bool:
    """Whether each line that was finished is a decision as it was written."""
    return None not in map(_parse, file.read_bytes().split(b"\n")[:-1])


def carry_rejections(run: Path, other: Path) -> None:
    """Write what was rejected in a run into another one's folder, in the place of decisions that lie there."""
    lines = [_line(decision) for decision in read_decisions(run).values() if decision.verdict == "reject"]
    if lines:
        with atomic_write(other / DECISIONS) as part:
            part.write_bytes(b"".join(lines))


def _line(decision: Decision) -> bytes:
    content = {name: value for name, value in asdict(decision).items() if value not in (None, "")}
    return json.dumps({**content, SUM: own_sum(content)[:DIGITS]}, ensure_ascii=False).encode() + b"\n"


def _append(file: Path, line: bytes) -> None:
    with file.open("a+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        if size:
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":  # the last line is torn
                line = b"\n" + line
        written = 0
        try:
            while written < len(line):
                written += stream.write(line[written:])
            os.fsync(stream.fileno())
        except OSError:
            if stream.seek(0, os.SEEK_END) == size + written:  # nobody has gone on after it: it never was
                stream.truncate(size)
            raise


_NUMBERS = ("score", "probability")


def _parse(line: bytes) -> Decision | None:
    try:
        content: dict[str, Any] = json.loads(line)
        expected = content.pop(SUM, None)  # earlier versions wrote none
        if expected is not None and expected != own_sum(content)[:DIGITS]:
            return None
        decision = Decision(**{f.name: content[f.name] for f in fields(Decision) if f.name in content})
    except (ValueError, TypeError, AttributeError):
        return None
    texts = (value for name, value in asdict(decision).items() if name not in _NUMBERS)
    numbers = (getattr(decision, name) for name in _NUMBERS)
    sound = all(isinstance(text, str) for text in texts) and all(isinstance(n, float | int | None) for n in numbers)
    return decision if sound and decision.verdict in get_args(Verdict) else None
