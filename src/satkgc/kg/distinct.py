"""Triples without repeats."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg.adjacency import as_triples
from satkgc.kg.kernels import counting_sort, sorted_by


def distinct(triples: Int32, num_entities: int, num_relations: int) -> Int32:
    """The triples without repeats, each where it first stood; in linear time."""
    triples = as_triples(triples)
    _, relations, _ = sorted_by(triples, 0, 2, num_entities)
    if len(relations) == len(triples):  # as most often
        return triples
    return triples[_first_of_each(triples, num_entities, num_relations)]


@njit(cache=True, nogil=True)
def _first_of_each(triples, num_entities, num_relations):  # type: ignore[no-untyped-def]
    order = np.arange(len(triples)).astype(np.int32)
    order = counting_sort(triples[:, 2], order, num_entities)
    order = counting_sort(triples[:, 1], order, num_relations)
    order = counting_sort(triples[:, 0], order, num_entities)
    first = np.ones(len(triples), np.bool_)
    for place in range(1, len(order)):
        a, b = order[place - 1], order[place]
        if triples[a, 0] == triples[b, 0] and triples[a, 1] == triples[b, 1] and triples[a, 2] == triples[b, 2]:
            first[b] = False
    return first
