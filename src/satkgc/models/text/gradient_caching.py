"""One step's loss and gradients: encode in chunks, one loss over the whole batch, replay the chunks for gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from satkgc.errors import SatkgcError
from satkgc.models.model import Metrics, StepContext, check_loss
from satkgc.models.text.collate import Chunk, TextBatch
from satkgc.models.text.tower import Tower
from satkgc.models.text.towers import Towers, normalize
from satkgc.processes import GradientSum


def backward(towers: Towers, loss_module: nn.Module, batch: TextBatch, context: StepContext) -> Metrics:
    """The loss of the global batch and its metrics; its gradients are added to the parameters, on every process alike.

    1. Each process encodes its chunks. Without `chunk_tokens` their graphs are kept; with it only the vectors are
       (gradient caching, Gao et al. 2021), and the last chunk's graph, so that memory is that of one chunk.
    2. The vectors of all processes are gathered, and every process computes the loss over all of them once, down to the
       gradient of each vector.
    3. Each process carries the gradients of its own vectors back through its chunks, encoding them again where the
       graph was not kept: the same dropout is drawn, since it depends on seed, step and chunk alone.
    4. The gradients are summed over processes, in parts that are sent while the last chunk of a tower is still carried
       back; those of the loss's own parameters, which every process has whole, are averaged.
    """
    processes = context.processes
    keep_graphs = towers.config.chunk_tokens is None

    def tower_of(chunk: Chunk) -> Tower:
        return towers.query if chunk.queries else towers.entity

    def encode(chunk: Chunk, grad: bool) -> Tensor:
        assert chunk.packed is not None, "a chunk of another process"
        context.seed_step(batch.step, chunk.number)
        # A context for each chunk: weights that autocast converted without gradients must not serve with them.
        with torch.set_grad_enabled(grad), context.autocast():
            vectors: Tensor = tower_of(chunk)(chunk.packed)  # (rows, D)
            return vectors

    own = batch.chunks[processes.rank]
    parts = [(chunk, encode(chunk, grad=keep_graphs or chunk is own[-1])) for chunk in own]
    sizes = [sum(len(chunk.rows) for chunk in chunks) for chunks in batch.chunks]
    vectors = processes.gather(torch.cat([part.detach() for _, part in parts]), sizes)  # (all texts, D)
    vectors.requires_grad_(True)
    on_device = batch.to(processes.device)
    loss, metrics = loss_of(loss_module, vectors, on_device)
    loss.backward()  # type: ignore[no-untyped-call]
    if vectors.grad is None:
        name = type(loss_module).__qualname__
        raise SatkgcError(f"the loss {name} does not depend on the vectors", remedy="use them")

    # Entities come first and the top layers before the others, as their gradients do.
    sums = GradientSum(processes, reversed(list(towers.parameters())))
    last = {tower_of(chunk): chunk for chunk in reversed(own)}
    for chunk, part in reversed(parts):  # first the one whose graph is there, which this frees
        gradient = vectors.grad[chunk.start : chunk.start + len(chunk.rows)]
        again = part if part.requires_grad else encode(chunk, grad=True)
        with sums.last_backward(tower_of(chunk).parameters() if last[tower_of(chunk)] is chunk else ()):
            again.backward(gradient)  # type: ignore[no-untyped-call]
    sums.finish()
    GradientSum(processes, loss_module.parameters(), share=1 / processes.world).finish()
    return {"loss": loss.detach(), **metrics}


def loss_of(loss_module: nn.Module, vectors: Tensor, batch: TextBatch) -> tuple[Tensor, Metrics]:
    """The loss of the batch from the vectors of its texts; a loss of one's own may return the number alone."""
    result: Any = loss_module(*vectors_of_samples(vectors, batch), batch)
    loss, metrics = result if isinstance(result, tuple) else (result, {})
    check_loss(loss, type(loss_module).__qualname__)
    return loss, metrics


def vectors_of_samples(vectors: Tensor, batch: TextBatch) -> tuple[Tensor, Tensor]:
    """Of each sample the unit vectors of its query and of its tail, from those of the texts.  # (B, D), (B, D)"""
    unit = normalize(vectors)
    # A lookup whose backward adds up in a fixed order, unlike that of indexing.
    return functional.embedding(batch.query_places, unit), functional.embedding(batch.tail_places, unit)
