"""An exponential average of the weights, optional: often a better model than the last step's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """Keeps avg ← d·avg + (1 − d)·weights after every step; early on d is smaller, so that the start is forgotten."""

    def __init__(self, parameters: list[nn.Parameter], decay: float) -> None:
        self.parameters = parameters
        self.decay = decay
        self.values: list[Tensor] = [p.detach().clone() for p in parameters] if decay else []

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after this many steps."""
        if self.decay:
            decay = min(self.decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(self.values, [p.detach() for p in self.parameters], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters hold the average inside, and what they held before after; without a decay, nothing changes."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for value, parameter in zip(self.values, self.parameters, strict=False):
            held = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(held)
