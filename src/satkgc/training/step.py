"""One step's loss and gradients: encode in chunks, one loss over the whole batch, replay the chunks for gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.encoder import Towers
from satkgc.kg.adjacency import Int64
from satkgc.objective import Objective
from satkgc.text import TokenBatch
from satkgc.training.collate import Samples, Side
from satkgc.training.ranks import Ranks


@dataclass(frozen=True)
class Chunk:
    """Texts of one tower that go through it together."""

    number: int  # among all chunks of the batch, on whatever rank: with seed and step, what dropout is drawn from
    queries: bool  # which tower
    rows: Int64  # texts of that side, ascending in length


def plan(samples: Samples, chunk_tokens: int | None, world: int) -> list[Chunk]:
    """Cut both sides into length-sorted chunks of nearly equal tokens; chunk k is rank k mod `world`'s.

    Without `chunk_tokens` each rank has one chunk a side. Texts of one length lie together, so little is padded where a
    backbone needs padding; the number of chunks is a multiple of `world`, so no rank waits for another.
    """
    chunks: list[Chunk] = []
    for side, queries in ((samples.queries, True), (samples.tails, False)):
        lengths = side.texts.lengths
        rounds = 1 if chunk_tokens is None else -(-int(lengths.sum()) // (chunk_tokens * world))
        count = min(rounds * world, len(lengths))
        order = np.argsort(lengths, kind="stable")
        before = np.cumsum(lengths[order]) - lengths[order]  # tokens in shorter texts
        cuts = np.searchsorted(before, np.arange(1, count) * lengths.sum() / count)
        for rows in np.split(order, cuts):
            chunks.append(Chunk(len(chunks), queries, rows))
    return chunks


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

    1. Each rank encodes its chunks. With one chunk a side the graph is kept; with more, only the vectors are
       (gradient caching), so that memory is that of one chunk.
    2. The vectors of all ranks are gathered, and every rank computes the loss over all of them once, down to the
       gradient of each vector.
    3. Each rank carries the gradients of its own vectors back through its chunks, encoding them again where the graph
       was not kept: the same dropout is drawn, since it depends on seed, step and chunk alone.
    4. The towers' gradients are summed over ranks. Those of τ and β are the same everywhere already.
    """
    ranks = ranks or Ranks(device=towers.device)
    relations = samples.relations.to(ranks.device)
    chunks = plan(samples, chunk_tokens, ranks.world)
    mine = chunks[ranks.rank :: ranks.world]
    keep = chunk_tokens is None

    def encode(chunk: Chunk, grad: bool) -> Tensor:
        tower, side = (towers.queries, samples.queries) if chunk.queries else (towers.entities, samples.tails)
        texts: TokenBatch = side.texts.select(chunk.rows)
        torch.manual_seed(_seed(seed, samples.step, chunk.number))
        # A context for each chunk: weights that autocast converted without gradients must not serve with them.
        with (
            torch.set_grad_enabled(grad),
            torch.autocast(ranks.device.type, precision, enabled=precision != torch.float32),
        ):
            return tower(texts)

    encoded = [encode(chunk, grad=keep) for chunk in mine]
    vectors = ranks.gather(torch.cat([part.detach() for part in encoded]), _rows_by_rank(chunks, ranks.world))
    vectors.requires_grad_(True)  # (u_queries + u_tails, D)
    places = _places(chunks, ranks.world, samples)

    def of_samples(side: Side, place: Int64) -> Tensor:
        return vectors[torch.from_numpy(place[side.of_sample]).to(ranks.device)]  # (B, D)

    loss: Tensor = objective(of_samples(samples.queries, places[0]), of_samples(samples.tails, places[1]), relations)
    loss.backward()  # type: ignore[no-untyped-call]
    assert vectors.grad is not None
    first = sum(_rows_by_rank(chunks, ranks.world)[: ranks.rank])
    gradients = vectors.grad[first:].split([len(chunk.rows) for chunk in mine] + [_rest(vectors, first, mine)])

    for chunk, part, gradient in zip(mine, encoded, gradients, strict=False):
        (part if keep else encode(chunk, grad=True)).backward(gradient)  # type: ignore[no-untyped-call]
    ranks.sum_gradients(parameter for parameter in towers.parameters() if parameter.requires_grad)
    return loss.detach()


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _rows_by_rank(chunks: list[Chunk], world: int) -> list[int]:
    return [sum(len(chunk.rows) for chunk in chunks[rank::world]) for rank in range(world)]


def _rest(vectors: Tensor, first: int, mine: list[Chunk]) -> int:
    return len(vectors) - first - sum(len(chunk.rows) for chunk in mine)


def _places(chunks: list[Chunk], world: int, samples: Samples) -> tuple[Int64, Int64]:
    """Where each text's vector lies among the gathered ones: rank after rank, chunk after chunk."""
    places = tuple(np.empty(len(side.texts), np.int64) for side in (samples.queries, samples.tails))
    at = 0
    for rank in range(world):
        for chunk in chunks[rank::world]:
            places[0 if chunk.queries else 1][chunk.rows] = np.arange(at, at + len(chunk.rows))
            at += len(chunk.rows)
    return places  # type: ignore[return-value]
