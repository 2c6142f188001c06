"""The log of a run: one JSON object a line, cut back to the checkpoint when a run is resumed; and its curves."""

from __future__ import annotations

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
        self._waiting: list[tuple[int, dict[str, Tensor]]] = []
        self._began = time.perf_counter()
        self._waited = 0.0
        if file is not None:
            last = {True: step if validated is None else validated, False: step}  # validation may come again
            kept = [record for record in read_log(file) if record["step"] <= last["validation" in record]]
            with atomic_write(file) as part:
                part.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")

    def add(self, step: int, metrics: Mapping[str, Tensor]) -> None:
        """Remember the metrics of a step: "loss", "gradient_norm" and what the model has besides."""
        self._waiting.append((step, dict(metrics)))

    def write(self, samples: int, waited: float, facts: Mapping[str, Any]) -> Record | None:
        """Write the means since the last time, of steps of so many samples; `waited` is all the time data took so far.

        A loss or a gradient that is not finite is an error that names the step.
        """
        if not self._waiting:
            return None
        names = list(self._waiting[-1][1])
        numbers = torch.stack([metrics[name].float() for _, metrics in self._waiting for name in names])
        values = [dict(zip(names, row, strict=True)) for row in numbers.view(-1, len(names)).tolist()]
        for (step, _), metrics in zip(self._waiting, values, strict=True):
            loss, norm = metrics["loss"], metrics["gradient_norm"]
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise SatkgcError(
                    f"the loss of step {step} is {loss}, its gradient's norm {norm}",
                    remedy="go on from the last checkpoint, if there is one, or begin anew, with a lower "
                    "training.learning_rate, a smaller training.clip, or training.precision=float32",
                )
        now = time.perf_counter()
        last = values[-1]
        record = {
            "step": self._waiting[-1][0],
            "loss": sum(metrics["loss"] for metrics in values) / len(values),
            "gradient_norm": max(metrics["gradient_norm"] for metrics in values),
            **facts,
            "triples_per_second": samples // 2 * len(values) / (now - self._began),
            "data_wait": (waited - self._waited) / (now - self._began),
            "metrics": {name: last[name] for name in names if name not in ("loss", "gradient_norm")},
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


def draw_curves(log: list[Record], file: Path) -> None:
    """The run in one picture: the loss and, where there was validation, MRR, Hits@1 and Hits@10."""
    from matplotlib.figure import Figure  # without pyplot, which would look for a screen

    validations = [record for record in log if "validation" in record]
    steps = [record for record in log if "loss" in record]
    figure = Figure(figsize=(10, 4) if validations else (5, 4), layout="constrained")
    axes = figure.subplots(1, 2 if validations else 1, squeeze=False)[0]
    axes[0].plot([r["step"] for r in steps], [r["loss"] for r in steps], color="#2b6cb0")
    axes[0].set(xlabel="step", ylabel="loss", title="Loss")
    if validations:
        at = [r["step"] for r in validations]
        for name, style in (("mrr", "o-"), ("hits@1", "s--"), ("hits@10", "^:")):
            axes[1].plot(at, [r["validation"]["both"][name] for r in validations], style, label=name)
        axes[1].set(xlabel="step", title="Validation, filtered", ylim=(0, None))
        axes[1].legend()
    for ax in axes:
        ax.grid(alpha=0.3)
    with atomic_write(file) as part:
        figure.savefig(part, dpi=120, format="png")
