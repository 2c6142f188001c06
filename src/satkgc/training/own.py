"""A sampler or a loss of the user's own: made as the package's are, and known by its name when a run is resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Objective, ObjectiveConfig
from satkgc.sampling import Sampler, SamplingConfig, Vectors, make_sampler
from satkgc.training.run import Run

MakeSampler = Callable[[KnowledgeGraph, SamplingConfig, int, Vectors | None], Sampler]
MakeObjective = Callable[[ObjectiveConfig], Any]


@dataclass(frozen=True)
class Own:
    """What makes the sampler and the objective of a run; None: the package."""

    sampler: MakeSampler | None = None
    objective: MakeObjective | None = None

    def names(self) -> dict[str, str]:
        """Those that are not the package's, by their qualified names."""
        given = {kind: make for kind, make in vars(self).items() if make is not None}
        for kind, make in given.items():
            if not hasattr(make, "__qualname__"):
                raise SatkgcError(f"{kind} is {make!r}, which has no name", remedy="give a class or a function")
        return {kind: f"{make.__module__}.{make.__qualname__}" for kind, make in given.items()}

    def refuse_others(self, run: Run) -> None:
        """A run goes on with what it was started with."""
        names = self.names()
        for kind in ("sampler", "objective"):
            before, now = run.about.get(kind), names.get(kind)
            if before == now:
                continue
            remedy = f"leave {kind} out, or choose another out"
            if before is not None:
                remedy = f"go on from Python: satkgc.train(…, {kind}={before.rsplit('.', 1)[-1]}, resume=True)"
            what = f"this run has the {kind} {before or 'of its recipe'}, not {now or 'that of its recipe'}"
            raise SatkgcError(what, where=run.folder, remedy=remedy)

    def make_sampler(self, kg: KnowledgeGraph, config: SamplingConfig, seed: int, vectors: Vectors) -> Sampler:
        """The sampler of a run."""
        made = (self.sampler or make_sampler)(kg, config, seed, vectors)
        if not isinstance(made, Sampler):
            raise SatkgcError(f"{self.names()['sampler']} makes no sampler", remedy="extend satkgc.sampling.Sampler")
        return made

    def make_objective(self, config: ObjectiveConfig) -> Any:
        """The loss of a run, which also has what the log tells of it."""
        made = (self.objective or Objective)(config)
        logged = [isinstance(getattr(made, name, None), Tensor) for name in ("temperature", "beta")]
        if not isinstance(made, nn.Module) or not all(logged):
            what = f"{self.names()['objective']} makes no module with the tensors temperature and beta"
            raise SatkgcError(what, remedy="extend satkgc.models.text.Objective, or add them")
        return made
