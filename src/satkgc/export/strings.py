"""The strings that the towers read: what has to be handed to a tokenizer outside of satkgc to get the same vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from satkgc.kg import KnowledgeGraph
from satkgc.text import TextConfig, full_text, relation_label, relation_text


def entity_strings(
    kg: KnowledgeGraph, config: TextConfig, sep: str, start: int = 0, stop: int | None = None
) -> Iterator[str]:
    """Texts of entities, in order: name and description, and neighbours' names where the description is short."""
    stop = kg.num_entities if stop is None else stop

    def label(directed: int) -> str:
        relation, inverse = directed % kg.num_relations, directed >= kg.num_relations
        return relation_label(kg.relations.id(relation), kg.relations.name(relation), inverse)

    for entity in range(start, stop):
        near = list(_near(kg, config, entity)) if config.max_neighbours else []
        yield full_text(kg.entities.name(entity), kg.entities.description(entity), near, config, label)


def relation_strings(kg: KnowledgeGraph, config: TextConfig) -> list[str]:
    """Texts of the 2R directed relations, the inverse ones after the others."""
    both = [(kg.relations.id(r), kg.relations.name(r)) for r in range(kg.num_relations)]
    return [relation_text(id, name, config, inverse) for inverse in (False, True) for id, name in both]


def sample_pairs(
    kg: KnowledgeGraph, config: TextConfig, sep: str, count: int = 16
) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """Some queries as pairs of strings, and as (entity, directed relation), to check an export with."""
    rng = np.random.default_rng(0)
    entities = rng.integers(0, kg.num_entities, count).tolist()
    directed = rng.integers(0, 2 * kg.num_relations, count).tolist()
    relations = relation_strings(kg, config)
    pairs = [
        (next(entity_strings(kg, config, sep, e, e + 1)), relations[d]) for e, d in zip(entities, directed, strict=True)
    ]
    return pairs, list(zip(entities, directed, strict=True))


def _near(kg: KnowledgeGraph, config: TextConfig, entity: int) -> Iterator[tuple[int, str]]:
    """An entity's neighbours: directed relations, all the same where they are not named, and names."""
    if not config.neighbours_per_relation:
        found = [(0, kg.adjacency.neighbours_of(entity))]
    else:
        found = [(directed, kg.known_train.answers(entity, directed)) for directed in range(2 * kg.num_relations)]
    for directed, others in found:
        yield from ((directed, kg.entities.name(int(other))) for other in others if other != entity)
