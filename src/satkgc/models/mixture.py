"""How much each expert of a mixture is believed, and the sum of what they say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Float64, Int32
from satkgc.kg import KnowledgeGraph

NOVELTY = "novelty"  # no expert has this name


@dataclass(frozen=True, eq=False)
class Mixture:
    """What each expert's word is worth, for n experts and R relations."""

    experts: tuple[str, ...]
    scales: Float64  # (n,) of an expert's scores before the softmax: 1 / temperature
    general: Float64  # (n,) weights over all relations
    weights: Float64  # (2R, n) of each directed relation; r + R asks for the heads of r
    general_novelty: float = 0.0  # over all relations
    novelty: Float64 | None = None  # (2R,) what a candidate that an expert is silent about gets; None: nothing

    @classmethod
    def even(cls, experts: Sequence[str], num_relations: int) -> Mixture:
        """Equal weights: what a fit begins with."""
        count = len(experts)
        weights = np.full((2 * num_relations, count), 1 / count)
        return cls(tuple(experts), np.ones(count), weights[0], weights)

    def to_json(self, kg: KnowledgeGraph) -> dict[str, Any]:
        """Readable; a relation whose weights are the general ones is left out."""
        size, relations = kg.num_relations, {}
        general = self._named(self.general, self.general_novelty)
        novelty = np.zeros(2 * size) if self.novelty is None else self.novelty
        for r in range(size):
            own = {way: self._named(self.weights[i], novelty[i]) for way, i in (("tail", r), ("head", r + size))}
            if named := {way: row for way, row in own.items() if row != general}:
                relations[kg.relations.id(r)] = named
        parts = {"scale": self.scales, "weight": self.general}
        experts = {
            name: {part: float(values[i]) for part, values in parts.items()} for i, name in enumerate(self.experts)
        }
        over_all = {} if self.novelty is None else {NOVELTY: self.general_novelty}
        return {"experts": experts, **over_all, "relations": relations}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], kg: KnowledgeGraph) -> Mixture:
        """Read what `to_json` gave."""
        experts = content["experts"]
        names = tuple(experts)
        scales, general = (np.array([experts[name][part] for name in names], float) for part in ("scale", "weight"))
        weights = np.tile(general, (2 * kg.num_relations, 1))
        general_novelty = float(content.get(NOVELTY, 0.0))
        novelty = np.full(len(weights), general_novelty) if NOVELTY in content else None
        for id, directions in content["relations"].items():
            for way, own in directions.items():
                row = kg.relations.index(id) + {"tail": 0, "head": kg.num_relations}[way]
                weights[row] = [own[name] for name in names]
                if novelty is not None:
                    novelty[row] = own[NOVELTY]
        return cls(names, scales, general, weights, general_novelty, novelty)

    def mix(self, shares: Tensor, relations: Int32, num_entities: int, asked: Tensor | None = None) -> Tensor:
        """The weighted sum of the experts' log-shares, and what their silence adds; not normalised.

        Which experts have something to say about the questions (n, Q) is seen from the shares, unless it is given.
        # (n, Q, K), (Q,) → (Q, K)
        """
        weights = torch.from_numpy(self.weights[relations].T.copy()).to(shares)
        total = torch.einsum("nqk,nq->qk", fill(shares, num_entities), weights)
        if self.novelty is None:
            return total
        return total + torch.from_numpy(self.novelty[relations]).to(shares)[:, None] * silence(shares, asked)

    def _named(self, weights: Float64, novelty: float) -> dict[str, float]:
        """What is fitted of a directed relation, or over all."""
        named = dict(zip(self.experts, weights.tolist(), strict=True))
        return named if self.novelty is None else {**named, NOVELTY: float(novelty)}


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


def silence(shares: Tensor, asked: Tensor | None = None) -> Tensor:
    """1 where an expert that has something to say about a question has nothing to say about a candidate, else 0.

    Which experts those are (n, Q) is seen from the candidates, unless it is given.  # (n, Q, K) → (Q, K)
    """
    speaks = shares > -torch.inf
    asked = speaks.any(2) if asked is None else asked
    return (asked[:, :, None] & ~speaks).any(0).to(shares)


def parts_of_sum(shares: Tensor, weights: Tensor) -> Tensor:
    """What each expert adds to the sum of `mix`; NaN where it has nothing to say.  # (n, Q, K), (n, Q) → (n, Q, K)"""
    speaks = shares > -torch.inf
    weights = weights[:, :, None].expand_as(shares)
    left = weights.where(~speaks, weights.new_zeros(())).sum(0) / speaks.sum(0).clamp(min=1)
    return ((weights + left) * shares).where(speaks, shares.new_tensor(torch.nan))
