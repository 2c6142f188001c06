"""The log in trackers: TensorBoard for real, through a stop and a resume; the others by stand-ins with their calls."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

from satkgc.errors import SatkgcError
from satkgc.training import train_or_stop
from satkgc.training.log import Log, read_log
from satkgc.training.trackers import TRACKERS, make_tracker
from tasks import small_graph

RECORD = {"step": 3, "validation": {"both": {"hits@1": 0.5}}, "name": "x", "metrics": {"beta": 0.1}}
NUMBERS = {"validation/both/hits@1": 0.5, "metrics/beta": 0.1}


@pytest.mark.parametrize("kind", TRACKERS)
def test_one_that_is_not_installed_is_refused_in_one_line(kind, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard" if kind == "tensorboard" else kind, None)
    with pytest.raises(SatkgcError) as refusal:
        make_tracker(kind, tmp_path)
    line = f"training.tracker is {kind}, which is not installed; pip install {kind}, or set it to none"
    assert str(refusal.value) == line


def test_none_is_none(tmp_path) -> None:
    assert make_tracker(None, tmp_path) is None


def test_tensorboard_has_the_log_of_a_run_that_was_stopped_and_resumed(tmp_path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    settings = {
        "model.dim": 8, "training.steps": 12, "training.log_steps": 1, "training.tracker": "tensorboard",
        "training.device": "cpu", "training.validations": 2, "training.checkpoint_minutes": 0.0,
        "sampling.batch_size": 32,
    }  # fmt: skip

    class Stop(Exception):
        pass

    def stop(step: int, *rest: Any) -> None:
        if step == 8:
            raise Stop

    with pytest.raises(Stop):
        train_or_stop(small_graph(), "distmult", tmp_path / "run", overrides=settings, callbacks=[stop])
    train_or_stop(small_graph(), out=tmp_path / "run", resume=True)
    events = accumulator.EventAccumulator(str(tmp_path / "run" / "tensorboard"), purge_orphaned_data=True)
    events.Reload()
    log = [record for record in read_log(tmp_path / "run" / "log.jsonl") if "loss" in record]
    assert [record["step"] for record in log] == list(range(1, 13))
    sent = events.Scalars("loss")
    assert [event.step for event in sent] == list(range(1, 13))
    assert [event.value for event in sent] == pytest.approx([record["loss"] for record in log], rel=1e-5)
    assert [event.step for event in events.Scalars("validation/both/mrr")] == [6, 12]


def test_tensorboard_forgets_what_was_logged_after_the_checkpoint(tmp_path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for begin, end, value in ((0, 9, 1.0), (5, 7, 2.0)):
        tracker = make_tracker("tensorboard", tmp_path, begin)
        for step in range(begin + 1, end + 1):
            tracker({"step": step, "loss": value})
        tracker.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [*((s, 1.0) for s in range(1, 6)), (6, 2.0), (7, 2.0)]


class Service:
    """Stands in for what wandb, MLflow and trackio keep: by run, what was sent, and how often it was closed."""

    def __init__(self) -> None:
        self.sent: dict[str, list[tuple[int, dict[str, float]]]] = {}
        self.titles: list[str] = []
        self.closed = 0

    def open(self, id: str, title: str) -> types.SimpleNamespace:
        self.titles.append(title)
        rows = self.sent.setdefault(id, [])
        return types.SimpleNamespace(log=lambda numbers, step: rows.append((step, numbers)), finish=self.close)

    def close(self, *run: object) -> None:
        self.closed += 1


def stand_in(kind: str, service: Service) -> dict[str, Any]:
    """Modules with the calls that are made of the real ones."""
    if kind == "wandb":

        def init(project: str, name: str, id: str, resume: str, dir: str, reinit: str) -> Any:
            assert (project, resume, reinit) == ("satkgc", "allow", "create_new")
            return service.open(id, name)

        return {"wandb": types.SimpleNamespace(init=init)}
    if kind == "trackio":

        def begin(project: str, name: str, resume: str) -> None:
            assert resume == "allow"
            module.log = service.open(name, name).log

        module = types.SimpleNamespace(init=begin, finish=service.close)
        return {"trackio": module}

    class Client:
        def get_experiment_by_name(self, name: str) -> Any:
            return types.SimpleNamespace(experiment_id="7") if service.sent else None

        def create_experiment(self, name: str) -> str:
            return "7"

        def create_run(self, experiment: str, run_name: str) -> Any:
            assert experiment == "7"
            id = f"run{len(service.sent)}"
            service.open(id, run_name)
            return types.SimpleNamespace(info=types.SimpleNamespace(run_id=id))

        def update_run(self, id: str, status: str) -> None:
            assert status == "RUNNING"

        def log_batch(self, id: str, metrics: list[tuple[str, float, int, int]]) -> None:
            assert not any("@" in name for name, *_ in metrics)
            numbers = {name.replace("_at_", "@"): value for name, value, *_ in metrics}
            service.sent[id].append((metrics[0][3], numbers))

        set_terminated = service.close

    metric = types.SimpleNamespace(Metric=lambda name, value, time, step: (name, value, time, step))
    return {"mlflow": types.SimpleNamespace(MlflowClient=Client), "mlflow.entities": metric}


@pytest.mark.parametrize("kind", ["wandb", "mlflow", "trackio"])
def test_the_others_get_the_numbers_and_go_on_in_the_same_run(kind, tmp_path, monkeypatch) -> None:
    service = Service()
    for name, module in stand_in(kind, service).items():
        monkeypatch.setitem(sys.modules, name, module)
    folder = tmp_path / "mine" / "experts" / "text"
    folder.mkdir(parents=True)
    for step in (3, 4):
        tracker = make_tracker(kind, folder, step - 1)
        Log(folder / "log.jsonl", step - 1, tracker).note(RECORD | {"step": step})
        tracker.close()
    assert list(service.sent.values()) == [[(3, NUMBERS), (4, NUMBERS)]]
    assert set(service.titles) == {"mine-text"}
    assert service.closed == 2
    (tmp_path / "other").mkdir()
    make_tracker(kind, tmp_path / "other")(RECORD)
    assert [len(rows) for rows in service.sent.values()] == [2, 1]


def test_a_spoilt_file_of_ids_is_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", stand_in("wandb", Service())["wandb"])
    for spoilt in ("{", "[1]", json.dumps(7)):
        (tmp_path / "tracker.json").write_text(spoilt)
        with pytest.raises(SatkgcError, match=r"tracker.json: this is not what training wrote; remove it"):
            make_tracker("wandb", tmp_path)
