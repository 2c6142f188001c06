"""A state comes back whole, and only into the model it is of; the learning rate and the parameter groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.training import TrainingConfig
from satkgc.training.checkpoint import Checkpoints
from satkgc.training.state import State, clip, make_optimizer, schedule, set_learning_rate
from tasks import Task

CONFIG = TrainingConfig(learning_rate=1e-3)


def moved(backbone, steps, **encoder):
    """A state after a few steps of training."""
    task = Task(backbone, **encoder)
    return task, go_on(task, State(task.model, CONFIG), steps)


def go_on(task, state, steps):
    for _ in range(steps):
        gradients = task.step()
        for name, parameter in state.named.items():
            parameter.grad = gradients.get(name)
        state.optimizer.step()
        state.optimizer.zero_grad()
        state.step += 1
    return state


@pytest.mark.parametrize("tied", [False, True])
def test_it_goes_on_as_if_it_had_not_stopped(tiny_backbone, tmp_path, tied):
    task, state = moved(tiny_backbone, 2, tied=tied)
    state.best = {"step": 1, "mrr": 0.25}
    state.validated = 1
    checkpoints = Checkpoints(tmp_path)
    saved = checkpoints.save("step-00000002", state.tensors(), {}, state.facts())
    go_on(task, state, 2)

    other, restored = moved(tiny_backbone, 0, tied=tied)
    tensors, _, facts = checkpoints.read(saved)
    restored.restore(tensors, facts)
    assert (restored.step, restored.best, restored.best_name) == (2, {"step": 1, "mrr": 0.25}, "best-00000001")
    assert restored.validated == 1
    go_on(other, restored, 2)
    before, after = state.tensors(), restored.tensors()
    assert before["optimizer"]
    for group, values in before.items():
        assert values.keys() == after[group].keys()
        for name, value in values.items():
            assert torch.equal(value, after[group][name]), name


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


def test_the_rate_rises_over_the_warm_up_and_falls_to_zero():
    rates = [schedule(step, 8000, 400) for step in range(8000)]
    assert rates[0] == 1 / 400
    assert rates[399] == rates[400] == 1  # the peak
    assert np.allclose(np.diff(rates[400:]), -1 / 7600)
    assert rates[-1] == pytest.approx(1 / 7600)


@pytest.mark.parametrize("steps", [1, 5, 10, 100, 1000])
def test_a_short_run_is_not_all_warm_up(steps):
    rates = [schedule(step, steps, 400) for step in range(steps)]
    assert max(rates) == 1
    assert min(rates) > 0
    assert np.argmax(rates) <= steps / 10


def test_only_matrices_decay(tiny_backbone):
    task = Task(tiny_backbone, tied=True)
    optimizer = make_optimizer(task.model, TrainingConfig(weight_decay=0.1, learning_rate=1e-3))
    set_learning_rate(optimizer, 0.5)
    groups = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert id(parameter) not in groups
            groups[id(parameter)] = group
    for parameter in task.model.parameters():
        group = groups[id(parameter)]
        assert (group["weight_decay"], group["lr"]) == (0.1 if parameter.ndim >= 2 else 0, 0.5)


def test_what_is_not_trained_is_not_in_the_optimizer(tiny_backbone):
    task = Task(tiny_backbone)
    task.model.contrastive.beta.requires_grad_(False)
    optimizer = make_optimizer(task.model, CONFIG)
    assert not any(task.model.contrastive.beta is p for group in optimizer.param_groups for p in group["params"])


def test_gradients_are_clipped_to_a_norm():
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    for limit, expected in ((1.0, 1.0), (100.0, 10.0)):
        for parameter in parameters:
            parameter.grad = torch.full((2,), 5.0)
        assert clip(parameters, limit).item() == 10
        assert torch.cat([p.grad for p in parameters]).norm().item() == pytest.approx(expected, rel=1e-5)
