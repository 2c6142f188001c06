"""The Metropolis-Hastings chain over entities (Appendix B, Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.sampling.philox import CHAIN, HEADED, below, words

LEAST_COSINE = 1e-6


def nearest(vectors: Any, k: int, block: int = 512) -> Int32:
    """The k nearest others of each unit vector, exact, in no particular order.  # (E, D) -> (E, min(k, E - 1))"""
    k = min(k, len(vectors) - 1)
    result = np.empty((len(vectors), k), np.int32)
    if k == 0:
        return result
    for first in range(0, len(vectors), block):
        cosines = vectors[first : first + block] @ vectors.T  # (block, E)
        rows = np.arange(len(cosines))
        cosines[rows, first + rows] = -np.inf
        result[first : first + block] = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    return result


@njit(cache=True, nogil=True)
def chain(queries, entities, nearest, k, alpha, burn_in, seed, step):  # type: ignore[no-untyped-def]
    """The states of Algorithm 1's chain after the burn-in, k for each query.  # (d * k,)"""
    states = np.empty(len(queries) * k, np.int32)
    a, b, _, _ = words(seed, CHAIN, step, 0)
    x = below(a, b, len(entities))[0]
    index = 1
    for i in range(len(queries)):
        of_x = _target(queries[i], entities[x], alpha)
        for j in range(-burn_in if i == 0 else 0, k):
            a, b, c, d = words(seed, CHAIN, step, index)
            index += 1
            near = nearest.shape[1] > 0 and a < np.uint64(1 << 31)
            y = np.int64(nearest[x, below(b, c, nearest.shape[1])[0]]) if near else below(b, c, len(entities))[0]
            of_y = _target(queries[i], entities[y], alpha)
            ratio = of_y / of_x * _proposal(x, y, nearest) / _proposal(y, x, nearest)
            if np.float64(d) < ratio * 4294967296.0:
                x, of_x = y, of_y
            if j >= 0:
                states[i * k + j] = x
    return states


@njit(cache=True, nogil=True)
def _target(query, entity, alpha):  # type: ignore[no-untyped-def]
    cosine = 0.0
    for i in range(len(query)):
        cosine += query[i] * entity[i]
    return max(cosine, LEAST_COSINE) ** alpha


@njit(cache=True, nogil=True)
def _proposal(y, x, nearest):  # type: ignore[no-untyped-def]
    """q(y|x), the part of the uniform half being 1/|E| and the whole doubled."""
    value = 1.0 / len(nearest)
    for z in nearest[x]:
        if z == y:
            value += 1.0 / nearest.shape[1]
    return value


@njit(cache=True, nogil=True)
def triples_of(entities, head_ptr, headed, tail_ptr, ended, seed, step):  # type: ignore[no-untyped-def]
    """A uniform triple headed by each entity, else one it ends, else -1.  # (m,) -> (m,)"""
    result = np.full(len(entities), -1, np.int32)
    for i in range(len(entities)):
        e = entities[i]
        a, b, _, _ = words(seed, HEADED, step, i)
        if head_ptr[e + 1] > head_ptr[e]:
            result[i] = headed[head_ptr[e] + below(a, b, head_ptr[e + 1] - head_ptr[e])[0]]
        elif tail_ptr[e + 1] > tail_ptr[e]:
            result[i] = ended[tail_ptr[e] + below(a, b, tail_ptr[e + 1] - tail_ptr[e])[0]]
    return result
