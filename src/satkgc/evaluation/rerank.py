"""Neighbourhood re-ranking: a bonus for candidates near the query's entity in the training graph. Off by default.

SimKGC's trick, no part of SATKGC: the answers of a benchmark tend to be near the question's entity, so adding a
constant to everything within a few hops helps the ranks without teaching the model anything. Reports name it.
"""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Int32
from satkgc.evaluation.questions import Slices
from satkgc.evaluation.ranking import Bonus
from satkgc.kg import Adjacency, entities_within


def neighbourhood_bonus(adjacency: Adjacency, entities: Int32, hops: int, weight: float) -> Bonus:
    """Add `weight` to the cosine of all entities at most `hops` from entities[i], itself included."""
    sources, place = np.unique(entities, return_inverse=True)
    values, ptr = entities_within(adjacency, sources, hops)
    return Bonus(Slices(values, ptr[place], ptr[place + 1]), weight)
