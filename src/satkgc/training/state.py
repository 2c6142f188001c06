"""All that a run is made of at one moment, to tensors and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from satkgc.errors import SatkgcError
from satkgc.models.text import Objective, Towers
from satkgc.training.averaging import Average
from satkgc.training.config import TrainingConfig
from satkgc.training.optimizer import make_optimizer


@dataclass
class State:
    """Weights, optimizer, how far the run is and what was best. Random numbers come from the step and need no state."""

    towers: Towers
    objective: Objective
    config: TrainingConfig
    step: int = 0  # steps done
    seconds: float = 0.0  # spent on them, over all processes
    best: dict[str, Any] | None = None  # {"step", "mrr"} of the best validation
    validated: int = 0  # the step of the last one
    optimizer: torch.optim.AdamW = field(init=False)
    average: Average = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = make_optimizer(self.towers, self.objective, self.config)
        self.average = Average(self.parameters, self.config.average)

    @property
    def named(self) -> dict[str, nn.Parameter]:
        """Every parameter once, tied ones by their first name."""
        modules = {"towers": self.towers, "objective": self.objective}
        return {f"{at}.{name}": p for at, module in modules.items() for name, p in module.named_parameters()}

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Those that are trained."""
        return [p for p in self.named.values() if p.requires_grad]

    @property
    def _trained(self) -> list[str]:
        return [name for name, p in self.named.items() if p.requires_grad]

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
        parts = {"weights": self.weights(), "optimizer": moments}
        if self.average.values:
            parts["average"] = dict(zip(self._trained, self.average.values, strict=True))
        return parts

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
            self.optimizer.state[named[name]][moment] = value.to(named[name].device)
        for name, value in zip(self._trained, self.average.values, strict=False):
            value.copy_(tensors["average"][name])
        self.step, self.seconds, self.best = facts["step"], facts["seconds"], facts["best"]
        self.validated = facts.get("validated", self.step)  # earlier versions validated before they saved
