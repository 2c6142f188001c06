"""Too little memory ends a run in one line that says which batch fits; a saved run goes on as if nothing had been."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.models import MODELS, EmbeddingConfig, EmbeddingModel
from satkgc.sampling import Needs, SamplingConfig, make_sampler
from satkgc.training import Config, TrainingConfig, train_or_stop
from tasks import small_graph

KG = small_graph()


class HungryConfig(EmbeddingConfig):
    """An embedding model whose memory is told."""

    kind: Literal["hungry"] = "hungry"  # type: ignore[assignment]
    dim: int = 4


class Hungry(EmbeddingModel):
    """It holds `room` samples from step `since` on."""

    Config = HungryConfig
    room, since = 10**9, 0

    def loss(self, batch):
        if batch.step >= self.since and len(batch) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nGPU 0 has a total of 1 GiB")
        return super().loss(batch)


@pytest.fixture
def hungry(monkeypatch):
    """The model, registered; its class attributes are as before afterwards."""
    monkeypatch.setitem(MODELS, "hungry", Hungry)
    monkeypatch.setattr(Hungry, "room", 10**9)
    monkeypatch.setattr(Hungry, "since", 0)
    return Hungry


def config(**training):
    shared = {"steps": 6, "validations": 0, "learning_rate": 1e-2, "device": "cpu", "checkpoint_minutes": 0.0}
    return Config(
        model=HungryConfig(), sampling=SamplingConfig(batch_size=32), training=TrainingConfig(**shared | training)
    )


@pytest.mark.parametrize(("room", "fits"), [(31, 16), (16, 16), (9, 8), (3, 2)])
def test_the_message_names_the_batch_that_fits(hungry, tmp_path, room, fits):
    hungry.room = room
    with pytest.raises(
        SatkgcError, match=rf"a batch of 32 does not fit .* sampling\.batch_size={fits}, which fits"
    ) as told:
        train_or_stop(KG, out=tmp_path / "run", config=config())
    assert "\n" not in str(told.value)
    assert not (tmp_path / "run" / "checkpoints").exists(), "nothing was learnt, nothing is left"


def test_where_no_batch_fits_a_smaller_model_is_advised(hungry, tmp_path):
    hungry.room = 1
    with pytest.raises(SatkgcError, match="nor does any other; choose a smaller model"):
        train_or_stop(KG, out=tmp_path / "run", config=config())


def test_a_run_that_ran_out_of_memory_goes_on_elsewhere_as_if_it_had_not(hungry, tmp_path):
    whole, _ = train_or_stop(KG, out=tmp_path / "whole", config=config())
    hungry.room, hungry.since = 8, 3
    with pytest.raises(SatkgcError, match=r"batch_size=8, which fits, .* or go on with --resume on a larger GPU"):
        train_or_stop(KG, out=tmp_path / "parts", config=config())
    hungry.room = 10**9
    resumed, stopped = train_or_stop(KG, out=tmp_path / "parts", config=config(), resume=True)
    assert stopped is None
    weights = dict(resumed.model("cpu").named_parameters())
    assert all(torch.equal(value, weights[name]) for name, value in whole.model("cpu").named_parameters())


def test_memory_that_ran_out_beside_the_step_is_told_so(hungry, tmp_path, monkeypatch):
    def score(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Hungry, "score", score)
    with pytest.raises(SatkgcError, match=r"though a step fits; .* with a lower evaluation\.memory_mib"):
        train_or_stop(KG, out=tmp_path / "run", config=config(validations=2))


def test_a_model_that_does_not_fit_at_all_is_told_so(hungry, tmp_path, monkeypatch):
    def to(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Hungry, "to", to)
    with pytest.raises(SatkgcError, match="the model does not fit the memory of cpu; choose a smaller one"):
        train_or_stop(KG, out=tmp_path / "run", config=config())


def test_the_first_triples_of_a_batch_come_with_their_inverses():
    batch = make_sampler(KG, SamplingConfig(batch_size=32), 0, Needs(hops=True, negatives=3)).draw(0)
    some = batch.first(5)
    assert len(some) == 10
    assert np.array_equal(some.triples, batch.triples[:5])
    assert np.array_equal(some.heads[5:], some.tails[:5])
    assert np.array_equal(some.relations[5:], some.relations[:5] + KG.num_relations)
    assert np.array_equal(some.hops[5:], batch.hops[16:21])
    assert np.array_equal(some.negatives[5:], batch.negatives[16:21])
