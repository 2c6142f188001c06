"""False negatives: in-batch tails that are right answers too, listed on the prefetch thread by compiled code."""

from __future__ import annotations

import numpy as np
from numba import njit

from satkgc.arrays import Int32
from satkgc.kg import KnownTriples


def known_pairs(
    known: KnownTriples, heads: Int32, directed: Int32, tails: Int32, num_relations: int
) -> tuple[Int32, Int32]:
    """Rows and columns where the tail of sample `column` is a known answer of query `row`, off the diagonal.

    Query i is (heads[i], directed[i]), all three arrays (B,). With every triple's inverse in the batch, the same pairs
    say which heads are known, so this one list serves both directions of the loss and the self-negatives.
    """
    order = np.argsort(tails, kind="stable").astype(np.int32)
    return _known_pairs(
        (known.head_ptr, known.head_relations, known.head_tails),
        (known.tail_ptr, known.tail_relations, known.tail_heads),
        np.ascontiguousarray(heads, np.int32),
        np.ascontiguousarray(directed, np.int32),
        order,
        tails[order],
        num_relations,
    )


@njit(cache=True, nogil=True)
def _bisect(values, low, high, value):  # type: ignore[no-untyped-def]
    """The first place in values[low:high], ascending, whose value is not below `value`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _twice(array):  # type: ignore[no-untyped-def]
    bigger = np.empty(2 * len(array), array.dtype)
    for i in range(len(array)):  # a slice would compile what it says of unequal shapes, which takes 2 s
        bigger[i] = array[i]
    return bigger


@njit(cache=True, nogil=True)
def _known_pairs(by_head, by_tail, heads, directed, order, tails, num_relations):  # type: ignore[no-untyped-def]
    rows = np.empty(4 * len(heads) + 4, np.int32)
    columns = np.empty_like(rows)
    count = 0
    for row in range(len(heads)):
        relation = directed[row]
        ptr, relations, answers = by_head if relation < num_relations else by_tail
        relation %= num_relations
        first = _bisect(relations, ptr[heads[row]], ptr[heads[row] + 1], relation)
        last = _bisect(relations, first, ptr[heads[row] + 1], relation + 1)
        # Walk the shorter list, the query's known answers or the batch's tails, and look it up in the longer one:
        # a hub's answers may be millions.
        a, b = first, 0
        few_answers = last - first < len(tails)
        while a < last and b < len(tails):
            if answers[a] == tails[b]:
                if order[b] != row:
                    if count == len(rows):
                        rows, columns = _twice(rows), _twice(columns)
                    rows[count] = row
                    columns[count] = order[b]
                    count += 1
                b += 1  # the next tail may be the same entity
            elif answers[a] < tails[b]:
                a = a + 1 if few_answers else _bisect(answers, a, last, tails[b])
            else:
                b = _bisect(tails, b, len(tails), answers[a]) if few_answers else b + 1
    return rows[:count].copy(), columns[:count].copy()
