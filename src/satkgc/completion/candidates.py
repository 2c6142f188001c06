"""Answers of a fused model on a large graph: the experts' best candidates alone get the mixture's scores.

The text expert's candidates come through its index, a path expert's from the neighbourhood of the question's entity;
any other expert scores all entities, which is one matrix product for embeddings.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from satkgc.arrays import Float32, Float64, Int32
from satkgc.completion.index import ExactIndex, empty_results
from satkgc.completion.names import EntityOrText
from satkgc.completion.retriever import (
    LAST_NEW,
    EncodedQuestions,
    FusedRetriever,
    IndexRetriever,
    RankedAnswers,
)
from satkgc.completion.shortlist import NONE, NearOpinion, Opinion, Shortlist, VectorOpinion, WholeOpinion
from satkgc.models import FusedModel, Model, NewEntityText, PathModel, Questions, VectorModel

WHOLE = 100_000  # entities of the largest graph whose entities are all scored for every question
LISTED = 500  # candidates of each expert
NEAR = 10_000  # entities that a path expert reads, unless its settings say how many
QUESTIONS = 64  # at a time, at most
SCORES = 1 << 24  # of one expert that are held at once, at most
REMEMBERED = 32  # questions whose candidates are kept, at most

Key = tuple[int, int, NewEntityText | None]


class CandidateRetriever(FusedRetriever):
    """Of a mixture: from each question's `Shortlist`."""

    def __init__(self, model: FusedModel, listed: int = LISTED, near: int = NEAR) -> None:
        super().__init__(model)
        self.listed, self.near = min(listed, model.kg.num_entities), near
        self._knows = [model.expert(name).knows_entities() for name in model.names]
        self._indices: dict[int, IndexRetriever] = {}
        for i, name in enumerate(model.names):
            if isinstance(expert := model.expert(name), VectorModel):
                vectors = model.get_buffer(f"vectors{i}")
                first = self.vectors is not None and not self._indices
                own = (
                    self.vectors if first else IndexRetriever(expert, ExactIndex(vectors.cpu().numpy(), expert.device))
                )
                assert own is not None
                own._encoding = self._encoding
                self._indices[i] = own
        self._memory: dict[Key, Shortlist] = {}  # oldest first
        self._remembering = threading.Lock()

    def add(self, entity: NewEntityText) -> None:
        """A candidate from now on, of every question; experts without vectors have nothing to say of it."""
        place = np.array([len(self)], np.int32)
        for own in self._indices.values():
            if own is not self.vectors:  # which has it already
                own.index.add(place, own.entity_vector(entity)[None])
        super().add(entity)

    def candidates(self, questions: Questions, k: int, exclude: Sequence[Int32]) -> Iterator[Int32]:
        """What a search for k answers looks at, ascending, question by question."""
        for row, listed in enumerate(self.shortlists(questions)):
            yield listed.search(k, None, exclude[row])

    def search(
        self, questions: EncodedQuestions, k: int, allow: Int32 | None = None, exclude: Sequence[Int32] | None = None
    ) -> tuple[Float32, Int32]:
        """The best of the candidates, of the allowed ones' where some are."""
        scores, ids = empty_results(len(questions), k)
        allowed = None if allow is None else np.asarray(allow, np.int32)
        late = np.arange(self.model.kg.num_entities, len(self), dtype=np.int32)
        late = late if allowed is None else late[np.isin(late, allowed)]
        for row, listed in enumerate(self.shortlists(questions.questions)):
            out = NONE if exclude is None else exclude[row]
            found = np.union1d(listed.search(k, allowed, out), late[~np.isin(late, out)]).astype(np.int32)
            _keep(listed.score(listed.raw(found)), found, scores[row], ids[row])
        return scores, ids

    def score(self, questions: EncodedQuestions, candidates: Int32) -> Float32:
        """With the normalisers of the questions' candidates."""
        own = np.asarray(candidates, np.int32)[:, None]
        rows = enumerate(self.shortlists(questions.questions))
        return np.array([listed.score(listed.raw(own[row]))[0] for row, listed in rows], np.float32)

    def score_one(self, questions: EncodedQuestions, candidate: EntityOrText) -> Float32:
        """Likewise; what is new is left to the text experts."""
        if isinstance(candidate, int):
            return self.score(questions, np.full(len(questions), candidate, np.int32))
        lists = list(self.shortlists(questions.questions))
        return np.array([one.score(self._raw_text(one, candidate))[0] for one in lists], np.float32)

    def expert_scores(self, questions: EncodedQuestions, candidate: EntityOrText | Int32) -> Float32:
        """Likewise, a path expert's being those of the neighbourhood."""
        lists, raw = self.shortlists(questions.questions), []
        if isinstance(candidate, int | np.ndarray):
            ids = np.broadcast_to(np.asarray(candidate, np.int32), len(questions))
            raw = [one.raw(ids[row : row + 1])[:, 0] for row, one in enumerate(lists)]
        else:
            raw = [self._raw_text(one, candidate)[:, 0] for one in lists]
        scores = np.array(raw, np.float32).reshape(len(questions), -1)
        return np.where(np.isfinite(scores), scores, np.float32(np.nan))

    def rank(self, questions: Questions, answers: Int32, exclude: Sequence[Int32], k: int) -> RankedAnswers:
        """Among the candidates, which are found as if the answers were not known."""
        best, ids = empty_results(len(questions), k)
        own, ranks = np.zeros(len(questions), np.float32), np.ones(len(questions), np.int64)
        for row, listed in enumerate(self.shortlists(questions, answers)):
            found = listed.search(k, None, exclude[row])
            found = found[found != answers[row]]
            scores = listed.score(listed.raw(found))
            own[row] = listed.score(listed.raw(answers[row : row + 1]))[0]
            ranks[row] += (scores > own[row]).sum() + (scores == own[row]).sum() // 2
            _keep(scores, found, best[row], ids[row])
        return RankedAnswers(own, ranks, best, ids)

    def opinions(self, questions: Questions, candidates: Int32) -> tuple[Float32, Float32, Int32]:
        """Likewise, the log-shares being those of one question's candidates."""
        listed = next(iter(self.shortlists(questions)))
        raw = listed.raw(np.maximum(candidates[0], 0))
        if (new := candidates[0] == LAST_NEW).any():
            raw[:, new] = self._raw_text(listed, questions.new[-1])
        shares = listed.shares(listed.raw(listed.ids)).astype(np.float32)
        return listed.parts(raw)[:, None], shares[:, None], listed.ids

    def shortlists(self, questions: Questions, held_out: Int32 | None = None) -> Iterator[Shortlist]:
        """Of each question; answers (Q,) may be held out. Those of few questions are remembered."""
        fit = max(1, SCORES // self.model.kg.num_entities)
        remembered = min(REMEMBERED, fit)
        if held_out is not None or len(questions) > remembered:
            step = min(QUESTIONS, fit)
            for start in range(0, len(questions), step):
                rows = slice(start, start + step)
                yield from self._shortlists(questions.select(rows), None if held_out is None else held_out[rows])
            return
        keys = [self._key(questions, row) for row in range(len(questions))]
        with self._remembering:
            found = {key: self._memory[key] for key in keys if key in self._memory}
        missing = [row for row, key in enumerate(keys) if key not in found]
        if missing:
            lists = self._shortlists(questions.select(missing), None)
            found |= {keys[row]: listed for row, listed in zip(missing, lists, strict=True)}
        with self._remembering:
            self._memory |= found
            while len(self._memory) > remembered:
                del self._memory[next(iter(self._memory))]
        yield from (found[key] for key in keys)

    @torch.inference_mode()
    def _shortlists(self, questions: Questions, held_out: Int32 | None) -> list[Shortlist]:
        said: list[list[Opinion | None]] = [[None] * len(self.model.names) for _ in range(len(questions))]
        with self._encoding:
            for i, name in enumerate(self.model.names):
                expert = self.model.expert(name)
                known, new = expert.knows_questions(questions), questions.entities >= self.model.kg.num_entities
                for rows in filter(len, (np.flatnonzero(known & ~new), np.flatnonzero(known & new))):
                    own = None if held_out is None else held_out[rows]
                    for row, opinion in zip(rows, self._opinions(i, expert, questions.select(rows), own), strict=True):
                        said[row][i] = opinion
        mixture, size, relations = self.model.mixture, self.model.kg.num_entities, questions.relations.tolist()
        return [Shortlist(row, mixture, r, size, self.listed) for row, r in zip(said, relations, strict=True)]

    def _opinions(self, i: int, expert: Model, questions: Questions, held_out: Int32 | None) -> Sequence[Opinion]:
        """Of one expert, that knows the questions."""
        size = self.model.kg.num_entities
        if isinstance(expert, VectorModel):
            return self._by_vectors(i, expert, questions, held_out)
        if isinstance(expert, PathModel) and self._near(expert) < size and (questions.entities < size).all():
            return self._by_paths(i, expert, questions, held_out)
        scores = (expert.score(questions) if held_out is None else expert.score_held_out(questions, held_out)).float()
        rows = scores.cpu().numpy().copy()
        rows[:, ~self._knows[i]] = -np.inf
        return [WholeOpinion(row, self.listed) for row in rows]

    def _by_vectors(
        self, i: int, expert: VectorModel, questions: Questions, held_out: Int32 | None
    ) -> Sequence[Opinion]:
        own = None
        if held_out is None:
            queries = expert.encode_questions(questions)
        else:
            queries, own = expert.encode_held_out(questions, held_out)
        barred = np.where(expert.bars_own(questions), questions.entities, -1)
        _, ids = self._indices[i].nearest(queries, self.listed, exclude=[own[own >= 0] for own in barred[:, None]])
        rows = zip(queries, ids, barred.tolist(), strict=True)
        opinions = [VectorOpinion(self._indices[i], query, ids, self._knows[i], bar) for query, ids, bar in rows]
        if held_out is not None and own is not None:
            for opinion, answer, vector in zip(opinions, held_out.tolist(), own, strict=True):
                opinion.held_out = answer, vector
        return opinions

    def _by_paths(self, i: int, expert: PathModel, questions: Questions, held_out: Int32 | None) -> Sequence[Opinion]:
        """Questions about one entity share its neighbourhood, but where answers are held out."""
        groups = [np.array([row]) for row in range(len(questions))]
        if held_out is None:
            groups = [np.flatnonzero(questions.entities == entity) for entity in np.unique(questions.entities)]
        opinions: dict[int, Opinion] = {}
        for rows in groups:
            head, answer = int(questions.entities[rows[0]]), None if held_out is None else int(held_out[rows[0]])
            nodes, scores = expert.score_near(head, questions.relations[rows], self._near(expert), answer)
            for row, own in zip(rows.tolist(), scores.cpu().numpy(), strict=True):
                opinions[row] = NearOpinion(nodes, own, self._knows[i], self.listed)
        return [opinions[row] for row in range(len(questions))]

    def _near(self, expert: PathModel) -> int:
        return int(expert.config.neighbourhood) or self.near

    def _raw_text(self, listed: Shortlist, text: NewEntityText) -> Float64:
        """The experts' scores of an entity in words.  # (n, 1)"""
        raw = np.full((len(self.model.names), 1), -np.inf)
        for i, own in self._indices.items():
            if isinstance(opinion := listed.opinions[i], VectorOpinion):
                raw[i] = own.entity_vector(text) @ opinion.query
        return raw

    def _key(self, questions: Questions, row: int) -> Key:
        entity, size = int(questions.entities[row]), self.model.kg.num_entities
        return entity, int(questions.relations[row]), questions.new[entity - size] if entity >= size else None


def _keep(scores: Float32, ids: Int32, best: Float32, best_ids: Int32) -> None:
    """The best, in places that are there for them."""
    order = np.lexsort((ids, -scores))[: len(best)]
    best[: len(order)], best_ids[: len(order)] = scores[order], ids[order]
