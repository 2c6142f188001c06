"""A state comes back whole, and only into the model it is of."""

from __future__ import annotations

import pytest
import torch
from tasks import Task

from satkgc.errors import SatkgcError
from satkgc.training.checkpoint import Checkpoints
from satkgc.training.config import TrainingConfig
from satkgc.training.run import replace_folder
from satkgc.training.state import State

CONFIG = TrainingConfig(average=0.9, learning_rate=1e-3)


def moved(backbone, steps, **encoder):
    """A state after a few steps of training."""
    task = Task(backbone, **encoder)
    state = State(task.towers, task.objective, CONFIG)
    return task, go_on(task, state, steps)


def go_on(task, state, steps):
    for _ in range(steps):
        found = task.step()
        for name, parameter in state.named.items():
            parameter.grad = found[name.split(".", 1)[1]]
        state.optimizer.step()
        state.optimizer.zero_grad()
        state.step += 1
        state.average.update(state.step)
    return state


@pytest.mark.parametrize("tied", [False, True])
def test_it_goes_on_as_if_it_had_not_stopped(tiny_backbone, tmp_path, tied):
    task, state = moved(tiny_backbone, 2, tied=tied)
    state.best = {"step": 1, "mrr": 0.25}
    checkpoints = Checkpoints(tmp_path)
    saved = checkpoints.save("step-00000002", state.tensors(), {}, state.facts())
    go_on(task, state, 2)

    other, restored = moved(tiny_backbone, 0, tied=tied)
    tensors, _, facts = checkpoints.read(saved)
    restored.restore(tensors, facts)
    assert (restored.step, restored.best, restored.best_name) == (2, {"step": 1, "mrr": 0.25}, "best-00000001")
    go_on(other, restored, 2)
    for name, value in state.weights().items():
        assert torch.equal(value, restored.weights()[name]), name
    for left, right in zip(state.average.values, restored.average.values, strict=True):
        assert torch.equal(left, right)


def test_a_tied_model_is_saved_once(tiny_backbone):
    _, state = moved(tiny_backbone, 0, tied=True)
    assert not any(name.startswith("towers.entity.") for name in state.weights())


def test_the_weights_of_another_model_are_refused(tiny_backbone):
    _, tied = moved(tiny_backbone, 0, tied=True)
    _, untied = moved(tiny_backbone, 0)
    with pytest.raises(SatkgcError, match="of another model"):
        untied.load_weights(tied.weights())
    wrong = {name: value.flatten() for name, value in untied.weights().items()}
    with pytest.raises(SatkgcError, match="of another model"):
        untied.load_weights(wrong)


def test_a_folder_takes_the_place_of_another(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    replace_folder(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "new"]
    (tmp_path / "next").mkdir()
    replace_folder(tmp_path / "next", tmp_path / "fresh")
    assert (tmp_path / "fresh").is_dir()


def test_a_folder_that_cannot_be_replaced_is_not_lost(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "weights").write_text("trained")
    with pytest.raises(FileNotFoundError):
        replace_folder(tmp_path / "gone meanwhile", tmp_path / "old")
    assert [file.read_text() for file in tmp_path.rglob("weights")] == ["trained"]
