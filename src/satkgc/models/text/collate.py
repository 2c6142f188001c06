"""From a sampler's batch to all that a step of the text model needs: texts, chunks, masks; on the prefetch thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import Adjacency, KnowledgeGraph
from satkgc.models.text.false_negatives import known_pairs
from satkgc.models.text.packed import Packed
from satkgc.processes import Processes
from satkgc.sampling import Batch
from satkgc.text import Texts, TokenBatch


@dataclass(frozen=True)
class Chunk:
    """Texts of one tower that go through it together."""

    number: int  # among all chunks of the batch, on whatever process: with seed and step, what dropout is drawn from
    queries: bool  # which tower
    rows: Int64  # texts of that side, ascending in length
    start: int  # its place among the gathered vectors: process after process, chunk after chunk
    packed: Packed | None = None  # the texts, on the process that encodes them


@dataclass(frozen=True)
class TextBatch:
    """The B = 2n samples of a step: n triples, then their inverses in the same order. What comes again is encoded once.

    The head of sample i is the tail of sample (i + n) mod B, and no vector of it need be computed again.
    """

    step: int
    heads: Tensor  # (B,) int64
    relations: Tensor  # (B,) int64, directed
    tails: Tensor  # (B,) int64
    hops: Tensor | None  # (B,) int64: from the centre's head to each tail, -1 without a path; where the loss reads them
    masked_rows: Tensor  # (M,) int64: with masked_columns, in-batch negatives that are known answers
    masked_columns: Tensor  # (M,)
    chunks: list[list[Chunk]]  # of each process
    query_places: Tensor  # (B,) int64: where the vector of a sample's query lies among the encoded ones
    tail_places: Tensor  # (B,)

    def __len__(self) -> int:
        return len(self.heads)

    def to(self, device: torch.device) -> TextBatch:
        """The same with its tensors on a device."""
        moved: dict[str, Any] = {
            name: part.to(device, non_blocking=True) for name, part in vars(self).items() if isinstance(part, Tensor)
        }
        return replace(self, **moved)


class Collate:
    """Turns a `Batch` into a `TextBatch`. Calls share nothing that changes, so several threads may work at once."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        texts: Texts,
        pack: Callable[[TokenBatch], Packed],
        chunk_tokens: int | None = None,
        processes: Processes | None = None,
        seed: int = 0,
    ) -> None:
        self.kg = kg
        self.texts = texts
        self.pack = pack
        self.chunk_tokens = chunk_tokens
        self.processes = processes or Processes()
        self.seed = seed % 2**64
        # Derived lookups are built here and not by the first batches, several of which may ask at once.
        self.known = kg.known_train
        by_relation = texts.config.neighbours_per_relation > 0
        edge = texts.config.exclude == "edge"
        self.parallel = has_parallel(kg.adjacency, len(kg.train)) if edge and not by_relation else None
        self.exact = edge and by_relation  # neighbours are named by relation: the triple itself can be left out

    def __call__(self, batch: Batch) -> TextBatch:
        """Texts, masks and chunks of one batch; every process plans all chunks and lays out its own."""
        exclude_tails, exclude_heads = self._exclude(batch)
        drop_queries, drop_answers = self._neighbour_dropout(batch)
        queries = self.texts.outline(batch.heads, batch.relations, **exclude_tails, drop_neighbours=drop_queries)
        answers = self.texts.outline(batch.tails, **exclude_heads, drop_neighbours=drop_answers)
        chunks = plan_chunks(queries.lengths, answers.lengths, self.chunk_tokens, self.processes.world)
        rank = self.processes.rank
        query_places = chunk_places(chunks, True, len(queries.lengths))[queries.text_of]
        tail_places = chunk_places(chunks, False, len(answers.lengths))[answers.text_of]
        chunks[rank] = [
            replace(chunk, packed=self.pack((queries if chunk.queries else answers).lay_out(chunk.rows)))
            for chunk in chunks[rank]
        ]
        ids = batch.heads, batch.relations, batch.tails
        heads, relations, tails = map(self._tensor, ids)
        masked_rows, masked_columns = map(self._tensor, known_pairs(self.known, *ids, self.kg.num_relations))
        return TextBatch(
            step=batch.step,
            heads=heads,
            relations=relations,
            tails=tails,
            hops=None if batch.hops is None else self._tensor(batch.hops),
            masked_rows=masked_rows,
            masked_columns=masked_columns,
            chunks=chunks,
            query_places=self._tensor(query_places),
            tail_places=self._tensor(tail_places),
        )

    def _exclude(self, batch: Batch) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the neighbours named in a text must not give away: in a query its tail, in a tail's text the head."""
        heads, tails = batch.heads, batch.tails
        if self.parallel is not None:
            parallel = np.tile(self.parallel[batch.triples], 2)  # (B,)
            heads, tails = np.where(parallel, -1, heads), np.where(parallel, -1, tails)
        if self.exact:
            inverse = np.roll(batch.relations, len(batch.triples))
            in_queries = {"exclude": tails, "exclude_relation": batch.relations}
            return in_queries, {"exclude": heads, "exclude_relation": inverse}
        return {"exclude": tails}, {"exclude": heads}

    def _neighbour_dropout(self, batch: Batch) -> Any:
        """Which texts of queries and of answers name no neighbours: the same in every process, and after a resume."""
        share = self.texts.config.neighbour_dropout
        if not share:
            return None, None
        key = np.array([self.seed, batch.step], np.uint64)
        return np.random.Generator(np.random.Philox(key=key)).random((2, len(batch))) < share

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        tensor = torch.from_numpy(array.astype(np.int64))
        # From page-locked memory a GPU copies without stopping the host.
        return tensor.pin_memory() if self.processes.device.type == "cuda" else tensor


def has_parallel(adjacency: Adjacency, num_triples: int) -> Bool:
    """For each training triple, whether another one joins the same two entities, either way.  # (T,)"""
    sizes = np.diff(adjacency.edge_ptr)
    result = np.zeros(num_triples, np.bool_)
    result[adjacency.edges[np.repeat(sizes > 1, sizes)]] = True
    return result


def joined_otherwise(kg: KnowledgeGraph, heads: Int32, directed: Int32, tails: Int32) -> Bool:
    """Whether a fact other than (head, directed relation, tail) joins the two entities, either way.  # (n,)"""
    graph, known = kg.fact_adjacency, kg.known_facts
    result = np.zeros(len(heads), np.bool_)
    for row, (u, r, v) in enumerate(zip(heads.tolist(), directed.tolist(), tails.tolist(), strict=True)):
        slot = graph.neighbour_ptr[u] + np.searchsorted(graph.neighbours_of(u), v)
        if slot < graph.neighbour_ptr[u + 1] and graph.neighbours[slot] == v:
            edges = graph.edge_ptr[slot + 1] - graph.edge_ptr[slot]
            result[row] = edges > np.isin(v, known.answers(u, r))
    return result


def plan_chunks(queries: Int64, tails: Int64, chunk_tokens: int | None, world: int) -> list[list[Chunk]]:
    """Cut both sides into length-sorted chunks of nearly equal tokens, and deal them out to the processes in turn.

    `queries` and `tails` are the lengths of the texts. Without `chunk_tokens` each process has one chunk a side. Texts
    of one length lie together, so little is padded where a backbone needs padding. Where there are texts enough, the
    number of chunks is a multiple of `world`, so that no process waits for another; each must have one.
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
    plan: list[list[Chunk]] = []
    for rank in range(world):
        own = []
        for number in range(rank, len(cuts), world):
            own.append(Chunk(number, *cuts[number], start))
            start += len(cuts[number][1])
        plan.append(own)
    return plan


def _apart(cuts: Int64, size: int) -> Int64:
    """Ascending places to cut `size` texts at, moved so little that no piece is empty."""
    number = np.arange(1, len(cuts) + 1)
    ahead = np.maximum.accumulate(np.maximum(cuts - number, 0))
    return np.minimum(ahead, size - len(cuts) - 1) + number


def chunk_places(chunks: list[list[Chunk]], queries: bool, texts: int) -> Int64:
    """Where the vector of each text of a side lies among the gathered ones.  # (texts,)"""
    result: Int64 = np.empty(texts, np.int64)
    for chunk in (chunk for own in chunks for chunk in own if chunk.queries == queries):
        result[chunk.rows] = chunk.start + np.arange(len(chunk.rows))
    return result
