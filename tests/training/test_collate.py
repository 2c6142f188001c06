"""What a step is given is what the batch's triples say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from tasks import Task

from satkgc.models.text import ObjectiveConfig
from satkgc.sampling import SamplingConfig, Stream, make_sampler
from satkgc.training.batches import Batches
from satkgc.training.collate import Collate


@pytest.fixture(scope="module")
def task(tiny_backbone):
    return Task(tiny_backbone, batch_size=24)


def samples_of(task):
    head, relation, tail = task.kg.train[task.batch.triples].T
    return [*zip(head, relation, tail, strict=True), *zip(tail, relation + task.kg.num_relations, head, strict=True)]


def test_masks_weights_and_proximity_are_those_of_the_triples(task):
    kg, relations = task.kg, task.samples().relations
    samples = samples_of(task)
    masked = set(zip(relations.masked_rows.tolist(), relations.masked_columns.tolist(), strict=True))
    expected = set()
    for i, j in itertools.permutations(range(len(samples)), 2):
        if samples[j][2] in kg.known_train.answers(*samples[i][:2]):
            expected.add((i, j))
    assert masked == expected
    degree = kg.adjacency.degree
    assert relations.tail_weights.tolist() == pytest.approx([np.log(degree[t] + 1) for _, _, t in samples])
    assert relations.head_weights.tolist() == pytest.approx([np.log(degree[h] + 1) for h, _, _ in samples])
    hops = {e: d for row, ds in zip(task.batch.triples, task.batch.distances, strict=True)
            for e, d in zip(kg.train[row][[0, 2]], ds, strict=True)}  # fmt: skip
    near = [1 / max(hops[h], 1) if hops[h] >= 0 else 0 for h, _, _ in samples]
    assert relations.head_closeness.tolist() == pytest.approx(near)


def test_popularity_counts_every_triple_a_tail_is_an_end_of(task):
    assert task.samples().relations.tail_log_counts is None  # off in this task
    collate = Collate(task.kg, task.texts, ObjectiveConfig(popularity=0.5), task.towers.pack)
    ends = task.kg.train[:, [0, 2]].ravel().tolist()
    expected = [np.log(ends.count(tail)) for _, _, tail in samples_of(task)]
    assert collate(task.batch).relations.tail_log_counts.tolist() == pytest.approx(expected, rel=1e-6)


def test_a_sample_finds_the_vectors_of_its_own_texts(task):
    samples = task.samples(chunk_tokens=64)
    texts = {}
    for chunk in samples.chunks[0]:
        ends = chunk.packed.starts.tolist()
        for i in range(len(chunk.rows)):
            texts[chunk.start + i] = tuple(chunk.packed.ids[ends[i] : ends[i + 1]].tolist())
    heads, directed, tails = (np.array(column) for column in zip(*samples_of(task), strict=True))
    for place, batch in (
        (samples.query_places, task.texts.queries(heads, directed, without=tails)),
        (samples.tail_places, task.texts.entities(tails, without=heads)),
    ):
        for i in range(len(samples)):
            assert texts[int(place[i])] == tuple(batch.ids[batch.ptr[i] : batch.ptr[i + 1]].tolist())


@pytest.mark.parametrize(("rule", "distances"), [("sum", "graph"), ("exact", "pairs")])
def test_rules_that_are_no_product_come_as_a_matrix(task, rule, distances):
    config = ObjectiveConfig(proximity="all", proximity_rule=rule, mask="answer")
    batch = make_sampler(task.kg, SamplingConfig(batch_size=12, distances=distances), 0).draw(0)
    relations = Collate(task.kg, task.texts, config, task.towers.pack)(batch).relations
    assert relations.omega.shape == (12, 12)
    assert relations.head_closeness is None
    tails = np.concatenate([task.kg.train[batch.triples][:, 2], task.kg.train[batch.triples][:, 0]])
    same = {(i, j) for i, j in itertools.permutations(range(12), 2) if tails[i] == tails[j]}
    assert set(zip(relations.masked_rows.tolist(), relations.masked_columns.tolist(), strict=True)) == same


def test_batches_are_those_of_the_sampler_and_their_state_goes_on(task):
    config = SamplingConfig(batch_size=8, distances="none")
    collate = Collate(task.kg, task.texts, ObjectiveConfig(), task.towers.pack)

    def places(batches):
        return [samples.tail_places.tolist() for samples in batches]

    with Stream(make_sampler(task.kg, config, 3), 0, 12, collate) as stream:
        expected = places(stream)
    sampler = make_sampler(task.kg, config, 3)
    first = Batches(sampler, collate, 0, 12)
    found = places(itertools.islice(first, 5))
    state = first.state()  # while more were drawn ahead
    first.close()
    sampler = make_sampler(task.kg, config, 3)
    sampler.restore(state)
    assert found + places(Batches(sampler, collate, 5, 12, workers=2)) == expected
    assert first.may_save(5)
    assert torch.is_tensor(collate(task.batch).query_places)
