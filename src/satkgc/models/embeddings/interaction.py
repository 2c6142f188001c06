"""What the embedding models differ in: how a relation moves a head towards its tails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

Distance = Literal["l1", "l2", "l2-squared"]
TINY = 1e-12  # the least square that a root is taken of: at zero its gradient is not a number


class Interaction(nn.Module, ABC):
    """The score of (h, r, t) from three embeddings: `query` moves the head, and the tail is compared with the result.

    A query is compared by the inner product, or where `is_distance` by the negative distance. Either way a question is
    scored against all entities by one matrix product, but for the l1 distance, which needs all differences.
    """

    is_distance: ClassVar[bool] = False
    relations_have_size: ClassVar[bool] = True
    """Whether N3 holds relations down too: a rotation has no size."""

    def __init__(self, dim: int, distance: Distance = "l2") -> None:
        super().__init__()
        self.dim = dim
        self.distance = distance

    @property
    def entity_width(self) -> int:
        """Numbers of an entity's embedding."""
        return self.dim

    @property
    def relation_width(self) -> int:
        """Numbers of a relation's embedding."""
        return self.dim

    @abstractmethod
    def query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Where the tails should lie.  # (..., entity_width), (..., relation_width) → (..., entity_width)"""

    def relation_query(self, heads: Tensor, tails: Tensor) -> Tensor:
        """What the relation should be, where the score is linear in it.  # (B, W), (B, W) → (B, relation_width)"""
        raise NotImplementedError

    def reset(self, entities: Tensor, relations: Tensor, scale: float) -> None:
        """Fill fresh embeddings.  # (E, entity_width), (2R, relation_width)"""
        nn.init.normal_(entities, std=scale)
        nn.init.normal_(relations, std=scale)

    def cubes(self, embeddings: Tensor) -> Tensor:
        """What N3 holds down: the sum of the cubes of all moduli; of real embeddings they are absolute values."""
        return embeddings.abs().pow(3).sum()

    def score_all(self, queries: Tensor, entities: Tensor) -> Tensor:
        """Of all entities.  # (B, W), (E, W) → (B, E)"""
        if not self.is_distance:
            return queries @ entities.T
        if self.distance == "l1":
            return -torch.cdist(queries, entities, p=1)
        # |q − e|² = |e|² − 2 q·e + |q|²
        squares = torch.addmm((entities**2).sum(1), queries, entities.T, alpha=-2) + (queries**2).sum(1, keepdim=True)
        return self._score(squares)

    def score_some(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Of each query's own candidates.  # (B, W), (B, K, W) → (B, K)"""
        if not self.is_distance:
            return torch.einsum("bw,bkw->bk", queries, candidates)
        differences = queries[:, None] - candidates
        if self.distance == "l1":
            return -differences.abs().sum(-1)
        return self._score((differences**2).sum(-1))

    def _score(self, squares: Tensor) -> Tensor:
        return -squares if self.distance == "l2-squared" else -squares.clamp_min(TINY).sqrt()


def complex_parts(embeddings: Tensor) -> tuple[Tensor, Tensor]:
    """Real and imaginary halves of embeddings.  # (..., 2d) → (..., d), (..., d)"""
    real, imaginary = embeddings.chunk(2, -1)
    return real, imaginary


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    """The product of complex embeddings, number by number.  # (..., 2d), (..., 2d) → (..., 2d)"""
    (a_real, a_imaginary), (b_real, b_imaginary) = complex_parts(a), complex_parts(b)
    real = a_real * b_real - a_imaginary * b_imaginary
    return torch.cat([real, a_real * b_imaginary + a_imaginary * b_real], -1)


def complex_cubes(embeddings: Tensor) -> Tensor:
    """The sum of |z|³ over all complex numbers.  # (..., 2d)"""
    return embeddings.square().view(*embeddings.shape[:-1], 2, -1).sum(-2).pow(1.5).sum()
