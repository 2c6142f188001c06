"""How long a run will take and how much memory it needs: measured on a trial before its first step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from satkgc.evaluation import MANY_ENTITIES
from satkgc.models import Model, Questions, StepContext, VectorModel
from satkgc.progress import duration
from satkgc.sampling import make_sampler
from satkgc.training.config import Config
from satkgc.training.recipes import QUICK
from satkgc.training.validation import SAMPLED

FEWEST = 20  # steps: a shorter run is not worth a trial
LONG = 600.0  # seconds: a longer run has its faster choice named
SAMPLE = 64  # texts or questions that are timed for all


@dataclass(frozen=True)
class Estimate:
    """What is left of a run."""

    steps: int
    seconds: float
    memory: int  # bytes: of the whole process on a CPU, of torch's tensors on a GPU

    def line(self, faster: str) -> str:
        """In words, with the faster choice where it is long."""
        said = f"{self.steps:,} steps take about {duration(self.seconds)} and {self.memory / 2**30:.1f} GiB of memory"
        return f"{said}; {faster}" if self.seconds > LONG else said


def faster_choice(config: Config) -> str:
    """What would take less time than such a run."""
    if config.recipe == QUICK:
        return "--set experts.complex.recipe=none leaves the embeddings out, which take most of it"
    if config.model.kind in ("frozen", "embedding"):  # of which the quick recipe is made
        return "fewer --epochs shorten it"
    return f"--recipe {QUICK} is faster"


def total(parts: Sequence[Estimate]) -> Estimate:
    """Of experts that are trained one after the other."""
    steps, seconds = sum(part.steps for part in parts), sum(part.seconds for part in parts)
    return Estimate(steps, seconds, max(part.memory for part in parts))


def estimate(model: Model, config: Config, context: StepContext, steps: int) -> Estimate | None:
    """Try a step and some of what validation does; nothing of it stays. None where memory is not enough for it.

    Batches of the trial are random ones: subgraphs take other threads longer, not the model.
    """
    kg, training, device = model.kg, config.training, context.processes.device
    sampler = make_sampler(kg, config.sampling.replace(sampler="random"), training.seed, model.needs, None)
    model.train()
    try:
        _seconds(lambda: model.backward(model.collate(sampler.draw(0)), context), device)  # compiles, for a minute even
        step = _seconds(lambda: model.backward(model.collate(sampler.draw(1)), context), device)
        model.zero_grad(set_to_none=True)
        triples = min(len(kg.valid), training.validation_triples or len(kg.valid)) if training.validations else 0
        answering = _answering(model, 2 * triples, kg.num_entities, device) if triples else 0.0
        validating = answering
        if triples and kg.num_entities > MANY_ENTITIES:
            validating = _answering(model, 2 * triples, SAMPLED + 2 * triples, device)
    except torch.OutOfMemoryError:
        model.zero_grad(set_to_none=True)
        return None
    moments = 2 * sum(p.nbytes for p in model.parameters() if p.requires_grad)
    # Preparing the run to be asked takes about one more validation, among all entities.
    seconds = steps * step + training.validations * validating + answering
    return Estimate(steps, seconds, _peak(device) + moments)


def _answering(model: Model, questions: int, ranked: int, device: torch.device) -> float:
    """Seconds that so many questions take, with so many entities ranked, by some of them."""
    kg, some = model.kg, min(questions, SAMPLE)
    head, relation, _ = kg.valid[np.linspace(0, len(kg.valid) - 1, some).astype(int)].T
    asked = Questions(head, relation)
    if not isinstance(model, VectorModel):
        return _seconds(lambda: model.score(asked), device) * questions / some
    few = np.linspace(0, kg.num_entities - 1, min(kg.num_entities, SAMPLE)).astype(np.int32)
    entities = _seconds(lambda: model.encode_entities(few), device) * ranked / len(few)
    return entities + _seconds(lambda: model.encode_questions(asked), device) * questions / some


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began


def _peak(device: torch.device) -> int:
    """The most memory so far, in bytes; 0 where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
