"""One step's loss and gradients: encode in chunks, one loss over the whole batch, replay the chunks for gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from satkgc.encoder import Towers
from satkgc.kg.adjacency import Int64
from satkgc.objective import Objective
from satkgc.training.collate import Samples, Side
from satkgc.training.ranks import Ranks


@dataclass(frozen=True)
class Chunk:
    """Texts of one tower that go through it together."""

    number: int  # among all chunks of the batch, on whatever rank: with seed and step, what dropout is drawn from
    queries: bool  # which tower
    rows: Int64  # texts of that side, ascending in length
    start: int  # its place among the gathered vectors: rank after rank, chunk after chunk


def plan(samples: Samples, chunk_tokens: int | None, world: int) -> list[list[Chunk]]:
    """Cut both sides into length-sorted chunks of nearly equal tokens, and deal them out to the ranks in turn.

    Without `chunk_tokens` each rank has one chunk a side. Texts of one length lie together, so little is padded where a
    backbone needs padding; the number of chunks is a multiple of `world`, so no rank waits for another.
    """
    cuts: list[tuple[bool, Int64]] = []
    for side, queries in ((samples.queries, True), (samples.tails, False)):
        lengths = side.texts.lengths
        rounds = 1 if chunk_tokens is None else -(-int(lengths.sum()) // (chunk_tokens * world))
        count = min(rounds * world, len(lengths))
        order = np.argsort(lengths, kind="stable")
        before = np.cumsum(lengths[order]) - lengths[order]  # tokens in shorter texts
        places = np.searchsorted(before, np.arange(1, count) * lengths.sum() / count)
        cuts += [(queries, rows) for rows in np.split(order, places)]
    start = 0
    ranks: list[list[Chunk]] = []
    for rank in range(world):
        own = []
        for number in range(rank, len(cuts), world):
            queries, rows = cuts[number]
            own.append(Chunk(number, queries, rows, start))
            start += len(rows)
        ranks.append(own)
    return ranks


def backward(
    towers: Towers,
    objective: Objective,
    samples: Samples,
    *,
    seed: int = 0,
    chunk_tokens: int | None = None,
    precision: torch.dtype = torch.float32,
    ranks: Ranks | None = None,
) -> Tensor:
    """The loss of the global batch; its gradients are added to the parameters, on every rank the same.

    1. Each rank encodes its chunks. With one chunk a side the graph is kept; with `chunk_tokens` only the vectors are
       (gradient caching), so that memory is that of one chunk.
    2. The vectors of all ranks are gathered, and every rank computes the loss over all of them once, down to the
       gradient of each vector.
    3. Each rank carries the gradients of its own vectors back through its chunks, encoding them again where the graph
       was not kept: the same dropout is drawn, since it depends on seed, step and chunk alone.
    4. The gradients are summed over ranks; those of τ and β, which every rank has whole, are averaged.
    """
    ranks = ranks or Ranks(device=towers.device)
    relations = samples.relations.to(ranks.device)
    chunks = plan(samples, chunk_tokens, ranks.world)
    keep = chunk_tokens is None

    def encode(chunk: Chunk, grad: bool) -> Tensor:
        tower, side = (towers.queries, samples.queries) if chunk.queries else (towers.entities, samples.tails)
        torch.manual_seed(_seed(seed, samples.step, chunk.number))
        # A context for each chunk: weights that autocast converted without gradients must not serve with them.
        with (
            torch.set_grad_enabled(grad),
            torch.autocast(ranks.device.type, precision, enabled=precision != torch.float32),
        ):
            return tower(side.texts.select(chunk.rows))  # (rows, D)

    mine = [(chunk, encode(chunk, grad=keep)) for chunk in chunks[ranks.rank]]
    sizes = [sum(len(chunk.rows) for chunk in own) for own in chunks]
    vectors = ranks.gather(torch.cat([part.detach() for _, part in mine]), sizes)  # (all texts, D)
    vectors.requires_grad_(True)

    def of_samples(side: Side, queries: bool) -> Tensor:
        place = np.empty(len(side.texts), np.int64)
        for chunk in (chunk for own in chunks for chunk in own if chunk.queries == queries):
            place[chunk.rows] = chunk.start + np.arange(len(chunk.rows))
        return vectors[torch.from_numpy(place[side.of_sample]).to(ranks.device)]  # (B, D)

    loss: Tensor = objective(of_samples(samples.queries, True), of_samples(samples.tails, False), relations)
    loss.backward()  # type: ignore[no-untyped-call]
    assert vectors.grad is not None

    for chunk, part in mine:
        gradient = vectors.grad[chunk.start : chunk.start + len(chunk.rows)]
        (part if keep else encode(chunk, grad=True)).backward(gradient)  # type: ignore[no-untyped-call]
    ranks.sum_gradients(towers.parameters())
    ranks.sum_gradients(objective.parameters(), share=1 / ranks.world)
    return loss.detach()


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
