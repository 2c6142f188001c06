"""DistMult (Yang et al., 2015): a relation weighs the features that head and tail share."""

from __future__ import annotations

from torch import Tensor

from satkgc.models.embeddings.interaction import Interaction


class DistMult(Interaction):
    """Σ h r t. It cannot tell a triple from its mirror, but for the inverse relations that every model here has."""

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """h ∘ r."""
        return heads * relations

    def relation_query(self, heads: Tensor, tails: Tensor) -> Tensor:
        """h ∘ t."""
        return heads * tails
