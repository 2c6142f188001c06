"""The learning rate, the parameter groups and the average of the weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tasks import Task

from satkgc.training.averaging import Average
from satkgc.training.config import TrainingConfig
from satkgc.training.optimizer import make_optimizer, schedule, set_learning_rate
from satkgc.training.validate import validation_steps


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


def test_only_matrices_decay_and_the_objective_has_its_own_rate(tiny_backbone):
    task = Task(tiny_backbone, tied=True)
    config = TrainingConfig(weight_decay=0.1, learning_rate=1e-3, objective_learning_rate=1e-2)
    optimizer = make_optimizer(task.towers, task.objective, config)
    set_learning_rate(optimizer, 0.5)
    seen = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert id(parameter) not in seen
            seen[id(parameter)] = group
    for parameter in task.towers.parameters():
        assert seen[id(parameter)]["weight_decay"] == (0.1 if parameter.ndim >= 2 else 0)
        assert seen[id(parameter)]["lr"] == 5e-4
    for parameter in task.objective.parameters():
        assert (seen[id(parameter)]["weight_decay"], seen[id(parameter)]["lr"]) == (0, 5e-3)


def test_the_average_follows_the_weights_and_gives_them_back():
    weight = torch.nn.Parameter(torch.zeros(3))
    average = Average([weight], 0.5)
    expected = np.zeros(3)
    for step in range(1, 40):
        with torch.no_grad():
            weight += torch.arange(3.0)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weight.detach().numpy()
    last = weight.tolist()
    with average.applied():
        assert weight.tolist() == pytest.approx(expected, rel=1e-5)
    assert weight.tolist() == last
    off = Average([weight], 0.0)
    off.update(1)
    with off.applied():
        assert weight.tolist() == last


def test_validations_are_spread_evenly_and_the_last_step_is_one():
    assert validation_steps(100, 4) == {25, 50, 75, 100}
    assert validation_steps(3, 10) <= {0, 1, 2, 3}
    assert validation_steps(10, 0) == set()
