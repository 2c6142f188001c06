"""Batches ahead: those of the sampler, however far ahead the threads are, and a sampler that reads the model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from satkgc.errors import SatkgcError
from satkgc.models import Model
from satkgc.sampling import Sampler, SamplingConfig, Stream, make_sampler
from satkgc.training.batches import Batches, FrozenVectors
from tasks import Task, small_graph


def test_batches_are_those_of_the_sampler_and_their_state_goes_on(tiny_backbone):
    task = Task(tiny_backbone)
    config, collate = SamplingConfig(batch_size=8), task.model.collate

    def sampler():
        return make_sampler(task.kg, config, 3, task.model.needs)

    def places(batches):
        return [batch.tail_places.tolist() for batch in batches]

    with Stream(sampler(), 0, 12, collate) as stream:
        expected = places(stream)
    first = Batches(sampler(), collate, 0, 12)
    begun = places(itertools.islice(first, 5))
    state = first.state()  # while more were drawn ahead
    first.close()
    resumed = sampler()
    resumed.restore(state)
    assert begun + places(Batches(resumed, collate, 5, 12, workers=2)) == expected
    assert first.may_save(5)


class Following(Sampler):
    """Reads the model every second step."""

    period = 2
    drawn = 0

    def triples(self, step):
        self.drawn += 1
        return np.arange(self.config.triples) + self.drawn

    def refresh(self):
        self.read = [*getattr(self, "read", ()), self.vectors.entity_vectors()]


def test_a_sampler_that_follows_the_model_is_refreshed_in_time():
    class Vectors:
        def entity_vectors(self):
            return sampler.drawn

    sampler = Following(small_graph(), SamplingConfig(batch_size=8), 0, vectors=Vectors())
    batches = Batches(sampler, lambda batch: batch, 0, 5)
    assert len(list(batches)) == 5
    assert sampler.read == [0, 2, 4]
    assert [batches.may_save(step) for step in (1, 2, 3, 5)] == [False, True, False, True]


def test_frozen_vectors_are_those_of_the_last_refresh(tiny_backbone):
    task = Task(tiny_backbone)
    vectors = FrozenVectors(task.model)
    entities, queries = vectors.entity_vectors(), vectors.query_vectors(np.array([3, 5]))
    assert entities.shape == (task.kg.num_entities, task.model.dim)
    task.towers.query.model.embeddings.word_embeddings.weight.data.neg_()
    assert np.array_equal(vectors.query_vectors(np.array([3, 5])), queries)
    vectors.entity_vectors()
    assert not np.allclose(vectors.query_vectors(np.array([3, 5])), queries, atol=1e-3)
    assert task.model.training


class WithoutVectors(Model):
    def loss(self, batch):
        raise NotImplementedError

    def score(self, questions, candidates=None):
        raise NotImplementedError


def test_a_model_without_vectors_is_refused_to_a_sampler_that_reads_them():
    with pytest.raises(SatkgcError, match=r"reads vectors, which a WithoutVectors has not; choose another"):
        FrozenVectors(WithoutVectors(small_graph(), None)).entity_vectors()
