"""AdamW and the learning rate of each step."""

from __future__ import annotations

import torch
from torch import nn

from satkgc.models.text import Objective, Towers
from satkgc.training.config import TrainingConfig


def make_optimizer(towers: Towers, objective: Objective, config: TrainingConfig) -> torch.optim.AdamW:
    """Fused AdamW over three groups: weight matrices, which decay; biases and norms; τ and β."""
    trained = [p for p in towers.parameters() if p.requires_grad]
    own = config.objective_learning_rate or config.learning_rate
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "peak": config.learning_rate},
        {"params": [p for p in trained if p.ndim < 2], "peak": config.learning_rate, "weight_decay": 0.0},
        {"params": [p for p in objective.parameters() if p.requires_grad], "peak": own, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def schedule(step: int, steps: int, warmup: int) -> float:
    """The share of its peak that the learning rate has at a step, counted from 0: up over the warm-up, then down.

    The warm-up is at most a tenth of the run. The last step still moves, by the last notch above zero.
    """
    warmup = min(warmup, steps // 10)
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / (steps - warmup)


def set_learning_rate(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Give every group its share of its peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share


def clip(parameters: list[nn.Parameter], limit: float) -> torch.Tensor:
    """Scale the gradients down to a norm of `limit` where it is larger; return the norm before."""
    return nn.utils.clip_grad_norm_(parameters, limit)
