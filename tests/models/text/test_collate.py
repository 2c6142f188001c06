"""What a step of the text model is given: what its triples say, what a text may say of the answer, and chunks."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from graphs import graph_of, random_graph
from satkgc.errors import SatkgcError
from satkgc.models import LossConfig, StepContext
from satkgc.models.text.collate import Collate, chunk_places, has_parallel, plan_chunks
from satkgc.sampling import Batch
from satkgc.text import TextConfig, Texts
from tasks import Task

LENGTHS = st.lists(st.integers(1, 50), min_size=4, max_size=60).map(np.array)


@pytest.fixture(scope="module")
def task(tiny_backbone):
    return Task(tiny_backbone, batch_size=24)


def samples_of(task):
    head, relation, tail = task.kg.train[task.batch.triples].T
    return [*zip(head, relation, tail, strict=True), *zip(tail, relation + task.kg.num_relations, head, strict=True)]


def test_ids_masks_and_hops_are_those_of_the_triples(task):
    kg, batch = task.kg, task.collate()
    samples = samples_of(task)
    assert list(zip(batch.heads.tolist(), batch.relations.tolist(), batch.tails.tolist(), strict=True)) == samples
    masked = set(zip(batch.masked_rows.tolist(), batch.masked_columns.tolist(), strict=True))
    expected = set()
    for i, j in itertools.permutations(range(len(samples)), 2):
        if samples[j][2] in kg.known_train.answers(*samples[i][:2]):
            expected.add((i, j))
    assert masked == expected
    assert batch.hops.tolist() == task.batch.hops.tolist()
    assert batch.hops[0] <= 1  # the centre's tail is one hop from its head, or that head itself
    assert batch.hops[len(samples) // 2] == 0
    ids = batch.heads, batch.relations, batch.tails, batch.masked_rows, batch.masked_columns
    assert {part.dtype for part in (*ids, batch.hops, batch.query_places, batch.tail_places)} == {torch.int64}
    assert (batch.step, len(batch)) == (task.batch.step, 24)


def test_hops_are_there_only_where_the_loss_reads_them(tiny_backbone):
    assert Task(tiny_backbone, loss=LossConfig()).collate().hops is None


def test_a_sample_finds_the_vectors_of_its_own_texts(task):
    batch = task.collate(chunk_tokens=64)
    texts = {}
    for chunk in batch.chunks[0]:
        ends = chunk.packed.starts.tolist()
        for i in range(len(chunk.rows)):
            texts[chunk.start + i] = tuple(chunk.packed.ids[ends[i] : ends[i + 1]].tolist())
    heads, directed, tails = (np.array(column) for column in zip(*samples_of(task), strict=True))
    for place, tokens in (
        (batch.query_places, task.texts.queries(heads, directed, exclude=tails)),
        (batch.tail_places, task.texts.entities(tails, exclude=heads)),
    ):
        for i in range(len(batch)):
            assert texts[int(place[i])] == tuple(tokens.ids[tokens.ptr[i] : tokens.ptr[i + 1]].tolist())


def test_the_model_collates_as_its_settings_say(tiny_backbone):
    task = Task(tiny_backbone, chunk_tokens=64)
    task.model.prepare_training(StepContext())
    mine, expected = task.model.collate(task.batch), task.collate(chunk_tokens=64)
    assert len(mine.chunks[0]) == len(expected.chunks[0]) > 2
    assert mine.query_places.tolist() == expected.query_places.tolist()


def test_parallel_triples_are_those_of_the_unordered_pair():
    for seed in range(5):
        kg = random_graph(seed, entities=15, triples=120)
        pairs = Counter(frozenset((h, t)) for h, _, t in kg.train.tolist())
        expected = [pairs[frozenset((h, t))] > 1 for h, _, t in kg.train.tolist()]
        assert has_parallel(kg.adjacency, len(kg.train)).tolist() == expected
        assert 0 < sum(expected) < len(expected)


def batch_of(kg, triples, step=0):
    """The samples of some triples, as a sampler draws them."""
    head, relation, tail = kg.train[triples].T
    directed = np.concatenate([relation, relation + kg.num_relations])
    return Batch(
        step, np.array(triples, np.int32), np.concatenate([head, tail]), directed, np.concatenate([tail, head])
    )


class Reading:
    """A collate whose texts can be read."""

    def __init__(self, kg, backbone, config, seed=0):
        self.kg = kg
        self.tokenizer = AutoTokenizer.from_pretrained(backbone)
        self.texts = Texts(kg, self.tokenizer, config)
        self.seen: list[str] = []
        self.collate = Collate(kg, self.texts, self.pack, seed=seed)

    def pack(self, tokens):
        self.seen.extend(self.decode(tokens))

    def decode(self, tokens):
        return [self.tokenizer.decode(tokens.ids[a:b]) for a, b in itertools.pairwise(tokens.ptr)]

    def __call__(self, triples, step=0):
        """The texts that are encoded, and the batch."""
        self.seen.clear()
        batch = self.collate(batch_of(self.kg, triples, step))
        return list(self.seen), batch


@pytest.mark.parametrize(("exclude", "listed"), [("answer", False), ("edge", True)])
def test_a_mirrored_answer_is_listed_only_where_the_edge_alone_is_excluded(tiny_backbone, exclude, listed):
    # 0 and 1 are joined both ways, 2 and 3 once; names are "entity e0" and so on.
    kg = graph_of([(0, 0, 1), (1, 0, 0), (2, 0, 3), (3, 0, 4)], 5)
    texts, _ = Reading(kg, tiny_backbone, TextConfig(exclude=exclude))([0, 2])
    queries = [text for text in texts if "relation r0" in text]
    of_0, of_2 = (next(text for text in queries if f"[CLS] entity e{e}" in text) for e in (0, 2))
    assert ("entity e1" in of_0) == listed
    assert "entity e3" not in of_2


def test_neighbours_named_by_relation_lack_the_asked_triple_and_nothing_else(tiny_backbone):
    kg = random_graph(3, entities=9, triples=60)
    reading = Reading(kg, tiny_backbone, TextConfig(exclude="edge", neighbours_per_relation=99, max_tokens=2000))

    def listed(text):
        """An entity and the (relation, neighbour) pairs that its text names."""
        entity, *groups = re.sub(r"\[CLS\] (.*?) \[SEP\].*", r"\1", text).split(" ; ")
        pairs = (group.split(" : ") for group in groups)
        return entity, {(relation, name) for relation, names in pairs for name in names.split(", ")}

    relations = [f"{inverse}relation r{r}" for inverse in ("", "inverse ") for r in range(kg.num_relations)]
    known = {e: set() for e in range(9)}
    for h, r, t in kg.train.tolist():
        known[h] |= {(r, t)}
        known[t] |= {(r + kg.num_relations, h)}
    for i, (h, r, t) in enumerate(kg.train.tolist()):
        texts, _ = reading([i])
        expected = [
            (f"entity e{e} :", {(relations[d], f"entity e{v}") for d, v in known[e] - {triple} if v != e})
            for e, triple in ((h, (r, t)), (t, (r + kg.num_relations, h)))
        ]
        assert all(listed(text) in expected for text in texts), texts
        assert all(one in map(listed, texts) for one in expected)


def test_neighbour_dropout_leaves_a_share_of_the_training_texts_without_neighbours(tiny_backbone):
    kg = random_graph(4, entities=30, triples=400)

    def texts_of(share, step=0, seed=0):
        config = TextConfig(exclude="edge", neighbours_per_relation=10, max_tokens=2000, neighbour_dropout=share)
        reading = Reading(kg, tiny_backbone, config, seed)
        texts, batch = reading(np.arange(len(kg.train)), step)
        places = [*batch.query_places.tolist(), *batch.tail_places.tolist()]
        assert all(" ; " in text for text in reading.decode(reading.texts.entities(np.arange(30))))
        return [texts[i] for i in places]

    def bare(texts):
        return np.array([" ; " not in text for text in texts])

    plain = texts_of(0.0)
    assert not bare(plain).any()
    assert bare(texts_of(1.0)).all()
    half = texts_of(0.5)
    assert 0.45 < bare(half).mean() < 0.55
    # A text is that of an entity without neighbours, or the one it would have been.
    cut = [re.sub(r" ; .*?(?= \[SEP\])", "", text) for text in plain]
    assert half == [c if b else p for b, c, p in zip(bare(half), cut, plain, strict=True)]
    # Queries and answers are drawn apart, and again at each step; a step's draw is a matter of the seed.
    queries, answers = np.split(bare(half), 2)
    assert (queries != answers).any()
    assert half == texts_of(0.5)
    assert (bare(half) != bare(texts_of(0.5, step=1))).any()
    assert (bare(half) != bare(texts_of(0.5, seed=1))).any()


@settings(max_examples=60)
@given(LENGTHS, LENGTHS, st.none() | st.integers(64, 400), st.integers(1, 4))
def test_every_text_is_in_one_chunk_of_one_process(queries, tails, chunk_tokens, world):
    plan = plan_chunks(queries, tails, chunk_tokens, world)
    assert len(plan) == world
    assert {len(own) for own in plan} == {len(plan[0])}  # no process waits for another
    chunks = [chunk for own in plan for chunk in own]
    assert sorted(chunk.number for chunk in chunks) == list(range(len(chunks)))
    together = np.concatenate([chunk_places(plan, True, len(queries)), chunk_places(plan, False, len(tails))])
    assert sorted(together) == list(range(len(queries) + len(tails)))
    for chunk in chunks:
        lengths = (queries if chunk.queries else tails)[chunk.rows]
        assert (np.diff(lengths) >= 0).all()
        if chunk_tokens:
            assert lengths.sum() < chunk_tokens + 50


@settings(max_examples=60)
@given(LENGTHS, st.integers(1, 64), st.integers(1, 4))
def test_no_chunk_is_empty_where_texts_are_longer_than_one(lengths, chunk_tokens, world):
    chunks = [chunk for own in plan_chunks(lengths, lengths, chunk_tokens, world) for chunk in own]
    assert all(len(chunk.rows) for chunk in chunks)
    assert sorted(np.concatenate([c.rows for c in chunks if c.queries])) == list(range(len(lengths)))


@pytest.mark.parametrize("chunk_tokens", [None, 1_000])
def test_the_chunks_depend_on_processes_only_by_their_number(chunk_tokens):
    lengths = np.arange(1, 41)
    one, two = (plan_chunks(lengths, lengths, chunk_tokens, 2) for _ in range(2))
    assert [c.rows.tolist() for own in one for c in own] == [c.rows.tolist() for own in two for c in own]
    assert sum(len(own) for own in plan_chunks(lengths, lengths, 10**6, 1)) == 2  # one chunk a side where all fits


@pytest.mark.parametrize("chunk_tokens", [None, 3])
def test_a_batch_with_too_few_texts_for_the_processes_is_refused(chunk_tokens):
    assert all(plan_chunks(np.array([5, 5]), np.array([4, 4]), chunk_tokens, 4))  # one chunk each
    with pytest.raises(SatkgcError, match=r"4 texts for 5 processes; raise sampling\.batch_size"):
        plan_chunks(np.array([5, 5]), np.array([4, 4]), chunk_tokens, 5)
