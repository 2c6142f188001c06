"""One loss and one gradient, however the batch is cut up and however many processes share it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from satkgc.models.text.towers import normalize
from satkgc.processes import Processes
from tasks import Task, assert_same


def plainly(task):
    """The step as one would write it first: every text of every sample, one loss, one backward."""
    kg = task.kg
    head, relation, tail = kg.train[task.batch.triples].T
    heads, tails = np.concatenate([head, tail]), np.concatenate([tail, head])
    directed = np.concatenate([relation, relation + kg.num_relations])
    queries = normalize(task.towers.query(task.texts.queries(heads, directed, exclude=tails)))
    answers = normalize(task.towers.entity(task.texts.entities(tails, exclude=heads)))
    loss, _ = task.model.contrastive(queries, answers, task.collate())
    loss.backward()
    return {"loss": loss.detach(), **task.gradients()}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("batch_size", [16, 80])  # 80: many texts more than once
def test_chunks_and_caching_change_nothing(tiny_backbone, tied, batch_size):
    task = Task(tiny_backbone, dropout=0.0, tied=tied, batch_size=batch_size)
    expected = plainly(task)
    for chunk_tokens in (None, 64, 300):
        assert_same(task.step(chunk_tokens=chunk_tokens), expected)


def test_equal_texts_are_encoded_once(tiny_backbone):
    (own,) = Task(tiny_backbone, batch_size=200).collate().chunks
    assert [chunk.queries for chunk in own] == [True, False]
    assert len(own[1].rows) < 0.9 * 200


def test_caching_draws_the_same_dropout_again(tiny_backbone):
    task = Task(tiny_backbone)
    kept = task.step(chunk_tokens=64, cache=False)
    assert_same(task.step(chunk_tokens=64), kept)
    other = task.step(chunk_tokens=64, seed=8)
    assert abs(other["loss"] - kept["loss"]) > 1e-5


def test_processes_share_the_chunks_of_one(tiny_backbone):
    """So that two draw the same dropout as one: test_common holds that they compute the same."""
    task = Task(tiny_backbone)
    (one,), two = task.collate(128).chunks, task.collate(128, Processes(0, 2)).chunks
    assert len(one) == len(two[0]) + len(two[1]) > 4
    both = {chunk.number: chunk for own in two for chunk in own}
    for chunk in one:
        assert chunk.queries == both[chunk.number].queries
        assert chunk.rows.tolist() == both[chunk.number].rows.tolist()
    assert all(chunk.packed is not None for chunk in two[0])
    assert all(chunk.packed is None for chunk in two[1])  # the other process's


def test_bfloat16_is_close_and_reaches_every_weight(tiny_backbone):
    task = Task(tiny_backbone, dropout=0.0)
    exact = task.step()
    rough = task.step(chunk_tokens=64, precision=torch.bfloat16)
    assert rough["loss"].item() == pytest.approx(exact["loss"].item(), rel=0.05)
    assert rough.keys() == exact.keys()
    for name, value in exact.items():
        if value.norm() > 1e-3:
            assert torch.cosine_similarity(rough[name].flatten(), value.flatten(), dim=0) > 0.9, name
