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

from satkgc.errors import SatkgcError
from satkgc.models import LossConfig
from satkgc.sampling import Needs, Sampler, SamplingConfig
from satkgc.training import Custom, RunFolder, train_or_stop
from tasks import small_graph

SECTION = (Path(__file__).parents[2] / "docs" / "training.md").read_text().split("\n## A sampler or a loss")[1]
SHOWN = re.findall(r"^```python\n(.*?)^```", SECTION.split("\n## ")[0], re.DOTALL | re.MULTILINE)


def train(kg, *args, sampler=None, loss=None, **options):
    if not (args or sampler or loss or "resume" in options):
        args = ("satkgc-adjusted",)
    return train_or_stop(kg, *args, custom=Custom(sampler, loss), **options)[0]


@pytest.fixture(scope="module")
def settings(tiny_backbone):
    return {
        "model.encoder.backbone": str(tiny_backbone),
        "model.text.max_tokens": 30,
        "sampling.batch_size": 16,
        "training.steps": 4,
        "training.validations": 1,
        "training.learning_rate": 1e-3,
    }


@pytest.fixture(scope="module")
def mine():
    """What the documentation's code defines."""
    names = {"__name__": "mine"}
    exec("".join(block for block in SHOWN if "satkgc.train" not in block), names)
    return {"sampler": names["ByRelation"], "loss": names["Hardest"]}


@pytest.fixture(scope="module")
def run(mine, settings, tmp_path_factory):
    """The run that the documentation's code makes."""
    assert 'satkgc.train(kg, out="runs/mine", sampler=ByRelation, loss=Hardest)' in "".join(SHOWN)
    return train(small_graph(), out=tmp_path_factory.mktemp("runs") / "mine", overrides=settings, **mine)


def test_the_shown_sampler_and_loss_train(run):
    assert run.finished
    about = json.loads((run.folder / "config.json").read_text())
    assert (about["sampler"], about["loss"]) == ("mine.ByRelation", "mine.Hardest")
    card = (run.folder / "README.md").read_text()
    assert "| batches | mine.ByRelation, 16 samples |" in card
    assert "| loss | mine.Hardest |" in card


def test_they_do_what_they_say(mine):
    kg = small_graph()
    sampler = mine["sampler"](kg, SamplingConfig(batch_size=16), 0, Needs(hops=True))
    batches = [sampler.draw(step) for step in range(6)]
    assert all(len(set(kg.train[batch.triples, 1])) == 1 for batch in batches)
    assert len({int(kg.train[batch.triples[0], 1]) for batch in batches}) > 1
    assert (batches[0].hops[[0, 8]] == [1, 0]).all()
    loss = mine["loss"](LossConfig(margin=0.1), kg)
    vectors = torch.eye(3)

    class Masked:
        masked_rows, masked_columns = torch.tensor([0]), torch.tensor([1])

    def value(queries, tails):
        result = loss(queries, tails, Masked)
        return (result[0] if isinstance(result, tuple) else result).item()

    assert value(vectors, vectors) == 0
    assert value(vectors, vectors[[1, 0, 2]]) == pytest.approx((0.1 + 1.1) / 3)


def test_a_run_with_them_is_resumed_with_the_same_bits(run, mine, settings, tmp_path):
    limited = settings | {"training.max_minutes": 1e-9}
    assert not train(small_graph(), out=tmp_path, overrides=limited, **mine).finished
    resumed = train(small_graph(), out=tmp_path, overrides={"training.max_minutes": None}, resume=True, **mine)
    assert resumed.finished
    whole = dict(RunFolder.load(run.folder).model().named_parameters())
    assert all(torch.equal(value, whole[name]) for name, value in resumed.model().named_parameters())


class Plain(nn.Module):
    """A loss that is no `ContrastiveLoss` and learns nothing itself."""

    def __init__(self, config, kg):
        super().__init__()

    def forward(self, queries, tails, batch):
        return -(queries * tails).sum(1).mean()


class NoTensor(Plain):
    def forward(self, queries, tails, batch):
        return 1.0


class ByRow(Plain):
    def forward(self, queries, tails, batch):
        return -(queries * tails).sum(1)


class OfNothing(Plain):
    def forward(self, queries, tails, batch):
        return torch.zeros((), requires_grad=True)


class NoGradient(Plain):
    def forward(self, queries, tails, batch):
        return super().forward(queries, tails, batch).detach()


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


def test_a_resume_with_others_is_refused(settings, tmp_path):
    kg, own = small_graph(), {"sampler": Valid, "loss": Plain}
    short = settings | {"training.steps": 1, "training.validations": 0}
    folder = train(kg, out=tmp_path / "own", overrides=short, **own).folder
    message = r"the sampler test_custom.Valid, not that of its recipe; go on from Python: satkgc.train\(…, sampler=Val"
    with pytest.raises(SatkgcError, match=message):
        train(kg, out=folder, resume=True)
    with pytest.raises(SatkgcError, match=r"the loss test_custom.Plain, not test_custom.ByRow; go on from Python"):
        train(kg, out=folder, resume=True, **own | {"loss": ByRow})
    plain = train(kg, out=tmp_path / "plain", overrides=short).folder
    assert "sampler" not in json.loads((plain / "config.json").read_text())
    with pytest.raises(SatkgcError, match=r"the sampler of its recipe, not test_custom.Valid; leave sampler out"):
        train(kg, out=plain, resume=True, **own)


class Valid(Sampler):
    def triples(self, step):
        return np.arange(8) + step


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"sampler": TooFew}, "the sampler TooFew gave 2 triples for step 0; make it give 8"),
        (
            {"sampler": Beyond},
            "the sampler Beyond gave no rows of kg.train for step 0; make it give whole numbers from 0",
        ),
        ({"sampler": Before}, "the sampler Before gave no rows of kg.train"),
        ({"sampler": Between}, "the sampler Between gave no rows of kg.train"),
        ({"loss": NoTensor}, "the loss NoTensor gave 1.0; return one number, a tensor of shape"),
        ({"loss": ByRow}, r"the loss ByRow gave a tensor of shape \(16,\)"),
        ({"loss": NoGradient}, r"the loss NoGradient gave a tensor of shape \(\); return .* depends on the parameters"),
        ({"loss": OfNothing}, "the loss OfNothing does not depend on the vectors"),
        ({"sampler": lambda *_: 3}, "makes no sampler; extend satkgc.sampling.Sampler"),
        ({"loss": lambda *_: 3}, "makes no module; extend torch.nn.Module, or satkgc.models.ContrastiveLoss"),
        ({"loss": functools.partial(Plain)}, "which has no name; give a class or a function"),
    ],
)
def test_what_is_no_sampler_or_loss_is_refused_and_leaves_nothing_behind(settings, tmp_path, own, message):
    with pytest.raises(SatkgcError, match=message):
        train(small_graph(), out=tmp_path / "run", overrides=settings, **own)
    assert not (tmp_path / "run").exists()


class WithMetrics(Plain):
    """One that returns named numbers besides."""

    def forward(self, queries, tails, batch):
        return super().forward(queries, tails, batch), {"heads": batch.heads.float().mean()}


def test_a_loss_need_not_learn_anything_itself_and_its_metrics_are_logged(settings, tmp_path):
    for loss, names in ((Plain, []), (WithMetrics, ["heads"])):
        run = train(small_graph(), out=tmp_path / loss.__name__, overrides=settings, loss=loss)
        assert [list(record["metrics"]) for record in run.log() if "loss" in record] == [names]
        assert not (run.folder / "model" / "loss.safetensors").exists()
        assert run.evaluate("valid").metrics()


class ByRelation(nn.Module):
    """A temperature for each relation, under the name that the package's loss has for its one."""

    def __init__(self, config, kg):
        super().__init__()
        self.log_inverse_temperature = nn.Parameter(torch.full((2 * kg.num_relations,), 3.0))

    def forward(self, queries, tails, batch):
        logits = self.log_inverse_temperature[batch.relations].exp()[:, None] * (queries @ tails.T)
        return nn.functional.cross_entropy(logits, torch.arange(len(logits)))


def test_a_run_opens_whatever_the_parameters_of_its_loss_are(settings, tmp_path):
    run = train(small_graph(), out=tmp_path / "run", overrides=settings, loss=ByRelation)
    assert (run.folder / "model" / "loss.safetensors").exists()
    assert run.evaluate("valid").metrics()
