"""Filtered validation MRR, on triples chosen once: what the best checkpoint is chosen by.

On graphs of more than MANY_ENTITIES it is taken among SAMPLED candidates, chosen once as well, so that its cost does
not grow with the graph; the kept model is ranked among all entities at the end.
"""

from __future__ import annotations

import numpy as np

from satkgc.evaluation import MANY_ENTITIES, EvaluationConfig, Report, evaluate
from satkgc.models import Model, VectorModel
from satkgc.processes import Processes

SAMPLED = 10_000


class Validation:
    """The same few validation triples every time, ranked as evaluation ranks them; processes share the work."""

    def __init__(
        self,
        model: Model,
        config: EvaluationConfig,
        triples: int,
        seed: int,
        processes: Processes | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self.quick = config  # during training
        if model.kg.num_entities > MANY_ENTITIES and not config.sampled and isinstance(model, VectorModel):
            self.quick = config.replace(sampled=SAMPLED, rerank_hops=0)
        self.processes = processes
        self.latest: Report | None = None  # of the last call
        self.rows = None
        size = len(model.kg.valid)
        if 0 < triples < size:
            self.rows = np.sort(np.random.default_rng(seed).choice(size, triples, replace=False))

    def __call__(self) -> dict[str, dict[str, float]]:
        """Metrics under "head", "tail" and "both"."""
        self.latest = self._evaluate(self.rows, self.quick)
        return self.latest.metrics()

    def of_all(self, again: bool) -> Report:
        """All validation triples ranked; the last call's report serves, unless it saw fewer or other weights."""
        if again or self.latest is None or self.rows is not None or self.quick is not self.config:
            return self._evaluate(None, self.config)
        return self.latest

    @property
    def candidates(self) -> str:
        """Among whom it ranks during training, in words; empty for all."""
        return f" among {self.quick.candidates_in_words}" if self.quick.sampled else ""

    def _evaluate(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]] | None, config: EvaluationConfig) -> Report:
        kg = self.model.kg
        return evaluate(self.model, kg, "valid", config, rows=rows, progress=True, processes=self.processes)


def validation_steps(steps: int, times: int) -> frozenset[int]:
    """The steps after which to validate: so many, at equal distances, the last one included."""
    return frozenset(round(steps * (i + 1) / times) for i in range(times))
