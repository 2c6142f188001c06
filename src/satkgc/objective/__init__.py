"""Masks, proximity, frequency weights and the loss: vectors of a batch become a number."""

from satkgc.objective.config import ObjectiveConfig
from satkgc.objective.frequency import answer_counts, frequency_weights
from satkgc.objective.loss import Objective, Relations
from satkgc.objective.masks import answer_pairs, known_pairs

__all__ = [
    "Objective",
    "ObjectiveConfig",
    "Relations",
    "answer_counts",
    "answer_pairs",
    "frequency_weights",
    "known_pairs",
]
