"""Where a model is good and where it is not: metrics by relation, relation category, degree and novelty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from satkgc.arrays import Bool, Int32
from satkgc.evaluation.metrics import DIRECTIONS, measure, measure_directions
from satkgc.evaluation.ranking import Ranks
from satkgc.kg import CATEGORIES, KnowledgeGraph, relation_categories


def break_down(kg: KnowledgeGraph, triples: Int32, ranks: dict[str, Ranks], ties: str) -> dict[str, object]:
    """All break-downs of the ranks of (n, 3) triples in both directions."""
    return {
        "relation": by_relation(kg, triples, ranks, ties),
        "category": by_category(kg, triples, ranks, ties),
        "degree": by_degree(kg, triples, ranks, ties),
        "unseen": by_unseen(kg, triples, ranks, ties),
    }


def by_relation(
    kg: KnowledgeGraph, triples: Int32, ranks: dict[str, Ranks], ties: str
) -> dict[str, dict[str, dict[str, float]]]:
    """Head, tail and both for every relation that the triples hold, by its id."""
    return {
        kg.relations.id(relation): _directions(ranks, triples[:, 1] == relation, ties)
        for relation in np.unique(triples[:, 1])
    }


def by_category(
    kg: KnowledgeGraph, triples: Int32, ranks: dict[str, Ranks], ties: str
) -> dict[str, dict[str, dict[str, float]]]:
    """Head, tail and both by category; "new" are relations without a training triple."""
    category = relation_categories(kg)[triples[:, 1]]
    names = (*CATEGORIES, "new")
    return {
        name: _directions(ranks, category == place, ties)
        for place, name in enumerate(names)
        if (category == place).any()
    }


def by_degree(kg: KnowledgeGraph, triples: Int32, ranks: dict[str, Ranks], ties: str) -> dict[str, dict[str, float]]:
    """Over both directions, by how many neighbours the answer has in training, in powers of two."""
    pooled, degree = _pool(ranks), kg.adjacency.degree[_answers(triples)]
    return {
        name: measure(pooled.select((degree >= low) & (degree <= high)), ties)
        for name, low, high in _degree_buckets(int(degree.max(initial=0)))
        if ((degree >= low) & (degree <= high)).any()
    }


def by_unseen(kg: KnowledgeGraph, triples: Int32, ranks: dict[str, Ranks], ties: str) -> dict[str, dict[str, float]]:
    """Over both directions, by which of the question's entity and the answer training never showed."""
    pooled, new = _pool(ranks), kg.adjacency.degree == 0
    answer, question = new[_answers(triples)], new[_answers(triples[:, ::-1])]
    groups = {
        "neither": ~answer & ~question,
        "answer": answer & ~question,
        "question": question & ~answer,
        "both": answer & question,
    }
    return {name: measure(pooled.select(group), ties) for name, group in groups.items()}


def _directions(ranks: dict[str, Ranks], group: Bool, ties: str) -> dict[str, dict[str, float]]:
    return measure_directions({direction: part.select(group) for direction, part in ranks.items()}, ties)


def _pool(ranks: dict[str, Ranks]) -> Ranks:
    return Ranks.concatenate([ranks[direction] for direction in DIRECTIONS])


def _answers(triples: Int32) -> Int32:
    """The answers of the pooled queries: heads, then tails."""
    return np.concatenate([triples[:, 0], triples[:, 2]])


def _degree_buckets(largest: int) -> Iterator[tuple[str, int, int]]:
    yield "0", 0, 0
    low = 1
    while low <= largest:
        high = 2 * low - 1
        yield (str(low) if low == high else f"{low}-{high}"), low, high
        low *= 2
