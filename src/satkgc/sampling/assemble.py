"""From a subgraph to a batch (Section 4.2): |B|/2 of its triples, and what to do when it has too few."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.sampling.hashset import contains, insert, new_set
from satkgc.sampling.philox import FILL, SELECT, SHARE, below, shuffle, words
from satkgc.sampling.schedule import move

TRIES = 16  # candidates looked at per missing triple before entity-disjointness is given up


@njit(cache=True, nogil=True)
def assemble(centre, subgraph, random, size, disjoint, visits, triples, order, place, bounds, seed, step):  # type: ignore[no-untyped-def]
    """The triples of a batch, the centre first.  # (size,)

    1. The centre, always: a least-visited triple that stayed unvisited would be chosen for ever.
    2. The subgraph in random order, with `visits` (T,) by them first, up to `size - random` triples.
    3. `random` triples drawn from the whole training set ("Mixed").
    4. What is still missing: the least-visited triples, ties broken at random.

    No triple comes twice. With `disjoint`, a triple enters only if neither of its ends is in the batch yet; where
    steps 3 and 4 find no such triple among `TRIES` candidates for each one missing, step 4 goes on without it, since
    a star, say, holds no two disjoint triples and a batch has a fixed size.
    """
    chosen = np.empty(size, np.int32)
    inside = new_set(size)
    ends = new_set(2 * size)
    insert(inside, centre)
    insert(ends, triples[centre, 0])
    insert(ends, triples[centre, 2])
    chosen[0] = centre
    count = 1

    shuffle(subgraph, len(subgraph), seed, SELECT, step)
    if len(visits) > 0:
        subgraph = subgraph[np.argsort(visits[subgraph], kind="mergesort")]
    for triple in subgraph:
        if count >= size - random:
            break
        if _admit(triple, triples, disjoint, inside, ends):
            chosen[count] = triple
            count += 1

    wanted = min(size, count + random)
    for i in range(TRIES * random):
        if count >= wanted:
            break
        a, b, _, _ = words(seed, SHARE, step, i)
        triple = np.int32(below(a, b, len(triples))[0])
        if _admit(triple, triples, disjoint, inside, ends):
            chosen[count] = triple
            count += 1

    drawn = 0  # places of `order` shuffled so far: a second look finds them in the same random order
    for keep_disjoint in (disjoint, False):
        looked = 0
        tries = min(TRIES * (size - count), len(order)) if keep_disjoint else len(order)
        block = 0
        while count < size and looked < tries:
            while bounds[block + 1] <= looked:
                block += 1
            if looked == drawn:
                a, b, _, _ = words(seed, FILL, step, looked)
                move(order, place, looked, looked + below(a, b, bounds[block + 1] - looked)[0])
                drawn += 1
            triple = order[looked]
            looked += 1
            if _admit(triple, triples, keep_disjoint, inside, ends):
                chosen[count] = triple
                count += 1
    return chosen


@njit(cache=True, nogil=True)
def _admit(triple, triples, disjoint, inside, ends):  # type: ignore[no-untyped-def]
    """Take the triple in unless it is there already or, where that matters, one of its ends is."""
    if contains(inside, triple):
        return False
    h, t = triples[triple, 0], triples[triple, 2]
    if disjoint and (contains(ends, h) or contains(ends, t)):
        return False
    insert(inside, triple)
    insert(ends, h)
    insert(ends, t)
    return True
