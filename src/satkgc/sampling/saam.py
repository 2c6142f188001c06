"""Subgraph as a Mini-batch (Section 4.2): least-visited centre, its subgraph, |B|/2 of its triples, their distances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.assemble import assemble
from satkgc.sampling.batch import Needs
from satkgc.sampling.config import SamplingConfig
from satkgc.sampling.sampler import Sampler, State
from satkgc.sampling.schedule import Schedule

_NONE = np.zeros(0, np.int32)


class Subgraphs(Protocol):
    """A way to find the subgraph of a centre triple."""

    def subgraph(self, centre: int, step: int) -> Int32:
        """Distinct training triples around the centre; a fresh array."""
        ...

    def refresh(self) -> None:
        """Read anew what comes from the model in training."""
        ...


class SaamSampler(Sampler):
    """Batches from the subgraphs of least-visited triples, drawn at the moment they are needed."""

    def __init__(
        self, kg: KnowledgeGraph, config: SamplingConfig, seed: int, needs: Needs, subgraphs: Subgraphs
    ) -> None:
        super().__init__(kg, config, seed, needs)
        self.subgraphs = subgraphs
        self.schedule = Schedule(len(kg.train), seed)
        self.period = config.mcmc.refresh if config.sampler == "mcmc" else None

    def triples(self, step: int) -> Int32:
        """The centre, and of its subgraph as many as a batch has."""
        schedule, config = self.schedule, self.config
        centre = schedule.centre(step)
        subgraph = self.subgraphs.subgraph(centre, step)
        triples: Int32 = assemble(
            centre,
            subgraph,
            round(config.random_share * config.triples),
            config.triples,
            config.entity_disjoint,
            schedule.visits if config.pick == "least-visited" else _NONE,
            self.kg.train,
            schedule.order,
            schedule.place,
            schedule.bounds,
            self.seed,
            step,
        )
        schedule.visit(triples)
        return triples

    def refresh(self) -> None:
        """Let the subgraphs follow the model in training (MCMC)."""
        self.subgraphs.refresh()

    def _state(self) -> State:
        return {"visits": self.schedule.visits.copy(), "order": self.schedule.order.copy()}

    def _restore(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        if len(state.get("visits", ())) != len(self.kg.train):
            raise SatkgcError(
                f"the saved sampler counted {len(state.get('visits', ())):,} triples, "
                f"this graph has {len(self.kg.train):,}",
                remedy="resume with the graph the run was started on",
            )
        self.schedule.restore(state["visits"], state["order"])
