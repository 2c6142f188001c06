"""What a sampler hands on, and what a model can ask it to add."""

from __future__ import annotations

from dataclasses import dataclass

from satkgc.arrays import Int32


@dataclass(frozen=True)
class Needs:
    """What batches carry besides ids."""

    hops: bool = False
    negatives: int = 0  # K, for each sample


@dataclass(frozen=True, eq=False)
class Batch:
    """The 2n samples of one step: n training triples, then their inverses in the same order.

    Sample i < n is (h, r) → t, sample n + i is (t, r + R) → h.
    """

    step: int
    triples: Int32  # (n,) rows of kg.train; the first is the centre
    heads: Int32  # (2n,)
    relations: Int32  # (2n,) directed
    tails: Int32  # (2n,)
    hops: Int32 | None = None  # (2n,) from the centre's head to each sample's tail, -1: no path; with Needs.hops
    negatives: Int32 | None = None  # (2n, K) uniform entities, a function of (seed, step); with Needs.negatives

    def __len__(self) -> int:
        return len(self.heads)
