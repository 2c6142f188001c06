"""The interface's own parts; what all models keep to is in test_common."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model_kinds import KG, Toy, ToyConfig, draw
from satkgc.errors import SatkgcError
from satkgc.models import Questions, StepContext, step_seed


class ByRow(Toy):
    def loss(self, batch):
        value, metrics = super().loss(batch)
        return value * torch.ones(3), metrics


class Constant(Toy):
    def loss(self, batch):
        return torch.tensor(1.0), {}


class Number(Toy):
    def loss(self, batch):
        return 1.0, {}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ByRow, r"^the loss ByRow gave a tensor of shape \(3,\); return one number, a tensor of shape \(\) that"),
        (Constant, r"^the loss Constant gave a tensor of shape \(\); return one number, .* depends on the parameters$"),
        (Number, "^the loss Number gave 1.0; return one number"),
    ],
)
def test_a_loss_that_cannot_be_trained_on_is_refused_by_name(kind, message):
    model = kind(KG, ToyConfig())
    with pytest.raises(SatkgcError, match=message):
        model.backward(draw(model), StepContext())


def test_questions_are_selected_with_their_new_texts():
    questions = Questions(np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32) % 3, ("new",))
    part = questions.select([3, 1])
    assert (part.entities.tolist(), part.relations.tolist(), part.new) == ([3, 1], [0, 1], ("new",))
    assert (len(questions), len(part)) == (5, 2)


def test_a_seed_depends_on_all_its_words():
    assert step_seed(1, 2) == step_seed(1, 2)
    assert len({step_seed(1, 2), step_seed(2, 1), step_seed(1, 2, 3), step_seed(1)}) == 4


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_parameters_that_are_not_the_models_are_refused_with_the_folder(tmp_path, damage):
    model = Toy(KG, ToyConfig())
    model.save(tmp_path)
    file = tmp_path / "model.safetensors"
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:50])
    config = ToyConfig(dim=3 if damage == "other" else 8)
    with pytest.raises(SatkgcError, match=r"cannot open the model: .*; copy the run again") as refusal:
        Toy.load(tmp_path, KG, config)
    assert str(refusal.value).startswith(str(tmp_path))
    assert "\n" not in str(refusal.value)


def test_precision_is_a_context():
    with StepContext(precision=torch.bfloat16).autocast():
        assert torch.is_autocast_enabled("cpu")
    with StepContext().autocast():
        assert not torch.is_autocast_enabled("cpu")
