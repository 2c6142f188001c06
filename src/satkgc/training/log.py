"""The run's diary: one JSON object a line, cut back to the checkpoint when a run is resumed."""

from __future__ import annotations

import importlib
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

Record = dict[str, Any]


def read_log(file: Path) -> list[Record]:
    """All whole lines of a log; a process that was killed may have left half a line at its end."""
    records = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


class Log:
    """Collects the losses of steps without waiting for them, and writes them a few at a time.

    Reading a number back from a GPU makes the host wait, so that `write` asks for all at once, and is where a loss
    that is no number is noticed.
    """

    def __init__(
        self,
        file: Path | None,
        step: int,
        tracker: Callable[[Record], None] | None = None,
        validated: int | None = None,
    ) -> None:
        self.file = file  # None on ranks that write nothing
        self.tracker = tracker
        self._waiting: list[tuple[int, Tensor, Tensor]] = []
        self._began = time.perf_counter()
        self._waited = 0.0
        if file is not None:
            last = {True: step if validated is None else validated, False: step}  # validation may come again
            kept = [record for record in read_log(file) if record["step"] <= last["validation" in record]]
            with atomic_write(file) as part:
                part.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")

    def add(self, step: int, loss: Tensor, norm: Tensor) -> None:
        """Remember the loss and the gradient's norm of a step."""
        self._waiting.append((step, loss, norm))

    def write(self, samples: int, waited: float, facts: Mapping[str, Any]) -> Record | None:
        """Write the mean since the last time, of steps of so many samples; `waited` is all the time data took so far.

        A loss or a gradient that is not finite is an error that names the step.
        """
        if not self._waiting:
            return None
        values = torch.stack([torch.stack([loss.float(), norm.float()]) for _, loss, norm in self._waiting]).tolist()
        for (step, _, _), (loss, norm) in zip(self._waiting, values, strict=True):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise SatkgcError(
                    f"the loss of step {step} is {loss}, its gradient's norm {norm}",
                    remedy="go on from the last checkpoint, if there is one, or begin anew, with a lower "
                    "training.learning_rate, a smaller training.clip, or training.precision=float32",
                )
        now = time.perf_counter()
        record = {
            "step": self._waiting[-1][0],
            "loss": sum(loss for loss, _ in values) / len(values),
            "gradient_norm": max(norm for _, norm in values),
            **facts,
            "triples_per_second": samples // 2 * len(values) / (now - self._began),
            "data_wait": (waited - self._waited) / (now - self._began),
        }
        self._waiting, self._waited = [], waited
        self.note(record)
        self.restart_clock()
        return record

    def restart_clock(self) -> None:
        """Leave the time since the last record out of the next one's rates."""
        self._began = time.perf_counter()

    def note(self, record: Record) -> None:
        """Write a line now."""
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
            if self.tracker is not None:
                self.tracker(record)


def make_tracker(kind: str, folder: Path) -> Callable[[Record], None] | None:
    """Where else the log goes: TensorBoard or trackio, if installed."""
    if kind == "none":
        return None
    try:
        if kind == "tensorboard":
            writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))

            def to_tensorboard(record: Record) -> None:
                for name, value in _numbers(record).items():
                    writer.add_scalar(name, value, record["step"])
                writer.flush()

            return to_tensorboard
        trackio = importlib.import_module("trackio")
        trackio.init(project="satkgc", name=folder.name, resume="allow")
        return lambda record: trackio.log(_numbers(record), step=record["step"])
    except ImportError as error:
        raise SatkgcError(
            f"training.tracker is {kind}, which is not installed", remedy=f"pip install {kind}, or set it to none"
        ) from error


def _numbers(record: Record, prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= _numbers(dict(value), f"{prefix}{name}/")
        elif name != "step" and isinstance(value, int | float):
            found[f"{prefix}{name}"] = value
    return found
