"""What the embedding models differ in: how a relation moves a head towards its tails."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Interaction(nn.Module, ABC):
    """The score of (h, r, t) from three embeddings: `query` moves the head, and the tail is compared with the result.

    A query is compared by the inner product, or where `distance` says so by the negative norm of the difference. So a
    question is scored against all entities by one matrix product or one `torch.cdist`.
    """

    distance: float | None = None  # the order of the norm; None: inner product

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

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

    def factors(self, embeddings: Tensor) -> Tensor:
        """The moduli that N3 sums the cubes of; of real embeddings their absolute values.  # (..., width) → (..., m)"""
        return embeddings.abs()

    def score_all(self, queries: Tensor, entities: Tensor) -> Tensor:
        """Of all entities.  # (B, W), (E, W) → (B, E)"""
        if self.distance is None:
            return queries @ entities.T
        return -torch.cdist(queries, entities, p=self.distance)

    def score_some(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Of each query's own candidates.  # (B, W), (B, K, W) → (B, K)"""
        if self.distance is None:
            return torch.einsum("bw,bkw->bk", queries, candidates)
        return -torch.linalg.vector_norm(queries[:, None] - candidates, ord=self.distance, dim=-1)


def complex_parts(embeddings: Tensor) -> tuple[Tensor, Tensor]:
    """Real and imaginary halves of embeddings.  # (..., 2d) → (..., d), (..., d)"""
    real, imaginary = embeddings.chunk(2, -1)
    return real, imaginary


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    """The product of complex embeddings, number by number.  # (..., 2d), (..., 2d) → (..., 2d)"""
    (a_real, a_imaginary), (b_real, b_imaginary) = complex_parts(a), complex_parts(b)
    real = a_real * b_real - a_imaginary * b_imaginary
    return torch.cat([real, a_real * b_imaginary + a_imaginary * b_real], -1)


def complex_moduli(embeddings: Tensor) -> Tensor:
    """|z| of each complex number.  # (..., 2d) → (..., d)"""
    real, imaginary = complex_parts(embeddings)
    return torch.sqrt(real**2 + imaginary**2 + 1e-30)  # the gradient of the root at zero is not a number
