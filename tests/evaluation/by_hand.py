"""Graphs, vectors and slow, plain rankings that the tests of evaluation share."""

from __future__ import annotations

import numpy as np

from graphs import graph_of
from satkgc.evaluation import Slices


def unit_vectors(rng, count, dim):
    vectors = rng.normal(size=(count, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def tied_vectors(rng, count, dim):
    """Short vectors from a coarse grid, so that many scores are equal."""
    return (rng.integers(-1, 2, (count, dim)) / 8 / np.sqrt(dim)).astype(np.float32)


def slices_of(lists):
    lists = [np.unique(np.asarray(row, np.int32)) for row in lists]
    stops = np.cumsum([len(row) for row in lists]).astype(np.int64)
    starts = stops - [len(row) for row in lists]
    values = np.concatenate([np.empty(0, np.int32), *lists]).astype(np.int32)
    return Slices(values, starts, stops)


def plain_counts(scores, answers, known):
    """Greater, equal and candidates of each query, by looking at one score after the other."""
    result = []
    for row, answer, others in zip(scores, answers, known, strict=True):
        rivals = [row[e] for e in range(len(row)) if e != answer and e not in set(others)]
        greater = sum(score > row[answer] for score in rivals)
        equal = sum(score == row[answer] for score in rivals)
        result.append((greater, equal, len(rivals) + 1))
    return np.array(result).reshape(-1, 3)


def counts_of(ranks):
    return np.stack([ranks.greater, ranks.equal, ranks.candidates], 1)


def split_graph(seed, entities=40, relations=3, triples=160, held_out=25):
    """A random graph with a validation and a test split."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, triples) for size in (entities, relations, entities)]
    rows = rng.permutation(np.unique(np.stack(columns, 1), axis=0))
    train, valid, test = np.split(rows, [len(rows) - 2 * held_out, len(rows) - held_out])
    return graph_of(train, entities, relations, valid, test)
