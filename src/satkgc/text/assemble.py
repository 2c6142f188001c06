"""The compiled loop that lays stored tokens out as a batch; it runs on the prefetch thread without the GIL."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _copy(source, start, stop, out, types, type_id, at, room):  # type: ignore[no-untyped-def]
    """Copy up to `room` tokens of source[start:stop] to out[at:]; returns how many."""
    count = min(stop - start, room)
    for i in range(count):
        out[at + i] = source[start + i]
        types[at + i] = type_id
    return count


@njit(cache=True, nogil=True)
def assemble(  # type: ignore[no-untyped-def]
    entities,  # (n,) int32
    without,  # (n,) int32 entity whose name may not be listed, or (0,)
    by,  # (n,) int32 directed relation by which alone it may not be listed, or (0,) for all
    directed,  # (n,) int32 directed relations, or (0,) for entity texts
    stored,  # (n,) which of the texts is theirs
    text_ids,
    text_ptr,
    lists,  # (n,) bool: whether neighbours are named
    name_ids,
    name_ptr,
    neighbour_ptr,
    neighbours,
    joined,  # the directed relation to each of them, to be named, ascending for an entity; or (0,) for bare names
    label_ids,
    label_ptr,
    mark_ids,  # of " ;", " :" and " ,"
    mark_ptr,
    relation_ids,
    relation_ptr,
    before,
    between,
    after,
    segments,
    max_tokens,
    max_neighbours,
):
    """Entity text, neighbour names, then the relation where there is one; the entity's side is what gets cut."""
    n = len(entities)
    ids = np.empty(n * max_tokens, np.int32)
    types = np.empty(n * max_tokens, np.uint8)
    ptr = np.zeros(n + 1, np.int64)
    special = len(before) + len(between) + len(after)
    at = 0
    for i in range(n):
        e = entities[i]
        room = max_tokens - special
        if len(directed) > 0:
            d = directed[i]
            room -= relation_ptr[d + 1] - relation_ptr[d]
        at += _copy(before, 0, len(before), ids, types, segments[0], at, len(before))
        got = _copy(text_ids, text_ptr[stored[i]], text_ptr[stored[i] + 1], ids, types, segments[1], at, room)
        at += got
        room -= got
        if lists[i]:
            listed = 0
            for j in range(neighbour_ptr[e], neighbour_ptr[e + 1]):
                if room == 0 or (listed == max_neighbours and len(joined) == 0):
                    break
                if len(joined) > 0 and j > neighbour_ptr[e] and joined[j] != joined[j - 1]:
                    listed = 0
                v = neighbours[j]
                hidden = len(without) > 0 and v == without[i] and (len(by) == 0 or joined[j] == by[i])
                if listed == max_neighbours or v == e or hidden:
                    continue
                if len(joined) > 0:
                    mark = 0 if listed == 0 else 2
                    got = _copy(mark_ids, mark_ptr[mark], mark_ptr[mark + 1], ids, types, segments[1], at, room)
                    if listed == 0:
                        start, stop = label_ptr[joined[j]], label_ptr[joined[j] + 1]
                        got += _copy(label_ids, start, stop, ids, types, segments[1], at + got, room - got)
                        got += _copy(mark_ids, mark_ptr[1], mark_ptr[2], ids, types, segments[1], at + got, room - got)
                    at += got
                    room -= got
                got = _copy(name_ids, name_ptr[v], name_ptr[v + 1], ids, types, segments[1], at, room)
                at += got
                room -= got
                listed += 1
        if len(directed) > 0:
            at += _copy(between, 0, len(between), ids, types, segments[2], at, len(between))
            d = directed[i]
            length = relation_ptr[d + 1] - relation_ptr[d]
            at += _copy(relation_ids, relation_ptr[d], relation_ptr[d + 1], ids, types, segments[3], at, length)
        at += _copy(after, 0, len(after), ids, types, segments[4], at, len(after))
        ptr[i + 1] = at
    return ids[:at].copy(), ptr, types[:at].copy()
