"""A sampler and a loss of one's own: those that the documentation shows, and what is refused."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import satkgc
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.sampling import Sampler, SamplingConfig, Stream
from satkgc.training import Run, train
from satkgc.training.batches import Batches
from tasks import small_graph

SECTION = (Path(__file__).parents[2] / "docs" / "training.md").read_text().split("\n## A sampler or a loss")[1]
SHOWN = re.findall(r"^```python\n(.*?)^```", SECTION.split("\n## ")[0], re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def settings(tiny_backbone):
    return {
        "encoder.backbone": str(tiny_backbone),
        "sampling.batch_size": 16,
        "text.max_tokens": 30,
        "training.steps": 4,
        "training.validations": 1,
        "training.learning_rate": 1e-3,
    }


@pytest.fixture(scope="module")
def mine(settings, tmp_path_factory):
    """What the documentation's code defines, and the run that it makes."""
    names = {"__name__": "mine", "kg": small_graph(), "satkgc": satkgc}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("mine"))
        patch.setattr(satkgc, "train", functools.partial(train, overrides=settings), raising=False)
        exec("".join(SHOWN), names)
        names["folder"] = Path("runs/mine").absolute()
    return names


def test_the_shown_sampler_and_loss_train(mine):
    run = Run.load(mine["folder"])
    assert run.finished
    about = json.loads((run.folder / "config.json").read_text())
    assert (about["sampler"], about["objective"]) == ("mine.ByRelation", "mine.Hardest")
    card = (run.folder / "README.md").read_text()
    assert "| batches | mine.ByRelation, 16 samples |" in card
    assert "| loss | mine.Hardest |" in card
    assert "| proximity |" not in card


def test_they_do_what_they_say(mine):
    kg = small_graph()
    sampler = mine["ByRelation"](kg, SamplingConfig(batch_size=16), 0)
    batches = [sampler.draw(step) for step in range(6)]
    assert all(len(set(kg.train[batch.triples, 1])) == 1 for batch in batches)
    assert len({int(kg.train[batch.centre, 1]) for batch in batches}) > 1
    assert (batches[0].distances[0] == [0, 1]).all()
    loss = mine["Hardest"](satkgc.models.text.ObjectiveConfig(margin=0.1))
    vectors = torch.eye(3)
    pairs = satkgc.models.text.Relations(torch.tensor([0]), torch.tensor([1]))
    assert loss(vectors, vectors, pairs).item() == 0
    assert loss(vectors, vectors[[1, 0, 2]], pairs).item() == pytest.approx((0.1 + 1.1) / 3)


def test_a_run_with_them_is_resumed_with_the_same_bits(mine, settings, tmp_path):
    own = {"sampler": mine["ByRelation"], "objective": mine["Hardest"]}
    limited = settings | {"training.max_minutes": 1e-9}
    assert not train(small_graph(), out=tmp_path, overrides=limited, **own).finished
    run = train(small_graph(), out=tmp_path, overrides={"training.max_minutes": None}, resume=True, **own)
    assert run.finished
    whole = dict(Run.load(mine["folder"]).towers().named_parameters())
    assert all(torch.equal(value, whole[name]) for name, value in run.towers().named_parameters())


def test_a_resume_with_others_is_refused(mine, settings, tmp_path):
    kg, folder, own = small_graph(), mine["folder"], {"sampler": mine["ByRelation"], "objective": mine["Hardest"]}
    told = r"the sampler mine.ByRelation, not that of its recipe; go on from Python: satkgc.train\(…, sampler=ByRe"
    with pytest.raises(SatkgcError, match=told):
        train(kg, out=folder, resume=True)
    with pytest.raises(SatkgcError, match=told):
        CliRunner().invoke(
            app, ["train", str(folder / "graph"), "--out", str(folder), "--resume"], catch_exceptions=False
        )
    with pytest.raises(SatkgcError, match=r"the objective mine.Hardest, not satkgc.models.text.loss.Objective; go on"):
        train(kg, out=folder, resume=True, **own | {"objective": satkgc.models.text.Objective})
    plain = tmp_path / "plain"
    train(kg, out=plain, overrides=settings | {"training.steps": 1})
    assert "sampler" not in json.loads((plain / "config.json").read_text())
    with pytest.raises(SatkgcError, match=r"the sampler of its recipe, not mine.ByRelation; leave sampler out"):
        train(kg, out=plain, resume=True, **own)


class Bare(nn.Module):
    """A loss that is no `Objective`, learns nothing and lacks what the log tells."""

    def __init__(self, config):
        super().__init__()

    def forward(self, queries, tails, relations):
        return -(queries * tails).sum(1).mean()


class Told(Bare):
    temperature, beta = torch.tensor(1.0), torch.tensor(0.0)


class NoTensor(Told):
    def forward(self, queries, tails, relations):
        return 1.0


class ByRow(Told):
    def forward(self, queries, tails, relations):
        return -(queries * tails).sum(1)


class OfNothing(Told):
    def forward(self, queries, tails, relations):
        return torch.zeros((), requires_grad=True)


class Beyond(Sampler):
    def triples(self, step):
        return np.arange(8) + len(self.kg.train) - 7


class Before(Sampler):
    def triples(self, step):
        return np.arange(8) - 1


class Between(Sampler):
    def triples(self, step):
        return np.arange(8) + 0.7


class TooFew(Sampler):
    def triples(self, step):
        return [0, 1]


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"sampler": TooFew}, "the sampler TooFew gave 2 triples for step 0; make it give 8"),
        (
            {"sampler": Beyond},
            "the sampler Beyond gave no rows of kg.train for step 0; make it give whole numbers from 0",
        ),
        ({"sampler": Before}, "the sampler Before gave no rows of kg.train"),
        ({"sampler": Between}, "the sampler Between gave no rows of kg.train"),
        ({"objective": NoTensor}, "the loss NoTensor gave 1.0; return one number, a tensor of shape"),
        ({"objective": ByRow}, r"the loss ByRow gave a tensor of shape \(16,\)"),
        ({"objective": OfNothing}, "the loss OfNothing does not depend on the vectors"),
        ({"sampler": lambda *_: 3}, "makes no sampler; extend satkgc.sampling.Sampler"),
        ({"objective": Bare}, "test_own.Bare makes no module with the tensors temperature and beta"),
        ({"objective": functools.partial(Told)}, "which has no name; give a class or a function"),
    ],
)
def test_what_is_no_sampler_or_loss_is_refused_and_leaves_nothing_behind(settings, tmp_path, own, told):
    with pytest.raises(SatkgcError, match=told):
        train(small_graph(), out=tmp_path / "run", overrides=settings, **own)
    assert not (tmp_path / "run").exists()


def test_a_loss_need_not_learn_anything_itself(settings, tmp_path):
    run = train(small_graph(), out=tmp_path, overrides=settings, objective=Told)
    assert [record["tau"] for record in run.log() if "loss" in record] == [1.0]


class Counting(Sampler):
    """Remembers how often it was asked, as the documentation says how."""

    asked = 0

    def triples(self, step):
        self.asked += 1
        return np.arange(self.config.triples) + self.asked

    def state(self, pending=()):
        return {**super().state(pending), "asked": np.array([self.asked])}

    def restore(self, state):
        super().restore(state)
        self.asked = int(state["asked"][0])


def test_a_sampler_with_a_memory_goes_on_where_it_was():
    def made():
        return Counting(small_graph(), SamplingConfig(batch_size=8), 0)

    with Stream(made(), 0, 9) as stream:
        expected = [batch.centre for batch in stream]
    assert expected == list(range(1, 10))
    with Stream(made(), 0, 9) as stream:
        first = [next(stream).centre for _ in range(4)]
        state = stream.state()
    again = made()
    again.restore(state)
    assert first + [again.draw(step).centre for step in range(4, 9)] == expected


class Following(Counting):
    """Reads the model every second step."""

    period = 2

    def refresh(self):
        self.read = [*getattr(self, "read", ()), self.vectors.entity_vectors()]


def test_a_sampler_that_follows_the_model_is_refreshed_in_time():
    class Vectors:
        def entity_vectors(self):
            return sampler.asked

    sampler = Following(small_graph(), SamplingConfig(batch_size=8), 0, Vectors())
    batches = Batches(sampler, lambda batch: batch, 0, 5)
    assert len(list(batches)) == 5
    assert sampler.read == [0, 2, 4]
    assert [batches.may_save(step) for step in (1, 2, 3, 5)] == [False, True, False, True]
