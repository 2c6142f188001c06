"""Two models of a few parameters: one with vectors that reads texts, one that only scores."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import nn

from satkgc.models import Model, Questions, VectorModel
from satkgc.settings import Settings


def table(rows: int, dim: int, seed: int) -> nn.Parameter:
    """A parameter of seeded random numbers."""
    return nn.Parameter(torch.from_numpy(np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)))


def unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length one."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class WordVectors(VectorModel):
    """Random vectors of entities and relations, whose sum is the question's; a new entity's come from its words."""

    reads_text = True

    def __init__(self, kg, dim=12) -> None:
        super().__init__(kg, Settings())
        self.entity, self.relation = table(kg.num_entities, dim, 1), table(2 * kg.num_relations, dim, 2)

    @property
    def dim(self) -> int:
        return self.entity.shape[1]

    def loss(self, batch):
        raise NotImplementedError

    def encode_questions(self, questions, *, progress=False):
        relations = self.relation.detach().numpy()[questions.relations]
        return unit(self._rows(questions.entities, questions.new) + relations)

    def encode_entities(self, entities, new=(), *, progress=False):
        return unit(self._rows(entities, new))

    def _rows(self, entities, new):
        rows = np.empty((len(entities), self.dim), np.float32)
        for row, entity in enumerate(entities):
            if entity < self.kg.num_entities:
                rows[row] = self.entity.detach().numpy()[entity]
            else:
                words = repr(new[entity - self.kg.num_entities]).encode()
                seed = int.from_bytes(hashlib.sha256(words).digest()[:4])
                rows[row] = np.random.default_rng(seed).normal(size=self.dim)
        return rows


class PlainScores(Model):
    """Scores of any size, by a product whose factors nobody outside sees; whole numbers, so that many are equal."""

    def __init__(self, kg, size=1.0, dim=6) -> None:
        super().__init__(kg, Settings())
        self.entity, self.relation = table(kg.num_entities, dim, 3), table(2 * kg.num_relations, dim, 4)
        self.size = size

    def loss(self, batch):
        raise NotImplementedError

    def score(self, questions: Questions, candidates=None):
        heads = self.entity[questions.entities] * self.relation[questions.relations]  # (Q, dim)
        if candidates is None:
            scores = heads @ self.entity.T
        else:
            scores = torch.einsum("qd,qkd->qk", heads, self.entity[torch.from_numpy(candidates)])
        return (self.size * torch.round(4 * scores.double())).float().detach()
