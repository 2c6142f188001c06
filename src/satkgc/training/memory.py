"""Too little GPU memory: the error says which batch would have fitted, which is found by trying."""

from __future__ import annotations

import gc

import torch

from satkgc.errors import SatkgcError
from satkgc.training.loop import Parts
from satkgc.training.state import clip


def out_of_memory(parts: Parts) -> SatkgcError:
    """What to say of a run whose memory was not enough; its weights are spoilt by the trial, its checkpoints are not.

    To be called after the exception is gone: its traceback holds the tensors of the step.
    """
    device, size = parts.context.processes.device, parts.batches.sampler.config.batch_size
    several = parts.context.processes.world > 1  # the others wait in the middle of the step
    fits = size // 4 * 2 if several else _largest_batch(parts)
    again = "go on with --resume" if parts.state.step else "begin again"
    if fits == size:
        what = f"the memory of {device} was not enough, though a step fits"
        return SatkgcError(what, remedy=f"{again} with a lower evaluation.memory_mib, or where nothing else uses it")
    what = f"a batch of {size:,} does not fit the memory of {device}"
    if fits < 2:
        return SatkgcError(f"{what}, nor does any other", remedy="choose a smaller model, or training.device=cpu")
    remedy = f"set sampling.batch_size={fits}, which {'may fit' if several else 'fits'}, and another --out"
    if (setting := parts.state.model.config.saves_memory) is not None:
        remedy += f"; or keep it with a lower {setting}"
    return SatkgcError(what, remedy=f"{remedy}; or {again} on a larger GPU")


def _largest_batch(parts: Parts) -> int:
    """The samples of the largest batch that a whole step fits with, halving what does not; 0: of none."""
    state, batches = parts.state, parts.batches
    batch = batches.sampler.draw(state.step)
    triples = len(batch.triples)
    while triples:
        state.optimizer.zero_grad(set_to_none=True)
        gc.collect()
        if parts.context.processes.device.type == "cuda":
            torch.cuda.empty_cache()
        try:
            with parts.context.rounded_products():
                state.model.backward(batches.collate(batch.first(triples)), parts.context)
            clip(state.parameters, state.config.clip)
            state.optimizer.step()
            return 2 * triples
        except torch.OutOfMemoryError:
            pass
        triples //= 2
    return 0
