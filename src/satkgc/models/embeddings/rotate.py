"""RotatE (Sun et al., 2019): a relation turns each complex number of the head by an angle."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from satkgc.models.embeddings.interaction import Interaction, complex_cubes, complex_product


class RotatE(Interaction):
    """−‖h ∘ e^{iθ} − t‖₂, with `dim` complex numbers an entity and `dim` angles a relation."""

    is_distance = True
    relations_have_size = False

    @property
    def entity_width(self) -> int:
        """Real and imaginary parts."""
        return 2 * self.dim

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """h turned by the relation's angles."""
        return complex_product(heads, torch.cat([relations.cos(), relations.sin()], -1))

    def reset(self, entities: Tensor, relations: Tensor, scale: float) -> None:
        """Entities around zero, angles all around the circle."""
        nn.init.normal_(entities, std=scale)
        nn.init.uniform_(relations, -math.pi, math.pi)

    def cubes(self, embeddings: Tensor) -> Tensor:
        """Of the moduli of complex numbers."""
        return complex_cubes(embeddings)
