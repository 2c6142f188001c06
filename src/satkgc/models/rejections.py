"""Statements that people rejected, as negatives: a term of the loss beside that of the training triples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph

if TYPE_CHECKING:
    from satkgc.models.model import Model

QUESTIONS = 64  # of rejected statements that a step asks, at most


class Rejections:
    """Rejected triples, each asked for its tail and for its head.

    A rejected answer t of a question loses −log(1 − p(t)), p being the softmax over all entities but those that the
    training triples have as answers (unlikelihood, Welleck et al., 2020).
    """

    def __init__(self, kg: KnowledgeGraph, triples: Int32, seed: int) -> None:
        turned = triples[:, ::-1] + np.array([0, kg.num_relations, 0], np.int32)
        self._kg, self._seed = kg, seed
        self._samples = np.concatenate([triples, turned])  # (2n, 3) directed

    def loss(self, model: Model, step: int) -> Tensor:
        """The mean over some of them, the same at every run of a step."""
        rng = np.random.default_rng([self._seed, step])
        rows = rng.permutation(len(self._samples))[:QUESTIONS]
        heads, relations, wrong = self._samples[rows].T
        scores = model.logits(
            *(torch.from_numpy(part.astype(np.int64)).to(model.device) for part in (heads, relations))
        )
        answers = [self._kg.known_train.answers(h, r) for h, r in zip(heads, relations, strict=True)]
        places = np.repeat(np.arange(len(rows)), [len(part) for part in answers]), np.concatenate(answers)
        known, own = (torch.zeros(scores.shape, dtype=torch.bool) for _ in range(2))
        known[places] = True
        own[np.arange(len(rows)), wrong] = True
        scores = scores.masked_fill(known.to(scores.device), -torch.inf)
        others = scores.masked_fill(own.to(scores.device), -torch.inf).logsumexp(1)  # (q,)
        compared = others.isfinite()  # a question without other entities has nothing to compare with
        return (scores.logsumexp(1) - others)[compared].sum() / len(rows)
