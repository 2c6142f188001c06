"""The best candidates of questions: from the index for a model that has vectors, from all scores for any other."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from satkgc.arrays import Bool, Float32, Int32, Int64
from satkgc.completion.index import ExactIndex, Index, TopK
from satkgc.completion.names import EntityOrText
from satkgc.errors import SatkgcError
from satkgc.models import LEAST_COSINE, FusedModel, Model, NewEntityText, Questions, VectorModel

SCORES = 1 << 25  # scores of a model without vectors that are held at once: 128 MiB
LAST_NEW = -1  # as a candidate of a mixture: the last of the questions' own texts
COSINE_SPREAD = 0.1  # about the standard deviation of cosines of a question's best candidates


@dataclass(frozen=True, eq=False)
class EncodedQuestions:
    """Questions, with their vectors where the model has vectors: encoded once, searched several times."""

    questions: Questions
    vectors: Float32 | None = None  # (Q, dim)

    def __len__(self) -> int:
        return len(self.questions)

    def select(self, rows: Any) -> EncodedQuestions:
        """Some of them."""
        return EncodedQuestions(self.questions.select(rows), None if self.vectors is None else self.vectors[rows])


@dataclass(frozen=True, eq=False)
class RankedAnswers:
    """An answer of each question, and the best of the others."""

    scores: Float32  # (Q,)
    ranks: Int64  # (Q,) from 1; of equal scores half are taken to be better
    best: Float32  # (Q, k) scores of others, best first; -inf fills a short row
    ids: Int32  # (Q, k) -1 likewise

    @classmethod
    def join(cls, parts: Sequence[RankedAnswers]) -> RankedAnswers:
        """One after another."""
        names = ("scores", "ranks", "best", "ids")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class Retriever(ABC):
    """Candidates and scores of questions. Candidates are the graph's entities and those that were added."""

    model: Model
    vectors: IndexRetriever | None = None  # entity vectors, where the model or a part of it has such

    def __init__(self) -> None:
        self._encoding = threading.Lock()  # one forward pass at a time: two would only share the cores

    @abstractmethod
    def __len__(self) -> int:
        """How many candidates there are."""

    @abstractmethod
    def encode(self, questions: Questions, progress: bool = False) -> EncodedQuestions:
        """What the other methods take."""

    @abstractmethod
    def search(
        self, questions: EncodedQuestions, k: int, allow: Int32 | None = None, exclude: Sequence[Int32] | None = None
    ) -> tuple[Float32, Int32]:
        """Scores and ids (Q, k), best first, equal scores by lower id; -inf and -1 fill a short row.

        `allow` holds for all questions, `exclude` has an array for each; both ascend.
        """

    @abstractmethod
    def score(self, questions: EncodedQuestions, candidates: Int32) -> Float32:
        """Scores of one candidate (Q,) for each question.  # (Q,)"""

    @abstractmethod
    def score_one(self, questions: EncodedQuestions, candidate: EntityOrText) -> Float32:
        """Scores of the same candidate for all questions.  # (Q,)"""

    def expert_scores(self, questions: EncodedQuestions, candidate: EntityOrText | Int32) -> Float32:
        """Scores of one candidate, or of one for each question, by each part of the model as it has learnt to score;
        NaN where it has nothing to say.  # (Q, P)"""
        if isinstance(candidate, np.ndarray):
            return self.score(questions, candidate)[:, None]
        return self.score_one(questions, candidate)[:, None]

    @abstractmethod
    def rank(self, questions: Questions, answers: Int32, exclude: Sequence[Int32], k: int) -> RankedAnswers:
        """Of each question an answer among all of the graph's entities but those to exclude, itself one of them.

        The answers are held out: the model reads the graph as if it did not have these triples.
        """

    @abstractmethod
    def calibration_scale(self, scores: Float32) -> float:
        """By what to multiply scores such as these before calibration, which expects the spread of cosines."""


class IndexRetriever(Retriever):
    """Of a model with vectors: inner products, through an index that may live elsewhere."""

    def __init__(self, model: VectorModel, index: Index) -> None:
        super().__init__()
        self.model: VectorModel = model
        self.index = index
        self.vectors = self

    def __len__(self) -> int:
        return len(self.index)

    def encode(self, questions: Questions, progress: bool = False) -> EncodedQuestions:
        """Vectors of all questions, those about the graph's entities and those about new text together."""
        if not len(questions):
            return EncodedQuestions(questions, np.empty((0, self.model.dim), np.float32))
        with self._encoding:
            return EncodedQuestions(questions, self.model.encode_questions(questions, progress=progress))

    def search(
        self, questions: EncodedQuestions, k: int, allow: Int32 | None = None, exclude: Sequence[Int32] | None = None
    ) -> tuple[Float32, Int32]:
        """By the index."""
        assert questions.vectors is not None
        return self.nearest(questions.vectors, k, allow, self._without_own(questions.questions, exclude))

    def nearest(
        self, vectors: Float32, k: int, allow: Int32 | None = None, exclude: Sequence[Int32] | None = None
    ) -> tuple[Float32, Int32]:
        """The entities nearest to some vectors, as `search` has them."""
        if exclude is None or self.index.excludes:
            scores, ids = self.index.search(vectors, k, allow, exclude)
        else:
            scores, ids = self.index.search(vectors, k + max(map(len, exclude), default=0), allow)
            scores, ids = scores.copy(), ids.copy()
            for row, out in enumerate(exclude):
                dropped = np.isin(ids[row], out)
                scores[row, dropped], ids[row, dropped] = -np.inf, -1
        order = np.lexsort((ids, -scores), axis=1)[:, :k]  # an index promises no order of equal scores
        return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)

    def score(self, questions: EncodedQuestions, candidates: Int32) -> Float32:
        """Inner products with the index's vectors."""
        assert questions.vectors is not None
        scores = np.einsum("qd,qd->q", questions.vectors, self.index.fetch(candidates))
        return np.where(self._bars(questions.questions, candidates), np.float32(LEAST_COSINE), scores)

    def score_one(self, questions: EncodedQuestions, candidate: EntityOrText) -> Float32:
        """Inner products with one vector."""
        assert questions.vectors is not None
        scores = questions.vectors @ self.entity_vector(candidate)
        if isinstance(candidate, int):
            scores[self._bars(questions.questions, candidate)] = LEAST_COSINE
        return scores

    def entity_vector(self, entity: EntityOrText) -> Float32:
        """From the index, or encoded.  # (dim,)"""
        if isinstance(entity, int):
            return self.index.fetch(np.array([entity], np.int32))[0]
        with self._encoding:
            return self.model.encode_entities(np.array([self.model.kg.num_entities], np.int32), [entity])[0]

    def rank(self, questions: Questions, answers: Int32, exclude: Sequence[Int32], k: int) -> RankedAnswers:
        """By inner products with all vectors, a block of them at a time."""
        with self._encoding:
            queries, held_out = self.model.encode_held_out(questions, answers)
        own = np.einsum("qd,qd->q", queries, self.index.fetch(answers) if held_out is None else held_out)
        own[self._bars(questions, answers)] = LEAST_COSINE
        size = self.model.kg.num_entities
        step = max(1024, SCORES // max(1, len(own)))
        ranking = _Ranking(own, self._without_own(questions, exclude) or (), k)
        for start in range(0, size, step):
            ids = np.arange(start, min(start + step, size), dtype=np.int32)
            ranking.offer(queries @ self.index.fetch(ids).T, ids)
        return ranking.result()

    def calibration_scale(self, scores: Float32) -> float:
        """They are cosines."""
        return 1.0

    def _bars(self, questions: Questions, candidates: Int32 | int) -> Bool:
        """Whose candidate is the question's own entity, and no answer.  # (Q,)"""
        return self.model.bars_own(questions) & (questions.entities == candidates)

    def _without_own(self, questions: Questions, exclude: Sequence[Int32] | None) -> Sequence[Int32] | None:
        """What to exclude, and with it the own entities that are no answers."""
        barred = self.model.bars_own(questions)
        if not barred.any():
            return exclude
        rows = [np.empty(0, np.int32)] * len(questions) if exclude is None else exclude
        own = questions.entities[:, None]
        return [np.union1d(out, one) if bar else out for out, one, bar in zip(rows, own, barred, strict=True)]


class ScoreRetriever(Retriever):
    """Of any other model: all entities are scored, block by block, and the best are kept."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def __len__(self) -> int:
        return self.model.kg.num_entities

    def encode(self, questions: Questions, progress: bool = False) -> EncodedQuestions:
        """There is nothing to encode ahead of scoring."""
        return EncodedQuestions(questions)

    def search(
        self, questions: EncodedQuestions, k: int, allow: Int32 | None = None, exclude: Sequence[Int32] | None = None
    ) -> tuple[Float32, Int32]:
        """By scores of all entities, or of the allowed ones, that the model has something to say of."""
        best = TopK(len(questions), k, exclude)
        candidates = np.arange(len(self), dtype=np.int32) if allow is None else np.asarray(allow, np.int32)
        if not (known := self.model.knows_entities()).all():
            candidates = candidates[np.append(known, True)[np.minimum(candidates, len(known))]]
        step = max(1, SCORES // max(1, len(candidates)))
        for start in range(0, len(questions), step):
            block = questions.questions.select(slice(start, start + step))
            if not len(candidates):
                break
            everyone = allow is None and len(candidates) == self.model.kg.num_entities == len(self)
            own = None if everyone else np.tile(candidates, (len(block), 1))
            best.offer(self._scores(*self._as_new(block, own)), candidates, start)
        return best.result()

    def score(self, questions: EncodedQuestions, candidates: Int32) -> Float32:
        """By the model."""
        own = np.asarray(candidates, np.int32)[:, None]
        return self._scores(*self._as_new(questions.questions, own))[:, 0]

    def score_one(self, questions: EncodedQuestions, candidate: EntityOrText) -> Float32:
        """By the model; new text is one more of the questions' own."""
        plain = questions.questions
        if isinstance(candidate, int):
            return self.score(questions, np.full(len(plain), candidate, np.int32))
        plain = Questions(plain.entities, plain.relations, (*plain.new, candidate))
        new = self.model.kg.num_entities + len(plain.new) - 1
        return self._scores(plain, np.full((len(plain), 1), new, np.int32))[:, 0]

    def rank(self, questions: Questions, answers: Int32, exclude: Sequence[Int32], k: int) -> RankedAnswers:
        """By the model's scores of all entities, some questions at a time."""
        ids, parts = np.arange(self.model.kg.num_entities, dtype=np.int32), []
        step = max(1, SCORES // len(ids))
        for rows in (slice(start, start + step) for start in range(0, len(questions), step)):
            some = answers[rows]
            with self._encoding, torch.inference_mode():
                scores = self._checked(self.model.score_held_out(questions.select(rows), some))
            ranking = _Ranking(scores[np.arange(len(some)), some], exclude[rows], k)
            ranking.offer(scores, ids)
            parts.append(ranking.result())
        return RankedAnswers.join(parts)

    def calibration_scale(self, scores: Float32) -> float:
        """By their standard deviation."""
        spread = float(np.std(scores[np.isfinite(scores)], dtype=np.float64)) if np.isfinite(scores).any() else 0.0
        return COSINE_SPREAD / spread if spread else 1.0

    def _as_new(self, questions: Questions, candidates: Int32 | None) -> tuple[Questions, Int32 | None]:
        """As the model numbers them: those that were added are entities of the questions' own, after the others."""
        return questions, candidates

    def _scores(self, questions: Questions, candidates: Int32 | None) -> Float32:
        if not len(questions):
            return np.empty((0, len(self) if candidates is None else candidates.shape[1]), np.float32)
        with self._encoding, torch.inference_mode():
            return self._checked(self.model.score(questions, candidates))

    def _checked(self, tensor: torch.Tensor) -> Float32:
        scores: Float32 = tensor.float().cpu().numpy()
        if np.isnan(scores).any():
            raise SatkgcError(f"{type(self.model).__name__} gave NaN as a score", remedy="train it again")
        return scores


class FusedRetriever(ScoreRetriever):
    """Of a mixture: scored whole, with the entity vectors of an expert that has such, and what each expert says."""

    def __init__(self, model: FusedModel) -> None:
        super().__init__(model)
        self.model: FusedModel = model
        self._added: tuple[NewEntityText, ...] = ()  # replaced as a whole, so that other threads see all or nothing
        if (own := model.entity_vectors()) is not None:
            expert, vectors = own
            self.vectors = IndexRetriever(expert, ExactIndex(vectors.cpu().numpy(), expert.device))
            self.vectors._encoding = self._encoding

    def __len__(self) -> int:
        return self.model.kg.num_entities + len(self._added)

    def add(self, entity: NewEntityText) -> None:
        """A candidate from now on."""
        self._added = (*self._added, entity)

    def _as_new(self, questions: Questions, candidates: Int32 | None) -> tuple[Questions, Int32 | None]:
        size, own = self.model.kg.num_entities, len(questions.new)
        if candidates is None:
            return questions, None
        numbered = np.where(candidates >= size, candidates + own, candidates)
        numbered[candidates == LAST_NEW] = size + own - 1
        new = (*questions.new, *self._added) if (candidates >= size).any() else questions.new
        return Questions(questions.entities, questions.relations, new), numbered.astype(np.int32)

    def expert_scores(self, questions: EncodedQuestions, candidate: EntityOrText | Int32) -> Float32:
        """Of each expert, not normalised over the entities."""
        plain, size = questions.questions, self.model.kg.num_entities
        if isinstance(candidate, int | np.ndarray):
            plain, ids = self._as_new(plain, np.broadcast_to(np.asarray(candidate, np.int32), len(plain)))
            assert ids is not None
        else:
            ids = np.full(len(plain), size + len(plain.new), np.int32)
            plain = Questions(plain.entities, plain.relations, (*plain.new, candidate))
        with self._encoding:
            return self.model.expert_scores(plain, ids).cpu().numpy()

    def opinions(self, questions: Questions, candidates: Int32) -> tuple[Float32, Float32, Int32]:
        """Of each expert: what it adds to the candidates' scores, NaN where it says nothing (n, Q, K), and its
        log-shares (n, Q, E) of the entities that compete, all here (E,)."""
        asked, own = self._as_new(questions, candidates)
        assert own is not None
        with self._encoding:
            added = self.model.contributions(asked, own).cpu().numpy()
            shares = self.model.log_shares(questions).cpu().numpy()
        return added, shares, np.arange(self.model.kg.num_entities, dtype=np.int32)


class _Ranking:
    """Counts how many others score above an answer, and keeps the best of them, over blocks of candidates."""

    def __init__(self, own: Float32, exclude: Sequence[Int32], k: int) -> None:
        self.own, self.exclude = own, exclude
        self._above, self._equal = (np.zeros(len(own), np.int64) for _ in range(2))
        self._best = TopK(len(own), k, exclude)

    def offer(self, scores: Float32, ids: Int32) -> None:
        """Scores (Q, n) of candidates (n,), which follow each other."""
        own = self.own[:, None]
        above, equal = scores > own, scores == own
        for row, out in enumerate(self.exclude):
            out = out[(out >= ids[0]) & (out <= ids[-1])] - ids[0]
            above[row, out] = equal[row, out] = False
        self._above += above.sum(1)
        self._equal += equal.sum(1)
        self._best.offer(scores, ids)

    def result(self) -> RankedAnswers:
        """After the last block."""
        return RankedAnswers(self.own, 1 + self._above + self._equal // 2, *self._best.result())


def make_retriever(model: Model, index: Index | None) -> Retriever:
    """The retriever of a model: with an index where it has vectors."""
    if isinstance(model, FusedModel):
        return FusedRetriever(model)
    if index is None:
        return ScoreRetriever(model)
    assert isinstance(model, VectorModel)
    return IndexRetriever(model, index)
