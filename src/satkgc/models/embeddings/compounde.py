"""CompoundE (Ge et al., 2023): a relation scales, turns and moves the head, plane by plane."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from satkgc.models.embeddings.interaction import Interaction, complex_product


class CompoundE(Interaction):
    """−‖T·R·S·h − t‖: scaling S, then rotation R in planes of two features, then translation T.

    `dim` planes, so 2·dim features an entity; a relation has as many translations and scales, and `dim` angles. With
    inverse relations as relations of their own, the head's side needs no operators of its own.
    """

    is_distance = True
    relations_have_size = False  # scales are around one, angles around the circle

    @property
    def entity_width(self) -> int:
        """Two features a plane."""
        return 2 * self.dim

    @property
    def relation_width(self) -> int:
        """Translations, scales, angles."""
        return 5 * self.dim

    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The head scaled, turned and moved."""
        move, scale, angle = torch.split(relations, [2 * self.dim, 2 * self.dim, self.dim], -1)
        return complex_product(heads * scale, torch.cat([angle.cos(), angle.sin()], -1)) + move

    def reset(self, entities: Tensor, relations: Tensor, scale: float) -> None:
        """Near the identity: scales around one, all else around zero, angles around the circle."""
        nn.init.normal_(entities, std=scale)
        move, scales, angle = torch.split(relations.data, [2 * self.dim, 2 * self.dim, self.dim], -1)
        move.normal_(std=scale)
        scales.normal_(mean=1.0, std=scale)
        angle.uniform_(-math.pi, math.pi)
