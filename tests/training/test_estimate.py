"""What a run will take is said before it starts, and trying it out leaves no trace."""

from __future__ import annotations

import re

import pytest
import torch

from model_kinds import KG, KINDS, SMALL
from satkgc.models import MODELS, StepContext
from satkgc.sampling import SamplingConfig
from satkgc.training import Config, TrainingConfig, train_or_stop
from satkgc.training import estimate as estimating
from satkgc.training.estimate import FEWEST, LONG, Estimate, estimate, faster_choice, total
from satkgc.training.recipes import make_config


def config_of(kind, backbone, **training):
    shared = {"steps": FEWEST, "validations": 1, "learning_rate": 1e-3, "device": "cpu"}
    model = MODELS[kind].Config(**SMALL[kind](backbone))
    return Config(model=model, sampling=SamplingConfig(batch_size=16), training=TrainingConfig(**shared | training))


@pytest.mark.parametrize("kind", ["embedding", "frozen", "paths", "text"])
def test_a_trial_changes_nothing_and_costs_grow_with_steps(kind, tiny_backbone, monkeypatch):
    monkeypatch.setattr(estimating, "_seconds", lambda work, device: (work(), 0.5)[1])
    config = config_of(kind, tiny_backbone)
    model = KINDS[kind](KG, config.model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    few, many = (estimate(model, config, StepContext(), steps) for steps in (50, 450))
    assert many.seconds - few.seconds == pytest.approx(400 * 0.5)
    assert few.seconds > 50 * 0.5, "validation takes time too"
    assert few.memory > sum(p.nbytes for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_first_step_that_compiles_is_not_taken_for_all(tiny_backbone, monkeypatch):
    seconds = iter([60.0])
    monkeypatch.setattr(estimating, "_seconds", lambda work, device: (work(), next(seconds, 0.5))[1])
    config = config_of("embedding", tiny_backbone)
    assert estimate(KINDS["embedding"](KG, config.model), config, StepContext(), 50).seconds < 60


def test_it_is_said_before_the_first_step_of_a_run_that_is_not_short(tiny_backbone, tmp_path, capsys):
    train_or_stop(KG, out=tmp_path / "run", config=config_of("embedding", tiny_backbone))
    said = capsys.readouterr().err
    line = re.search(rf"^{FEWEST} steps take about \d+ (s|min) and \d+\.\d GiB of memory$", said, re.MULTILINE)
    assert line is not None
    assert line.start() < said.index("step 1 of")
    train_or_stop(KG, out=tmp_path / "short", config=config_of("embedding", tiny_backbone, steps=FEWEST - 1))
    assert "steps take about" not in capsys.readouterr().err


def test_experts_are_said_as_one():
    one, two = Estimate(10, 60.0, 5 << 30), Estimate(30, 600.0, 3 << 30)
    assert total([one, two]) == Estimate(40, 660.0, 5 << 30)


def test_the_faster_choice_is_named_where_a_run_is_long():
    full, quick = Config(recipe="satkgc"), Config(recipe="quick")
    assert "--recipe quick" in Estimate(10, LONG + 1, 1).line(faster_choice(full))
    assert "--recipe quick" not in Estimate(10, LONG - 1, 1).line(faster_choice(full))
    assert "experts.complex.recipe=none" in Estimate(10, LONG + 1, 1).line(faster_choice(quick))
    for expert in make_config("quick").experts.values():
        assert faster_choice(expert) == "fewer --epochs shorten it"
    assert faster_choice(make_config("complex")) == "fewer --epochs shorten it"


@pytest.mark.parametrize("kept", [False, True])
def test_checkpoints_of_a_finished_run_go_unless_they_are_to_be_kept(kept, tiny_backbone, tmp_path):
    config = config_of("embedding", tiny_backbone, steps=2, keep_checkpoints=kept)
    run, _ = train_or_stop(KG, out=tmp_path / "run", config=config)
    assert run.finished
    assert (run.folder / "checkpoints").exists() is kept
    again, stopped = train_or_stop(KG, out=tmp_path / "run", config=config, resume=True)
    assert stopped is None
    assert again.finished
