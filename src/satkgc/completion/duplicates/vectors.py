"""How alike the vectors of entities are, where a model has such."""

from __future__ import annotations

import logging

import numpy as np

from satkgc.arrays import Bool, Float32, Int32
from satkgc.completion.engine import Engine
from satkgc.completion.index import ExactIndex, Index
from satkgc.models import EmbeddingModel, FusedModel, Model
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.completion")

NEAREST = 4  # entities that are candidates by their vectors
MOST_EXACT = 50_000  # entities among which the exact index, which compares all, is searched for each
BATCH = 1024
SAMPLE = 10_000  # random pairs that say what chance gives
CHANCE = 0.95  # share of them that are not alike at all


class VectorSpace:
    """The entity vectors of one model, of length one, in an index; some may be of entities that it knows nothing of."""

    def __init__(self, index: Index, known: Bool) -> None:
        self.index, self.known = index, known
        pairs = np.random.default_rng(0).integers(len(known), size=(SAMPLE, 2)).astype(np.int32)
        pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & known[pairs].all(1)]
        self._chance = float(np.quantile(self._cosines(pairs), CHANCE)) if len(pairs) else 0.0

    def similarity(self, pairs: Int32) -> Float32:
        """0 for a cosine that one in twenty random pairs reaches, 1 for equal vectors; NaN where none is known."""
        scaled = (self._cosines(pairs) - self._chance) / max(1e-6, 1 - self._chance)
        return np.where(self.known[pairs].all(1), np.clip(scaled, 0, 1), np.nan).astype(np.float32)

    def nearest(self) -> Int32:
        """Each entity with those nearest to it.  # (n, 2)"""
        parts, size = [np.empty((0, 2), np.int32)], len(self.known)
        if isinstance(self.index, ExactIndex) and size > MOST_EXACT:
            what = "vectors are compared, but find no candidates among more than %s entities"
            log.warning(what + "; with the index faiss they do (satkgc prepare RUN --index faiss)", f"{MOST_EXACT:,}")
            return parts[0]
        own = np.flatnonzero(self.known).astype(np.int32)
        with progress_bar() as bar:
            task = bar.add_task("nearest vectors", total=len(own))
            for start in range(0, len(own), BATCH):
                rows = own[start : start + BATCH]
                _, ids = self.index.search(self.index.fetch(rows), min(NEAREST + 1, size))
                pairs = np.stack([np.repeat(rows, ids.shape[1]), ids.reshape(-1)], 1)
                pairs = pairs[(pairs[:, 1] >= 0) & (pairs[:, 1] < size)]  # those added later are none of the graph's
                parts.append(pairs[self.known[pairs[:, 1]]])
                bar.advance(task, len(rows))
        return np.concatenate(parts)

    def _cosines(self, pairs: Int32) -> Float32:
        result = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), 1 << 14):
            part = pairs[start : start + (1 << 14)]
            entities, place = np.unique(part, return_inverse=True)
            rows = self.index.fetch(entities.astype(np.int32))[place.reshape(part.shape)]  # (n, 2, dim)
            result[start : start + len(part)] = np.einsum("nd,nd->n", rows[:, 0], rows[:, 1])
        return result


class VectorTable:
    """The vectors of a model, or of all parts of a mixture that have such; embeddings count, and none is no error."""

    def __init__(self, engine: Engine) -> None:
        model, everyone = engine.model, np.ones(engine.kg.num_entities, bool)
        experts: list[Model] = [model]
        if isinstance(model, FusedModel):
            experts = [expert for expert in model.experts if isinstance(expert, Model)]
        self.spaces = [_embeddings(expert) for expert in experts if isinstance(expert, EmbeddingModel)]
        if engine.retriever.vectors is not None:
            self.spaces.append(VectorSpace(engine.retriever.vectors.index, everyone))

    def similarity(self, pairs: Int32) -> Float32:
        """In the space where they are most alike; NaN where no vectors are known.  # (n, 2) → (n,)"""
        result = np.full(len(pairs), np.nan, np.float32)
        for space in self.spaces:
            result = np.fmax(result, space.similarity(pairs))
        return result

    def nearest(self) -> Int32:
        """Each entity with those nearest to it in some space.  # (n, 2)"""
        return np.concatenate([np.empty((0, 2), np.int32), *(space.nearest() for space in self.spaces)])


def _embeddings(model: EmbeddingModel) -> VectorSpace:
    rows = model.entities.weight.detach().float().cpu().numpy()
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return VectorSpace(ExactIndex(rows), model.knows_entities())
