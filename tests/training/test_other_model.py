"""A model that knows nothing of texts, registered as a newcomer would: training, resuming and asking need no other."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
from pydantic import Field
from torch import nn
from torch.nn import functional
from typer.testing import CliRunner

import satkgc
from graphs import graph_of
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.models import MODELS, Model, ModelConfig, Questions
from satkgc.training import Config, make_config

RECIPE = """
[model]
kind = "distmult"
dim = 24
[sampling]
sampler = "random"
batch_size = 32
[training]
learning_rate = 0.05
steps = 60
validations = 3
[graph.small.training]
log_steps = 7
"""


class DistMultConfig(ModelConfig):
    """One vector an entity, one a directed relation."""

    execution: ClassVar[frozenset[str]] = frozenset({"model.note"})

    kind: Literal["distmult"] = "distmult"
    dim: int = Field(default=64, ge=1)
    note: str | None = None


class DistMult(Model):
    """Scores are sums of head · relation · tail; the loss is a softmax over all entities."""

    Config = DistMultConfig

    def __init__(self, kg, config):
        super().__init__(kg, config)
        self.entities = nn.Parameter(0.5 * torch.randn(kg.num_entities, config.dim))
        self.relations = nn.Parameter(0.5 * torch.randn(2 * kg.num_relations, config.dim))

    def loss(self, batch):
        heads, relations, tails = map(torch.from_numpy, (batch.heads, batch.relations, batch.tails))
        scores = self.entities[heads] * self.relations[relations] @ self.entities.T  # (2n, E)
        return functional.cross_entropy(scores, tails.long()), {"largest": scores.detach().max()}

    @torch.no_grad()
    def score(self, questions, candidates=None):
        queries = self.entities[questions.entities] * self.relations[questions.relations]  # (Q, dim)
        if candidates is None:
            return queries @ self.entities.T
        return torch.einsum("qd,qkd->qk", queries, self.entities[candidates])


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(MODELS, "distmult", DistMult)


@pytest.fixture
def recipe(tmp_path):
    """The recipe as a file."""
    file = tmp_path / "mine.toml"
    file.write_text(RECIPE)
    return file


def mirrored_graph():
    """120 pairs, each known in one direction by r0 and in the other by r1; some of the latter are held out."""
    heads = np.random.default_rng(5).permutation(240).reshape(120, 2)
    there = np.insert(heads, 1, 0, axis=1)
    back = np.insert(heads[:, ::-1], 1, 1, axis=1)
    return graph_of(np.concatenate([there, back[:90]]), 240, 2, valid=back[90:105], test=back[105:])


def test_it_is_trained_resumed_evaluated_and_asked(recipe, tmp_path):
    kg = mirrored_graph()
    options = {"graph_settings": False}
    whole = satkgc.train(kg, recipe, tmp_path / "whole", **options)
    assert whole.finished
    assert isinstance(whole.config.model, DistMultConfig)
    assert next(line["metrics"] for line in whole.log() if "metrics" in line).keys() == {"largest"}

    cut = satkgc.train(kg, recipe, tmp_path / "cut", overrides={"training.max_minutes": 1e-6}, **options)
    assert not cut.finished
    again = {"training.max_minutes": None, "model.note": "a model's own setting that changes nothing"}
    cut = satkgc.train(kg, recipe, tmp_path / "cut", overrides=again, resume=True, **options)
    trained, same = whole.model("cpu"), cut.model("cpu")
    assert all(torch.equal(a, b) for a, b in zip(trained.parameters(), same.parameters(), strict=True))

    untrained = evaluate(DistMult(kg, whole.config.model), kg).metrics()["both"]["mrr"]
    assert satkgc.evaluate(whole, "test").metrics()["both"]["mrr"] > 0.3 > 0.1 > untrained

    completer = whole.completer("cpu")
    head = int(kg.test[0, 0])
    best = trained.score(Questions(np.array([head]), np.array([1])))[0].topk(3).indices
    answers = completer.tails(kg.entities.id(head), "r1", k=3)
    assert [answer.id for answer in answers] == [kg.entities.id(int(entity)) for entity in best]
    assert completer.propose(tmp_path / "new.tsv", n=5, second_answers=True) == 5
    with pytest.raises(SatkgcError, match="DistMult has no entity vectors"):
        completer.vectors()


def test_a_run_keeps_its_kind(recipe, tmp_path):
    kg, out = mirrored_graph(), tmp_path / "run"
    satkgc.train(kg, recipe, out, overrides={"training.max_minutes": 1e-6})
    for name, value, was in (("model.kind", "text", "distmult"), ("model.dim", 8, 24)):
        with pytest.raises(SatkgcError, match=f"{name} was {was} when this run was started, and is {value} now"):
            satkgc.train(kg, recipe, out, overrides={name: value}, resume=True)


def test_its_settings_are_shown_and_named_in_refusals(recipe):
    show = ["train", "wordnet-sample", "--recipe", str(recipe), "--show"]
    lines = CliRunner().invoke(app, show).stdout.splitlines()
    assert [line for line in lines if line.startswith("model.")] == [
        "model.kind = distmult", "model.dim = 24", "model.note = none",
    ]  # fmt: skip
    for overrides, message in (
        ({"model.dim": "0"}, "model.dim is 0; set it to 1 or more"),
        ({"model.dims": "3"}, r"unknown setting model.dims; did you mean model.dim\?"),
        ({"model.text.max_tokens": "3"}, "unknown setting model.text.max_tokens"),
        ({"model.kind": "magic"}, "model.kind is 'magic'; it takes one of embedding, frozen, fused, paths, star, text"),
    ):
        with pytest.raises(SatkgcError, match=f"^{message}"):
            make_config(recipe, overrides=overrides)
    recipe.write_text('[model]\nkind = "distmult"\nmargin = 1\n')
    with pytest.raises(SatkgcError, match=r"mine.toml: unknown setting model.margin"):
        make_config(recipe)
    assert Config(model=DistMultConfig(dim=3)).model_dump()["model"] == {"kind": "distmult", "dim": 3, "note": None}


def test_settings_of_texts_are_not_laid_over_it(recipe, tmp_path):
    plain = Config().model_dump()
    by_override = make_config("satkgc", benchmark="WN18RR", overrides={"model.kind": "distmult", "model.dim": "5"})
    assert by_override.model == DistMultConfig(dim=5)
    assert by_override.applied is None
    assert by_override.training.model_dump() == plain["training"]

    recipe.write_text('extends = "satkgc-authors"\n' + RECIPE)
    extended = make_config(recipe, benchmark="WN18RR")
    assert extended.model == DistMultConfig(dim=24)
    assert extended.applied is None
    assert extended.sampling.entity_disjoint  # what is not about the model comes from the recipe it extends

    # Its own settings for graphs are, and a recipe that extends it has its kind.
    nearer = tmp_path / "nearer.toml"
    nearer.write_text('extends = "mine.toml"\n[model]\nnote = "x"\n')
    small = make_config(nearer, triples=300)
    assert small.model == DistMultConfig(dim=24, note="x")
    assert (small.applied, small.sampling.batch_size, small.training.log_steps) == ("small", 32, 7)
