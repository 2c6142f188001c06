"""Filtered validation MRR, on triples chosen once: what the best checkpoint is chosen by."""

from __future__ import annotations

import numpy as np

from satkgc.evaluation import EvaluationConfig, Report, evaluate
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Towers
from satkgc.text import Texts


class Validation:
    """The same few validation triples every time, ranked as evaluation ranks them."""

    def __init__(self, kg: KnowledgeGraph, texts: Texts, config: EvaluationConfig, triples: int, seed: int) -> None:
        self.texts = texts
        self.config = config
        self.kg = kg
        self.latest: Report | None = None  # of the last call
        self.rows = None
        if 0 < triples < len(kg.valid):
            self.rows = np.sort(np.random.default_rng(seed).choice(len(kg.valid), triples, replace=False))

    def __call__(self, towers: Towers) -> dict[str, dict[str, float]]:
        """Metrics under "head", "tail" and "both"."""
        self.latest = evaluate(towers, self.texts, self.kg, "valid", self.config, rows=self.rows, progress=True)
        return self.latest.metrics()

    def of_all(self, towers: Towers, again: bool) -> Report:
        """All validation triples ranked; what the last call found serves, unless it saw fewer or other weights."""
        if again or self.latest is None or self.rows is not None:
            return evaluate(towers, self.texts, self.kg, "valid", self.config, progress=True)
        return self.latest


def validation_steps(steps: int, times: int) -> frozenset[int]:
    """The steps after which to validate: so many, at equal distances, the last one included."""
    return frozenset(round(steps * (i + 1) / times) for i in range(times))
