"""What a training text may say of the answer."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from transformers import AutoTokenizer

from graphs import graph_of, random_graph
from satkgc.models.text import ObjectiveConfig
from satkgc.sampling import Batch
from satkgc.text import TextConfig, Texts
from satkgc.training.collate import Collate, joined_otherwise


def test_joined_otherwise_counts_triples_of_the_unordered_pair():
    for seed in range(5):
        kg = random_graph(seed, entities=15, triples=120)
        pairs = Counter(frozenset((h, t)) for h, _, t in kg.train.tolist())
        expected = [pairs[frozenset((h, t))] > 1 for h, _, t in kg.train.tolist()]
        assert joined_otherwise(kg.adjacency, len(kg.train)).tolist() == expected
        assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize(("hide", "listed"), [("answer", False), ("edge", True)])
def test_a_mirrored_answer_is_listed_only_where_the_edge_alone_is_hidden(tiny_backbone, hide, listed):
    # 0 and 1 are joined both ways, 2 and 3 once; names are "entity e0" and so on.
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone)
    kg = graph_of([(0, 0, 1), (1, 0, 0), (2, 0, 3), (3, 0, 4)], 5)
    texts = Texts(kg, tokenizer, TextConfig(hide=hide))
    seen: list[str] = []

    def pack(batch):
        seen.extend(tokenizer.decode(batch.ids[a:b]) for a, b in zip(batch.ptr, batch.ptr[1:], strict=False))

    triples = np.array([0, 2], np.int32)
    Collate(kg, texts, ObjectiveConfig(), pack)(Batch(0, 0, triples, np.zeros((2, 2), np.int32)))
    queries = [text for text in seen if "relation r0" in text]
    of_0, of_2 = (next(text for text in queries if f"[CLS] entity e{e}" in text) for e in (0, 2))
    assert ("entity e1" in of_0) == listed
    assert "entity e3" not in of_2


def test_neighbours_named_by_relation_lack_the_asked_triple_and_nothing_else(tiny_backbone):
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone)
    kg = random_graph(3, entities=9, triples=60)
    named = TextConfig(hide="edge", neighbour_relations=True, neighbours=99, max_tokens=2000)
    seen: list[str] = []

    def pack(batch):
        seen.extend(tokenizer.decode(batch.ids[a:b]) for a, b in zip(batch.ptr, batch.ptr[1:], strict=False))

    def listed(text):
        """An entity and the (relation, neighbour) pairs that its text names."""
        entity, *groups = re.sub(r"\[CLS\] (.*?) \[SEP\].*", r"\1", text).split(" ; ")
        pairs = (group.split(" : ") for group in groups)
        return entity, {(relation, name) for relation, names in pairs for name in names.split(", ")}

    collate = Collate(kg, Texts(kg, tokenizer, named), ObjectiveConfig(), pack)
    relations = [f"{inverse}relation r{r}" for inverse in ("", "inverse ") for r in range(kg.num_relations)]
    known = {e: set() for e in range(9)}
    for h, r, t in kg.train.tolist():
        known[h] |= {(r, t)}
        known[t] |= {(r + kg.num_relations, h)}
    for i, (h, r, t) in enumerate(kg.train.tolist()):
        seen.clear()
        collate(Batch(0, i, np.array([i], np.int32), np.zeros((1, 2), np.int32)))
        expected = [
            (f"entity e{e} :", {(relations[d], f"entity e{v}") for d, v in known[e] - {asked} if v != e})
            for e, asked in ((h, (r, t)), (t, (r + kg.num_relations, h)))
        ]
        assert all(listed(text) in expected for text in seen), seen
        assert all(one in map(listed, seen) for one in expected)


def test_a_share_of_the_training_texts_names_no_neighbours(tiny_backbone):
    tokenizer = AutoTokenizer.from_pretrained(tiny_backbone)
    kg = random_graph(4, entities=30, triples=400)
    seen: list[str] = []

    def pack(batch):
        seen.extend(tokenizer.decode(batch.ids[a:b]) for a, b in zip(batch.ptr, batch.ptr[1:], strict=False))

    def texts_of(share, step=0, seed=0):
        named = TextConfig(hide="edge", neighbour_relations=True, max_tokens=2000, bare_share=share)
        texts = Texts(kg, tokenizer, named)
        seen.clear()
        every = np.arange(len(kg.train), dtype=np.int32)
        batch = Batch(step, 0, every, np.zeros((len(every), 2), np.int32))
        samples = Collate(kg, texts, ObjectiveConfig(), pack, seed=seed)(batch)
        queries = [seen[i] for i in samples.query_places.tolist()]
        answers = [seen[i] for i in samples.tail_places.tolist()]
        assert all(" ; " in text for text in map(tokenizer.decode, _rows(texts.entities(np.arange(30)))))
        return queries + answers

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


def _rows(batch):
    return [batch.ids[a:b] for a, b in zip(batch.ptr, batch.ptr[1:], strict=False)]
