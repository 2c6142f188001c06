"""What the loss is made of, each part a setting of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from satkgc.errors import SatkgcError
from satkgc.sampling.proximity import ProximityRule


@dataclass(frozen=True)
class ObjectiveConfig:
    """Settings of the loss. The defaults are SimKGC; `proximity` and `frequency` are what SATKGC adds to it."""

    temperature: float = 0.05  # τ at the start
    train_temperature: bool = True  # train log(1/τ)
    margin: float = 0.02  # γ, taken off the positive's cosine (Eq. 3)
    two_sided: bool = True  # add t → (h, r) over the batch's queries to (h, r) → t over its tails
    self_negatives: bool = True  # the query's own head is one more negative tail
    mask: Literal["known", "answer", "none"] = "known"  # negatives left out: all tails known in training, copies of t
    proximity: Literal["off", "negatives", "all"] = "off"  # who receives β·ω (Eq. 4): nobody, negatives, positive too
    proximity_rule: ProximityRule = "product"  # ω from hops: the paper's product, or another rule of that module
    beta: float = 1e-4  # β at the start
    train_beta: bool = True  # the paper trains β; false keeps it where it starts
    frequency: bool = False  # weight a sample's loss by ψ = log(|N| + 1) (Eq. 5)
    popularity: float = 0.0  # α: take α·log(how often a tail answers in training) off its logit; see `Objective`
    reduction: Literal["mean", "weighted-mean", "sum"] = "mean"  # Σψ·L over |B|, over Σψ, or as it is (Eq. 5)

    def __post_init__(self) -> None:
        if not 0 < self.temperature <= 1:
            raise SatkgcError(f"objective.temperature is {self.temperature}", remedy="give it a value in (0, 1]")
        if not 0 <= self.margin < 1:
            raise SatkgcError(f"objective.margin is {self.margin}", remedy="give it a value in [0, 1)")
        if not 0 <= self.popularity <= 2:
            raise SatkgcError(f"objective.popularity is {self.popularity}", remedy="give it a value in [0, 2]")
        if not abs(self.beta) <= 10:
            raise SatkgcError(f"objective.beta is {self.beta}", remedy="give it a value in [-10, 10]")
