"""How a batch is cut into chunks that are encoded one at a time, and which rank encodes which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Int64
from satkgc.errors import SatkgcError
from satkgc.models.text.packed import Packed


@dataclass(frozen=True)
class Chunk:
    """Texts of one tower that go through it together."""

    number: int  # among all chunks of the batch, on whatever rank: with seed and step, what dropout is drawn from
    queries: bool  # which tower
    rows: Int64  # texts of that side, ascending in length
    start: int  # its place among the gathered vectors: rank after rank, chunk after chunk
    packed: Packed | None = None  # the texts, on the rank that encodes them


def plan(queries: Int64, tails: Int64, chunk_tokens: int | None, world: int) -> list[list[Chunk]]:
    """Cut both sides into length-sorted chunks of nearly equal tokens, and deal them out to the ranks in turn.

    `queries` and `tails` are the lengths of the texts. Without `chunk_tokens` each rank has one chunk a side. Texts of
    one length lie together, so little is padded where a backbone needs padding. Where there are texts enough, the
    number of chunks is a multiple of `world`, so that no rank waits for another; each must have one.
    """
    cuts: list[tuple[bool, Int64]] = []
    for lengths, of_queries in ((queries, True), (tails, False)):
        rounds = 1 if chunk_tokens is None else -(-int(lengths.sum()) // (chunk_tokens * world))
        count = min(rounds * world, len(lengths))
        order = np.argsort(lengths, kind="stable")
        before = np.cumsum(lengths[order]) - lengths[order]  # tokens in shorter texts
        places = np.searchsorted(before, np.arange(1, count) * lengths.sum() / count)
        places = _apart(places, len(lengths))  # a text longer than a chunk should be takes more than its share
        cuts += [(of_queries, rows) for rows in np.split(order, places)]
    if len(cuts) < world:
        what = f"a batch of {len(cuts)} texts for {world} processes"
        raise SatkgcError(what, remedy="raise sampling.batch_size, or start fewer processes")
    start = 0
    ranks: list[list[Chunk]] = []
    for rank in range(world):
        own = []
        for number in range(rank, len(cuts), world):
            own.append(Chunk(number, *cuts[number], start))
            start += len(cuts[number][1])
        ranks.append(own)
    return ranks


def _apart(cuts: Int64, size: int) -> Int64:
    """Ascending places to cut `size` texts at, moved so little that no piece is empty."""
    number = np.arange(1, len(cuts) + 1)
    ahead = np.maximum.accumulate(np.maximum(cuts - number, 0))
    return np.minimum(ahead, size - len(cuts) - 1) + number


def places(chunks: list[list[Chunk]], queries: bool, texts: int) -> Int64:
    """Where the vector of each text of a side lies among the gathered ones.  # (texts,)"""
    result: Int64 = np.empty(texts, np.int64)
    for chunk in (chunk for own in chunks for chunk in own if chunk.queries == queries):
        result[chunk.rows] = chunk.start + np.arange(len(chunk.rows))
    return result
