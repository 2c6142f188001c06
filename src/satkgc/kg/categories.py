"""Relations by how many tails a head has and how many heads a tail: 1-1, 1-N, N-1, N-N."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32, Int64
from satkgc.kg.graph import KnowledgeGraph

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
MANY = 1.5  # TransE's bound: an average below it counts as one


def relation_categories(graph: KnowledgeGraph) -> Int32:
    """For each relation an index into CATEGORIES, by averages over train; 4 for one without a triple there."""
    known = graph.known_train
    triples = np.bincount(known.head_relations, minlength=graph.num_relations)  # (R,)
    heads = _distinct(known.head_ptr, known.head_relations, graph.num_relations)
    tails = _distinct(known.tail_ptr, known.tail_relations, graph.num_relations)
    many_tails = triples >= MANY * heads  # tails per head
    many_heads = triples >= MANY * tails  # heads per tail
    category = np.where(many_tails, np.where(many_heads, 3, 1), np.where(many_heads, 2, 0))
    return np.where(triples == 0, len(CATEGORIES), category).astype(np.int32)


def _distinct(ptr: Int64, relations: Int32, num_relations: int) -> Int64:
    """How many entities each relation occurs at: (entity, relation) pairs, which lie together in the sorted order."""
    first = np.ones(len(relations), bool)
    first[1:] = relations[1:] != relations[:-1]
    starts = ptr[:-1]
    first[starts[starts < len(relations)]] = True
    return np.bincount(relations[first], minlength=num_relations)
