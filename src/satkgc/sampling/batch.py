"""What a sampler hands on."""

from __future__ import annotations

from dataclasses import dataclass

from satkgc.arrays import Int32


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """n training triples; with their inverses they are the 2n samples of one step."""

    step: int
    centre: int  # a training triple, the first of `triples`
    triples: Int32  # (n,) rows of kg.train
    distances: Int32  # (n, 2) hops from the centre's head to each triple's head and tail; -1: not reached
    pairs: Int32 | None = None  # (2n, 2n) hops from sample i's head to sample j's tail; with `distances = "pairs"`
