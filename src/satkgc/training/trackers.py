"""Where else the log of a run goes: TensorBoard, Weights & Biases, MLflow or trackio, each where it is installed.

A resumed run goes on in the run that it began there; `tracker.json` in its folder keeps the name that the tracker knows
it by, where that is needed. What other computers are told, and where, is the tracker's own setting (`WANDB_MODE`,
`MLFLOW_TRACKING_URI`).
"""

from __future__ import annotations

import importlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

PROJECT = "satkgc"
IDS = "tracker.json"


@dataclass(frozen=True)
class Tracker:
    """Called with every record of the log; `close` when no more come."""

    send: Callable[[dict[str, float], int], None]  # numbers by their names, and the step
    close: Callable[[], object] = lambda: None

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Send the numbers of a record."""
        self.send(_numbers(record), record["step"])


def make_tracker(kind: str | None, folder: Path, step: int = 0) -> Tracker | None:
    """A tracker of the run in a folder, which goes on after a step."""
    if kind is None:
        return None
    try:
        return TRACKERS[kind](folder, step)
    except ImportError as error:
        raise SatkgcError(
            f"training.tracker is {kind}, which is not installed", remedy=f"pip install {kind}, or set it to none"
        ) from error


def _tensorboard(folder: Path, step: int) -> Tracker:
    # What was logged after the checkpoint that the run goes on from is logged again.
    purge = {"purge_step": step + 1} if step else {}
    writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"), **purge)

    def send(numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return Tracker(send, writer.close)


def _wandb(folder: Path, step: int) -> Tracker:
    wandb = importlib.import_module("wandb")
    id = _id(folder, "wandb", lambda: uuid.uuid4().hex)
    run = wandb.init(project=PROJECT, name=_title(folder), id=id, resume="allow", dir=str(folder), reinit="create_new")
    return Tracker(lambda numbers, step: run.log(numbers, step=step), run.finish)


def _mlflow(folder: Path, step: int) -> Tracker:
    mlflow, entities = importlib.import_module("mlflow"), importlib.import_module("mlflow.entities")
    client = mlflow.MlflowClient()  # mlflow.start_run would have one run at a time, and experts are several

    def begin() -> str:
        experiment = client.get_experiment_by_name(PROJECT)
        place = client.create_experiment(PROJECT) if experiment is None else experiment.experiment_id
        return str(client.create_run(place, run_name=_title(folder)).info.run_id)

    id = _id(folder, "mlflow", begin)
    client.update_run(id, status="RUNNING")

    def send(numbers: dict[str, float], step: int) -> None:
        now = int(1000 * time.time())
        names = {name: name.replace("@", "_at_") for name in numbers}  # it has no @ in names
        client.log_batch(id, [entities.Metric(names[name], value, now, step) for name, value in numbers.items()])

    return Tracker(send, lambda: client.set_terminated(id))


def _trackio(folder: Path, step: int) -> Tracker:
    trackio = importlib.import_module("trackio")
    trackio.init(project=PROJECT, name=_title(folder), resume="allow")
    return Tracker(lambda numbers, step: trackio.log(numbers, step=step), trackio.finish)


TRACKERS: dict[str, Callable[[Path, int], Tracker]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}


def _title(folder: Path) -> str:
    """The run's name; an expert has that of the whole run before its own."""
    expert = folder.parent.name == "experts"
    return f"{folder.parent.parent.name}-{folder.name}" if expert else folder.name


def _id(folder: Path, kind: str, make: Callable[[], str]) -> str:
    """What the tracker calls this run: as it was kept, or a new one."""
    file = folder / IDS
    try:
        ids = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if kind not in ids:
            ids[kind] = make()
            with atomic_write(file) as part:
                part.write_text(json.dumps(ids) + "\n", encoding="utf-8")
        return str(ids[kind])
    except (ValueError, TypeError) as error:
        remedy = "remove it; the tracker begins a new run"
        raise SatkgcError("this is not what training wrote", where=file, remedy=remedy) from error


def _numbers(record: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            numbers |= _numbers(value, f"{prefix}{name}/")
        elif name != "step" and isinstance(value, int | float):
            numbers[f"{prefix}{name}"] = value
    return numbers
