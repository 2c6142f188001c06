"""Filtered validation MRR, on triples chosen once: what the best checkpoint is chosen by."""

from __future__ import annotations

import numpy as np

from satkgc.evaluation import EvaluationConfig, Report, evaluate
from satkgc.models import Model
from satkgc.processes import Processes


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
        self.processes = processes
        self.latest: Report | None = None  # of the last call
        self.rows = None
        size = len(model.kg.valid)
        if 0 < triples < size:
            self.rows = np.sort(np.random.default_rng(seed).choice(size, triples, replace=False))

    def __call__(self) -> dict[str, dict[str, float]]:
        """Metrics under "head", "tail" and "both"."""
        self.latest = self._evaluate(self.rows)
        return self.latest.metrics()

    def of_all(self, again: bool) -> Report:
        """All validation triples ranked; the last call's report serves, unless it saw fewer or other weights."""
        if again or self.latest is None or self.rows is not None:
            return self._evaluate(None)
        return self.latest

    def _evaluate(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]] | None) -> Report:
        kg = self.model.kg
        return evaluate(self.model, kg, "valid", self.config, rows=rows, progress=True, processes=self.processes)


def validation_steps(steps: int, times: int) -> frozenset[int]:
    """The steps after which to validate: so many, at equal distances, the last one included."""
    return frozenset(round(steps * (i + 1) / times) for i in range(times))
