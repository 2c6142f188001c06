"""TransE (Bordes et al., 2013): a relation is a translation."""

from __future__ import annotations

from torch import Tensor

from satkgc.models.embeddings.interaction import Interaction


class TransE(Interaction):
    """−‖h + r − t‖."""

    is_distance = True

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """h + r."""
        return heads + relations
