"""What is served, in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from satkgc import __version__
from satkgc.completion import Entity
from satkgc.serving.schemas import Info

if TYPE_CHECKING:
    from satkgc.completion import Completer


def describe(completer: Completer) -> Info:
    """The graph's name and size, whether there are probabilities, and entities to begin with."""
    kg = completer.kg
    return Info(
        graph=kg.name,
        entities=kg.num_entities,
        relations=kg.num_relations,
        triples=len(kg.train),
        calibrated=completer.asker.calibration is not None,
        reads_facts=completer.asker.texts.config.names_neighbours(""),
        examples=examples(completer),
        version=__version__,
    )


def examples(completer: Completer, count: int = 7) -> list[Entity]:
    """Heads of the most frequent relation, which a page offers first, spread over their best-connected twentieth: the
    very first are too general to be good questions."""
    kg, names = completer.kg, completer.asker.names
    heads = names.members(int(names.frequency.argmax()), "head", None)
    order = heads[np.argsort(-kg.adjacency.degree[heads], kind="stable")][: max(count, len(heads) // 20)]
    picked = order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(int)]
    of = kg.entities
    return [Entity(of.id(i), of.name(i), of.description(i), int(kg.adjacency.degree[i])) for i in picked]
