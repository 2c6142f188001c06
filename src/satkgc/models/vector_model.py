"""Models whose scores are cosines: what an index can search."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Bool, Float32, Int32
from satkgc.models.model import Model, NewEntityText, Questions

LEAST_COSINE = -1.0


class VectorModel(Model):
    """A model whose scores are inner products of question and entity vectors of length one: it gets the index.

    An entity that is no answer to a question about itself, however near its vectors are, scores LEAST_COSINE.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """The width of the vectors."""

    @abstractmethod
    def encode_questions(self, questions: Questions, *, progress: bool = False) -> Float32:
        """Vectors of questions, of length one.  # (Q, dim)"""

    @abstractmethod
    def encode_entities(self, entities: Int32, new: Sequence[NewEntityText] = (), *, progress: bool = False) -> Float32:
        """Vectors of entities, of length one; entity E + i is the i-th of `new`.  # (n, dim)"""

    def bars_own(self, questions: Questions) -> Bool:
        """Of which questions the entity itself is no answer.  # (Q,)"""
        return np.zeros(len(questions), bool)

    def bar_own(self, scores: Tensor, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Lower such scores, which are of all entities or of candidates, in their place.  # (Q, n)"""
        rows = np.flatnonzero(self.bars_own(questions))
        places = questions.entities[rows].astype(np.int64)
        if candidates is None:
            rows, places = rows[places < scores.shape[1]], places[places < scores.shape[1]]
        else:
            found, places = np.nonzero(candidates[rows] == places[:, None])
            rows = rows[found]
        scores[torch.from_numpy(rows), torch.from_numpy(places)] = LEAST_COSINE
        return scores

    def changed_entities(self, before: Self) -> Int32:
        """Entities whose vectors are not those of the model that this one has grown from, ascending."""
        return np.arange(self.kg.num_entities, dtype=np.int32)

    def encode_held_out(self, questions: Questions, answers: Int32) -> tuple[Float32, Float32 | None]:
        """Vectors of questions and of their answers, as if the graph did not have these triples; None: the answers' are
        those of `encode_entities`.  # (Q, dim), (Q, dim)"""
        return self.encode_questions(questions), None

    def score_held_out(self, questions: Questions, answers: Int32) -> Tensor:
        """Inner products of `encode_held_out`; other entities are read as always."""
        everyone = np.arange(self.kg.num_entities, dtype=np.int32)
        queries, own = self.encode_held_out(questions, answers)
        scores = torch.from_numpy(queries @ self.encode_entities(everyone).T)
        if own is not None:
            scores[np.arange(len(answers)), answers.astype(np.int64)] = torch.from_numpy((queries * own).sum(1))
        return self.bar_own(scores, questions)

    def frozen(self) -> Self:
        """A copy with the weights as they are now: what a sampler that reads the model's vectors asks."""
        return copy.deepcopy(self, {id(self.kg): self.kg}).eval()

    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Inner products."""
        queries = torch.from_numpy(self.encode_questions(questions))  # (Q, dim)
        if candidates is None:
            everyone = np.arange(self.kg.num_entities, dtype=np.int32)
            return self.bar_own(queries @ torch.from_numpy(self.encode_entities(everyone)).T, questions)
        entities, place = np.unique(candidates, return_inverse=True)
        vectors = torch.from_numpy(self.encode_entities(entities.astype(np.int32), questions.new))
        rows = torch.from_numpy(place.reshape(candidates.shape))
        return self.bar_own(torch.einsum("qd,qkd->qk", queries, vectors[rows]), questions, candidates)
