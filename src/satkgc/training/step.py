"""One step's loss and gradients: encode in chunks, one loss over the whole batch, replay the chunks for gradients."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from satkgc.errors import SatkgcError
from satkgc.models.text import Objective, Towers
from satkgc.processes import Processes
from satkgc.training.collate import Samples
from satkgc.training.plan import Chunk


def backward(
    towers: Towers,
    objective: Objective,
    samples: Samples,
    *,
    seed: int = 0,
    keep: bool = True,
    precision: torch.dtype = torch.float32,
    ranks: Processes | None = None,
) -> Tensor:
    """The loss of the global batch; its gradients are added to the parameters, on every rank the same.

    1. Each rank encodes its chunks. With `keep` their graphs are kept; without it only the vectors are (gradient
       caching), and the last chunk's graph, so that memory is that of one chunk.
    2. The vectors of all ranks are gathered, and every rank computes the loss over all of them once, down to the
       gradient of each vector.
    3. Each rank carries the gradients of its own vectors back through its chunks, encoding them again where the graph
       was not kept: the same dropout is drawn, since it depends on seed, step and chunk alone.
    4. The gradients are summed over ranks; those of τ and β, which every rank has whole, are averaged.
    """
    ranks = ranks or Processes(device=towers.device)
    relations = samples.relations.to(ranks.device)

    def encode(chunk: Chunk, grad: bool) -> Tensor:
        assert chunk.packed is not None, "a chunk of another rank"
        torch.manual_seed(_seed(seed, samples.step, chunk.number))
        # A context for each chunk: weights that autocast converted without gradients must not serve with them.
        with (
            torch.set_grad_enabled(grad),
            torch.autocast(ranks.device.type, precision, enabled=precision != torch.float32),
        ):
            return (towers.queries if chunk.queries else towers.entities)(chunk.packed)  # (rows, D)

    own = samples.chunks[ranks.rank]
    mine = [(chunk, encode(chunk, grad=keep or chunk is own[-1])) for chunk in own]
    sizes = [sum(len(chunk.rows) for chunk in chunks) for chunks in samples.chunks]
    vectors = ranks.gather(torch.cat([part.detach() for _, part in mine]), sizes)  # (all texts, D)
    vectors.requires_grad_(True)

    def of_samples(places: Tensor) -> Tensor:
        # A lookup whose backward adds up in a fixed order, unlike that of indexing.
        return functional.embedding(places.to(ranks.device, non_blocking=True), vectors)  # (B, D)

    loss: Tensor = objective(of_samples(samples.query_places), of_samples(samples.tail_places), relations)
    if not isinstance(loss, Tensor) or loss.ndim or not loss.requires_grad:
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        remedy = "return one number, a tensor of shape () that is made of the vectors"
        raise SatkgcError(f"the loss {type(objective).__qualname__} gave {given}", remedy=remedy)
    loss.backward()  # type: ignore[no-untyped-call]
    if vectors.grad is None:
        raise SatkgcError(f"the loss {type(objective).__qualname__} does not depend on the vectors", remedy="use them")

    for chunk, part in reversed(mine):  # first the one whose graph is there, which this frees
        gradient = vectors.grad[chunk.start : chunk.start + len(chunk.rows)]
        (part if part.requires_grad else encode(chunk, grad=True)).backward(gradient)  # type: ignore[no-untyped-call]
    ranks.sum_gradients(towers.parameters())
    ranks.sum_gradients(objective.parameters(), share=1 / ranks.world)
    return loss.detach()


def _seed(*words: int) -> int:
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
