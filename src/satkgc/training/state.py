"""All that a run is made of at one moment, to tensors and back: weights, optimizer, progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from satkgc.errors import SatkgcError
from satkgc.models import Model
from satkgc.training.config import TrainingConfig


@dataclass
class State:
    """Weights, optimizer, how far the run is and what was best. Random numbers come from the step and need no state."""

    model: Model
    config: TrainingConfig
    step: int = 0  # steps done
    seconds: float = 0.0  # spent on them, over all processes
    best: dict[str, Any] | None = None  # {"step", "mrr"} of the best validation
    validated: int = 0  # the step of the last one
    optimizer: torch.optim.Optimizer = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = make_optimizer(self.model, self.config)

    @property
    def named(self) -> dict[str, nn.Parameter]:
        """Every parameter that is trained once, tied ones by their first name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The same without their names."""
        return list(self.named.values())

    @property
    def best_name(self) -> str | None:
        """The folder of the best weights."""
        return None if self.best is None else f"best-{self.best['step']:08d}"

    def weights(self) -> dict[str, Tensor]:
        """The weights alone."""
        return {name: p.detach() for name, p in self.named.items()}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything with an array's shape, by file."""
        moments = {
            f"{name}/{key}": value
            for name, parameter in self.named.items()
            for key, value in self.optimizer.state.get(parameter, {}).items()
        }
        return {"weights": self.weights(), "optimizer": moments}

    def facts(self) -> dict[str, Any]:
        """The rest."""
        return {"step": self.step, "seconds": self.seconds, "best": self.best, "validated": self.validated}

    @torch.no_grad()
    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take up saved weights, which must be those of the same model."""
        named = self.named
        if weights.keys() != named.keys() or any(weights[name].shape != p.shape for name, p in named.items()):
            raise SatkgcError(
                "the checkpoint is of another model", remedy="resume with the settings it was started with"
            )
        for name, parameter in named.items():
            parameter.copy_(weights[name])

    def restore(self, tensors: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.load_weights(tensors["weights"])
        named = self.named
        for key, value in tensors["optimizer"].items():
            name, moment = key.rsplit("/", 1)
            moments = self.optimizer.state[named[name]]
            # Adagrad may count its steps on the host: a count on the GPU would make every step wait for it.
            moments[moment] = value.to(moments.get(moment, named[name]).device)
        self.step, self.seconds, self.best = facts["step"], facts["seconds"], facts["best"]
        self.validated = facts["validated"]


def make_optimizer(model: Model, config: TrainingConfig) -> torch.optim.Optimizer:
    """Over two groups: weight matrices, which decay; biases, norms and single numbers, which do not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p.ndim >= 2]},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if config.optimizer == "adagrad":
        fused = has_fused_adagrad(trained[0].device)
        return torch.optim.Adagrad(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=fused)
    return torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def has_fused_adagrad(device: torch.device) -> bool:
    """Whether torch has one kernel for all of it: on CPUs yes, on GPUs by version."""
    probe = nn.Parameter(torch.zeros(1, device=device))
    probe.grad = torch.zeros_like(probe)
    try:
        torch.optim.Adagrad([probe], fused=True).step()
    except (RuntimeError, NotImplementedError):
        return False
    return True


def schedule(step: int, steps: int, warmup: int) -> float:
    """The share of its peak that the learning rate has at a step, counted from 0: up over the warm-up, then down.

    The warm-up is at most a tenth of the run. The last step still moves, by the last notch above zero.
    """
    warmup = min(warmup, steps // 10)
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / (steps - warmup)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def clip(parameters: list[nn.Parameter], limit: float) -> Tensor:
    """Scale the gradients down to a norm of `limit` where it is larger; return the norm before."""
    return nn.utils.clip_grad_norm_(parameters, limit)
