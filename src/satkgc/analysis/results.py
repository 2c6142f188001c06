"""A result: what one run achieved and all that is needed to believe it, as one JSON file in `results/`."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, make_folder

# The names of evaluation, again: importing them would load torch to make a table.
SHARES = ("mrr", "hits@1", "hits@3", "hits@10")  # metrics between 0 and 1
TIES = ("optimistic", "realistic", "pessimistic")
SIDES = ("head", "tail", "both")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The metrics of one evaluation and how the ranks were taken."""

    split: str
    candidates: str  # in words: "all entities", "1,000 sampled of all entities"
    ties: str
    head: dict[str, float]
    tail: dict[str, float]
    both: dict[str, float]  # the mean of the two directions
    rerank: dict[str, float] | None = None
    breakdown: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ties not in TIES:
            raise SatkgcError(f"unknown tie rule {self.ties!r}", remedy=f"it is one of {', '.join(TIES)}")
        for side in SIDES:
            for name in SHARES:
                value = getattr(self, side).get(name)
                if not isinstance(value, float | int) or not 0 <= value <= 1:
                    raise SatkgcError(f"{side}.{name} is {value!r}", remedy="a metric lies between 0 and 1")
        for name in SHARES:
            if not math.isclose(self.both[name], (self.head[name] + self.tail[name]) / 2, abs_tol=2e-5):
                raise SatkgcError(f"both.{name} is not the mean of head and tail")

    @staticmethod
    def parts_of(report: dict[str, Any]) -> dict[str, Any]:
        """What is kept of an evaluation report's JSON."""
        return {part.name: report[part.name] for part in fields(Evaluation)}


@dataclass(frozen=True, kw_only=True)
class Result(Evaluation):
    """One trained run, and its evaluation on test."""

    row: str  # the name of the experiment, and of the file
    dataset: str
    recipe: str
    backbone: str
    seed: int
    steps: int
    epochs: float
    minutes: float  # of the training steps; validation and saving come on top
    hardware: str
    commit: str
    overrides: dict[str, Any]  # what differs from the recipe
    config: dict[str, Any]  # all settings
    also: list[Evaluation] = field(default_factory=list)  # the same weights, evaluated in other ways
    valid_mrr: float | None = None  # of the weights kept, on all validation triples
    curves: dict[str, list[list[float]]] = field(default_factory=dict)  # name to [step, value] pairs

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("row", "dataset", "recipe", "backbone", "hardware", "commit"):
            if not getattr(self, name):
                raise SatkgcError(f"{name} is empty", remedy="every result says where it comes from")
        if self.steps < 1 or self.minutes <= 0:
            raise SatkgcError(f"{self.steps} steps in {self.minutes} minutes cannot be")

    def to_json(self) -> str:
        """The file's text; figures to six digits, so that a file is the same wherever it is written."""
        text = json.dumps(_rounded(asdict(self)), indent=1, ensure_ascii=False)
        # One set of figures a line: a file has hundreds of them. Strings hold no line ends, so that none is changed.
        return re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda innermost: re.sub(r"\s*\n\s*", " ", innermost[0]), text) + "\n"

    @classmethod
    def from_json(cls, text: str, where: object = None) -> Result:
        """Read and check a file's text."""
        try:
            data = json.loads(text)
            data["also"] = [Evaluation(**other) for other in data.get("also", [])]
            return cls(**data)
        except SatkgcError as error:
            raise SatkgcError(error.what, where=where, remedy=error.remedy) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SatkgcError(f"not a result file: {error}", where=where) from error


def save_result(result: Result, folder: Path) -> Path:
    """Write a result to `folder/ROW.json`, whole or not at all."""
    file = make_folder(folder) / f"{result.row}.json"
    with atomic_write(file) as part:
        part.write_text(result.to_json(), encoding="utf-8")
    return file


def load_results(folder: Path) -> dict[str, Result]:
    """All results of a folder by row name, in the order of the names; none where there is no folder."""
    results = {}
    for file in sorted(folder.glob("*.json")):
        result = Result.from_json(file.read_text(encoding="utf-8"), file)
        if result.row != file.stem:
            raise SatkgcError(f"the result is of row {result.row!r}", where=file, remedy="name the file after its row")
        results[result.row] = result
    return results


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
