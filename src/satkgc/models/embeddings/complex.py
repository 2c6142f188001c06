"""ComplEx (Trouillon et al., 2016): DistMult in complex numbers, where the tail is conjugated."""

from __future__ import annotations

import torch
from torch import Tensor

from satkgc.models.embeddings.interaction import Interaction, complex_cubes, complex_parts, complex_product


class ComplEx(Interaction):
    """Re Σ h r t̄, with `dim` complex numbers each."""

    @property
    def entity_width(self) -> int:
        """Real and imaginary parts."""
        return 2 * self.dim

    @property
    def relation_width(self) -> int:
        """Real and imaginary parts."""
        return 2 * self.dim

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """h ∘ r; its inner product with t as real numbers is Re⟨h r, t̄⟩."""
        return complex_product(heads, relations)

    def relation_query(self, heads: Tensor, tails: Tensor) -> Tensor:
        """h̄ ∘ t, whose inner product with r is Re⟨h r, t̄⟩."""
        real, imaginary = complex_parts(heads)
        return complex_product(torch.cat([real, -imaginary], -1), tails)

    def cubes(self, embeddings: Tensor) -> Tensor:
        """Of the moduli of complex numbers."""
        return complex_cubes(embeddings)
