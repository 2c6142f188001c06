"""Whom an answer competes with: all entities, those of the split, or a sample."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.evaluation.ranking import Ranks
from satkgc.kg import KnowledgeGraph


def candidate_entities(kg: KnowledgeGraph, split: str, which: str) -> Int32:
    """The entities to rank, ascending.

    "all" is every entity of the graph. "split" is the entities in the split's own triples, with those that an inductive
    graph names for the split: what Wikidata5M's inductive setting ranks.
    """
    if which == "all":
        return np.arange(kg.num_entities, dtype=np.int32)
    if which != "split":
        raise SatkgcError(f"unknown candidates {which!r}", remedy='evaluation.candidates is "all" or "split"')
    named = kg.split_entities.get(split, np.empty(0, np.int32))
    return np.union1d(kg.split(split)[:, [0, 2]], named).astype(np.int32)


def sample_candidates(ranks: Ranks, sampled: int, seed: int, purpose: str) -> Ranks:
    """Ranks among the answer and `sampled` other entities, drawn for each query without replacement after the filter.

    Of the entities drawn only the number that beat the answer and the number that tie with it matter. Those numbers
    follow a hypergeometric law given the exact full counts, so they are drawn from it and no entity has to be: the
    result has the distribution of an explicit draw. Where fewer others are left, all of them compete.
    """
    rng = np.random.default_rng([seed, *purpose.encode()])
    others = ranks.candidates - 1
    drawn = np.minimum(sampled, others)
    greater = rng.hypergeometric(ranks.greater, others - ranks.greater, drawn)
    rest = others - ranks.greater  # those that do not beat the answer, of which drawn - greater are taken
    equal = rng.hypergeometric(ranks.equal, rest - ranks.equal, drawn - greater)
    return Ranks(greater, equal, drawn + 1)
