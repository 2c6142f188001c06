"""The structural hardness ω of a negative (Section 4.3): from hops to weights."""

from __future__ import annotations

from typing import Literal

import numpy as np

from satkgc.arrays import Float32, Int32
from satkgc.errors import SatkgcError

ProximityRule = Literal["product", "authors", "sum", "exact"]


def sample_hops(distances: Int32) -> tuple[Int32, Int32]:
    """Hops from the centre's head to the head and to the tail of each of the 2n samples.  # (n, 2) -> (2n,), (2n,)"""
    heads, tails = distances[:, 0], distances[:, 1]
    return np.concatenate([heads, tails]), np.concatenate([tails, heads])  # sample n + i is triple i turned round


def closeness(distances: Int32, rule: ProximityRule = "product") -> tuple[Float32, Float32]:
    """The two vectors whose outer product is ω, for the rules that have such: "product" and "authors".

    "product" (the paper): ω_ij = 1 / (d1 d2), d1 being the hops to sample i's head and d2 those to sample j's tail.
    "authors" (their code): v_i v_j with v = 1 / (d + 2), d being the hops to the sample's tail on both sides.

    The centre's head is 0 hops from itself; under "product" it counts as 1, as close as its neighbours, since ω would
    be infinite. An entity that was not reached (-1) has closeness 0: no path, no hardness.
    """
    heads, tails = sample_hops(distances)
    if rule == "product":
        return _reciprocal(heads), _reciprocal(tails)
    if rule == "authors":
        value: Float32 = np.where(tails < 0, 0, 1 / (np.maximum(tails, 0) + 2)).astype(np.float32)
        return value, value
    raise SatkgcError(f"proximity by {rule!r} is no outer product", remedy="use proximity() for the whole matrix")


def proximity(distances: Int32, rule: ProximityRule = "product", pairs: Int32 | None = None) -> Float32:
    """ω of sample i's head and sample j's tail.  # (n, 2) -> (2n, 2n)

    Besides the rules of `closeness`: "sum", ω = 1 / (d1 + d2); and "exact", ω = 1 / d with d the hops between the two
    themselves, from `pairs`, a batch's (2n, 2n) matrix. A distance of 0 counts as 1 and unreached gives 0, here too.
    """
    if rule == "exact":
        if pairs is None:
            raise SatkgcError(
                "exact proximity needs the distances of all pairs", remedy='set sampling.distances = "pairs"'
            )
        return _reciprocal(pairs)
    if rule == "sum":
        heads, tails = sample_hops(distances)
        reached = (heads >= 0)[:, None] & (tails >= 0)[None, :]
        return _reciprocal(np.where(reached, heads[:, None] + tails[None, :], -1))
    left, right = closeness(distances, rule)
    return np.outer(left, right)


def _reciprocal(hops: Int32) -> Float32:
    result: Float32 = np.where(hops < 0, 0, 1 / np.maximum(hops, 1)).astype(np.float32)
    return result
