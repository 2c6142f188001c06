"""TuckER (Balažević et al., 2019): a core tensor says how features of head, relation and tail go together."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from satkgc.models.embeddings.interaction import Distance, Interaction


class TuckER(Interaction):
    """W ×₁ h ×₂ r ×₃ t, with a learnt core W of dim × dim × dim."""

    def __init__(self, dim: int, distance: Distance = "l2") -> None:
        super().__init__(dim, distance)
        self.core = nn.Parameter(torch.empty(dim, dim, dim).uniform_(-1, 1))

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """W ×₁ h ×₂ r."""
        return torch.einsum("...i,...j,ijk->...k", heads, relations, self.core)
