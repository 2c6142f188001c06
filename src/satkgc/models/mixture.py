"""How much each expert of a mixture is believed, and the sum of what they say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Float64
from satkgc.kg import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class Mixture:
    """What each expert's word is worth, for n experts and R relations."""

    experts: tuple[str, ...]
    scales: Float64  # (n,) of an expert's scores before the softmax: 1 / temperature
    general: Float64  # (n,) weights over all relations
    weights: Float64  # (2R, n) of each directed relation; r + R asks for the heads of r

    @classmethod
    def even(cls, experts: Sequence[str], num_relations: int) -> Mixture:
        """Equal weights: what a fit begins with."""
        count = len(experts)
        weights = np.full((2 * num_relations, count), 1 / count)
        return cls(tuple(experts), np.ones(count), weights[0], weights)

    def to_json(self, kg: KnowledgeGraph) -> dict[str, Any]:
        """Readable; a relation whose weights are the general ones is left out."""
        size, relations = kg.num_relations, {}
        for r in range(size):
            own = {"tail": self.weights[r], "head": self.weights[r + size]}
            named = {way: self._named(row) for way, row in own.items() if not np.array_equal(row, self.general)}
            if named:
                relations[kg.relations.id(r)] = named
        parts = {"scale": self.scales, "weight": self.general}
        experts = {
            name: {part: float(values[i]) for part, values in parts.items()} for i, name in enumerate(self.experts)
        }
        return {"experts": experts, "relations": relations}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], kg: KnowledgeGraph) -> Mixture:
        """Read what `to_json` gave."""
        experts = content["experts"]
        names = tuple(experts)
        scales, general = (np.array([experts[name][part] for name in names], float) for part in ("scale", "weight"))
        weights = np.tile(general, (2 * kg.num_relations, 1))
        for id, directions in content["relations"].items():
            for way, own in directions.items():
                row = kg.relations.index(id) + {"tail": 0, "head": kg.num_relations}[way]
                weights[row] = [own[name] for name in names]
        return cls(names, scales, general, weights)

    def _named(self, row: Float64) -> dict[str, float]:
        return dict(zip(self.experts, row.tolist(), strict=True))


def fill(shares: Tensor, num_entities: int) -> Tensor:
    """The experts' log-shares with -inf replaced by the mean of the others'; where none speaks, all entities are alike.
    # (n, ...) → (n, ...)"""
    speaks = shares > -torch.inf
    if bool(speaks.all()):
        return shares
    count = speaks.sum(0)
    mean = shares.where(speaks, shares.new_zeros(())).sum(0) / count.clamp(min=1)
    mean = mean.where(count > 0, shares.new_tensor(-math.log(num_entities)))
    return torch.where(speaks, shares, mean)


def mix(shares: Tensor, weights: Tensor, num_entities: int) -> Tensor:
    """The weighted sum of the experts' log-shares.  # (n, Q, K), (n, Q) → (Q, K)"""
    return torch.einsum("nqk,nq->qk", fill(shares, num_entities), weights)


def parts_of_sum(shares: Tensor, weights: Tensor) -> Tensor:
    """What each expert adds to the sum of `mix`; NaN where it has nothing to say.  # (n, Q, K), (n, Q) → (n, Q, K)"""
    speaks = shares > -torch.inf
    weights = weights[:, :, None].expand_as(shares)
    left = weights.where(~speaks, weights.new_zeros(())).sum(0) / speaks.sum(0).clamp(min=1)
    return ((weights + left) * shares).where(speaks, shares.new_tensor(torch.nan))
