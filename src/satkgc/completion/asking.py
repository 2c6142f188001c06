"""Answering a batch of questions: names to queries, queries to vectors in one go, vectors to ranked answers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from satkgc.arrays import Float32, Int32
from satkgc.completion.answer import Answer, Question
from satkgc.completion.calibration import RIVALS, Array, Calibration
from satkgc.completion.exact import ExactIndex
from satkgc.completion.index import Index
from satkgc.completion.joining import Joining, log_shares
from satkgc.completion.names import Names, Newcomer
from satkgc.completion.vectors import Vectors
from satkgc.errors import SatkgcError
from satkgc.models.text import Towers
from satkgc.text import Texts, TokenBatch

Subject = int | Newcomer  # an entity of the index, or new text
Query = tuple[Subject, int]  # with a directed relation
NOBODY = np.empty(0, np.int32)


@dataclass(frozen=True, eq=False)
class Rivals:
    """A query's best candidates that are not known answers: they share its probability among them."""

    scores: Float32  # (m,) best first
    ids: Int32  # (m,)


@dataclass(frozen=True, eq=False)
class _Entities:
    """A question for entities, in indices."""

    question: Question
    query: Query
    allowed: Int32 | None


@dataclass(frozen=True, eq=False)
class _Relations:
    """A question for relations: each is asked from both ends."""

    question: Question
    head: Subject
    tail: Subject
    allowed: Int32


class Asker:
    """Everything an answer needs; `Completer` gives it a face."""

    def __init__(
        self,
        names: Names,
        towers: Towers,
        texts: Texts,
        vectors: Vectors,
        index: Index,
        fit: Calibration | None = None,
        joining: Joining | None = None,
    ) -> None:
        self.names, self.kg = names, names.kg
        self.towers, self.texts = towers, texts
        self.vectors, self.index, self.calibration, self.joining = vectors, index, fit, joining or Joining()
        loops = self.kg.train[self.kg.train[:, 0] == self.kg.train[:, 2], 1]
        self._reflexive = frozenset(np.unique(loops).tolist())  # relations that some entity has to itself
        self._encoding = threading.Lock()  # one forward pass at a time: two would only share the cores

    def ask(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """Answer questions; all names are looked up before anything is encoded, so that a bad one costs nothing."""
        return self._answer([self._plan(question) for question in questions])

    def ask_each(self, questions: Sequence[Question]) -> list[list[Answer] | SatkgcError]:
        """As `ask`, but a question that cannot be answered has its error in the place of answers."""
        plans = [self._plan_or_error(question) for question in questions]
        answers = iter(self._answer([plan for plan in plans if not isinstance(plan, SatkgcError)]))
        return [plan if isinstance(plan, SatkgcError) else next(answers) for plan in plans]

    def _answer(self, plans: Sequence[_Entities | _Relations]) -> list[list[Answer]]:
        wanted = [self._queries(plan) for plan in plans]
        rows = {query: row for row, query in enumerate(dict.fromkeys(query for one in wanted for query in one))}
        vectors = self.encode(list(rows))
        searched = {rows[plan.query]: plan.query for plan in plans if isinstance(plan, _Entities)}
        most = max((plan.question.k for plan in plans), default=1)
        found = self.rivals(list(searched.values()), vectors[list(searched)], max(RIVALS, most))
        rivals = dict(zip(searched, found, strict=True))
        answers = []
        for plan, queries in zip(plans, wanted, strict=True):
            own = [rows[query] for query in queries]
            if isinstance(plan, _Entities):
                answers.append(self._entity_answers(plan, vectors[own[0]], rivals[own[0]]))
            else:
                answers.append(self._relation_answers(plan, vectors[own]))
        return answers

    def encode(self, queries: Sequence[Query], progress: bool = False) -> Float32:
        """Vectors of queries, those about the graph's entities and those about new text together.  # (q, dim)"""
        if not queries:
            return np.empty((0, self.vectors.dim), np.float32)
        with self._encoding:
            return self.towers.encode_queries(self.query_tokens(queries), progress=progress)

    def query_tokens(self, queries: Sequence[Query]) -> TokenBatch:
        """What the query tower reads for each query."""
        words = [self._words(subject) for subject, _ in queries]
        old, new = ([i for i, text in enumerate(words) if (text is None) == stored] for stored in (True, False))
        directed = np.array([d for _, d in queries], np.int32)
        batches = []
        if old:
            batches.append(self.texts.queries([queries[i][0] for i in old], directed[old]))
        if new:
            late = [text for text in words if text is not None]
            pairs = [(text.name, text.description) for text in late]
            batches.append(self.texts.new_entities(pairs, directed[new], [self._near(text) for text in late]))
        if len(batches) == 1:
            return batches[0]
        return TokenBatch.concatenate(batches).select(np.argsort(old + new))

    def entity_tokens(self, subject: Subject) -> TokenBatch:
        """What the entity tower reads for an entity."""
        words = self._words(subject)
        if words is None:
            return self.texts.entities([subject])
        return self.texts.new_entity(words.name, words.description, self._near(words))

    def entity_vector(self, subject: Subject) -> Float32:
        """The entity tower's vector of an entity or of new text.  # (dim,)"""
        if isinstance(subject, int):
            return self.vectors.rows(np.array([subject]))[0]
        with self._encoding:
            return self.towers.encode_entities(self.entity_tokens(subject), progress=False)[0]

    def known(self, query: Query) -> Int32:
        """Answers that the graph holds, from any split, or that facts of new entities say; ascending."""
        subject, directed = query
        if isinstance(subject, Newcomer):
            return np.array([other for by, other in subject.facts if by == directed], np.int32)
        old = self.kg.known_all.answers(subject, directed) if subject < self.kg.num_entities else NOBODY
        late = self.names.joined.get((subject, directed))
        return old if late is None else np.union1d(old, np.array(late, np.int32))

    def holds(self, head: Subject, relation: int, tail: Subject) -> bool:
        """Whether a triple is known; one of its ends may be new text with facts."""
        if isinstance(tail, int):
            return bool(np.isin(tail, self.known((head, relation))))
        return isinstance(head, int) and bool(np.isin(head, self.known((tail, relation + self.kg.num_relations))))

    def rivals(self, queries: Sequence[Query], vectors: Float32, k: int = RIVALS) -> list[Rivals]:
        """The k best candidates of each query that are no known answer, nor the entity asked about itself."""
        excluded = [self.out(query) for query in queries]
        scores, ids = self.index.search(vectors, min(k, len(self.index)), excluded=excluded)
        return [Rivals(s[i >= 0], i[i >= 0]) for s, i in zip(scores, ids, strict=True)]

    def probabilities(self, scores: Float32, ids: Int32, rivals: Rivals, known: Int32) -> Array | None:
        """Of one query's candidates (n,); a known answer competes with the unknown ones as a missing one would."""
        if self.calibration is None or not len(scores):
            return None
        listed = np.isin(ids, rivals.ids[:RIVALS]) & ~np.isin(ids, known)
        return self.calibration.probability(scores[None], rivals.scores[None, :RIVALS], listed[None])[0]

    def between(self, head: Subject, tail: Subject) -> list[Query]:
        """What is asked about the relations that may join two entities: each of them, from both ends."""
        count = self.kg.num_relations
        return [(head, r) for r in range(count)] + [(tail, r + count) for r in range(count)]

    def weigh(self, head: Subject, tail: Subject, vectors: Float32) -> tuple[Array, Array, Array | None]:
        """Scores, logits and probabilities of all relations (R,), from the vectors of the queries `between` the two."""
        count = self.kg.num_relations
        tails, heads = vectors[:count] @ self.entity_vector(tail), vectors[count:] @ self.entity_vector(head)
        logits = self.joining.logits(tails, heads, log_shares(self.names.frequency))
        return (tails + heads) / 2, logits, self.joining.probability(logits) if self.joining.questions else None

    def _plan(self, question: Question) -> _Entities | _Relations:
        if question.relation is None:
            assert question.head is not None
            assert question.tail is not None
            chosen = (
                range(self.kg.num_relations) if question.among is None else map(self.names.relation, question.among)
            )
            head, tail = self.names.subject(question.head), self.names.subject(question.tail)
            return _Relations(question, head, tail, np.unique(np.array([*chosen], np.int32)))
        directed = self.names.relation(question.relation)
        if question.head is None:
            assert question.tail is not None
            query = (self.names.subject(question.tail), directed + self.kg.num_relations)
        else:
            query = (self.names.subject(question.head), directed)
        return _Entities(question, query, self.names.allowed(question.among, question.role))

    def _plan_or_error(self, question: Question) -> _Entities | _Relations | SatkgcError:
        try:
            return self._plan(question)
        except SatkgcError as error:
            return error

    def _queries(self, plan: _Entities | _Relations) -> list[Query]:
        if isinstance(plan, _Entities):
            return [plan.query]
        return self.between(plan.head, plan.tail)  # all compete, whatever the question's filters leave

    def _words(self, subject: Subject) -> Newcomer | None:
        """The words of an entity that the stored texts do not have."""
        if isinstance(subject, Newcomer):
            return subject
        late = subject - self.kg.num_entities
        return self.names.added[late] if late >= 0 else None

    def _near(self, words: Newcomer) -> list[tuple[int, str]]:
        """The neighbours that a new entity's text names."""
        facts: Iterable[tuple[int, int]] = words.facts
        if not self.texts.config.neighbour_relations:  # bare names: each once, whatever joins them
            facts = sorted({(0, other) for _, other in facts})
        return [(directed, self.names.name(other)) for directed, other in facts]

    def _entity_answers(self, plan: _Entities, vector: Float32, rivals: Rivals) -> list[Answer]:
        question, known = plan.question, self.known(plan.query)
        scores, ids = rivals.scores, rivals.ids
        if plan.allowed is not None:
            scores, ids = self._nearest(vector, question.k, plan.allowed, self.out(plan.query))
        if not question.drop_known and len(known):
            more = known if plan.allowed is None else known[np.isin(known, plan.allowed)]
            late_scores, late_ids = self._nearest(vector, question.k, more)
            scores, ids = np.concatenate([scores, late_scores]), np.concatenate([ids, late_ids])
        best = np.lexsort((ids, -scores))[: question.k]
        scores, ids = scores[best], ids[best]
        chances = self.probabilities(scores, ids, rivals, known)
        marked = np.isin(ids, known)
        answers = []
        for i, entity in enumerate(ids):
            shown = self.names.describe(int(entity))
            chance = None if chances is None else float(chances[i])
            answers.append(Answer(shown.id, shown.name, shown.description, float(scores[i]), chance, bool(marked[i])))
        return _good_enough(question, answers)

    def out(self, query: Query) -> Int32:
        """What is no new answer: those known, and the entity itself unless some entity has the relation to itself."""
        known, reflexive = self.known(query), query[1] % self.kg.num_relations in self._reflexive
        if reflexive or not isinstance(query[0], int):
            return known
        place = int(np.searchsorted(known, query[0]))  # np.union1d takes half a second for a hub
        return known if query[0] in known[place : place + 1] else np.insert(known, place, query[0])

    def _nearest(self, vector: Float32, k: int, among: Int32, out: Int32 = NOBODY) -> tuple[Float32, Int32]:
        scores, ids = ExactIndex(self.vectors).search(vector[None], k, allowed=among, excluded=[out])
        return scores[0][ids[0] >= 0], ids[0][ids[0] >= 0]

    def _relation_answers(self, plan: _Relations, vectors: Float32) -> list[Answer]:
        scores, logits, chances = self.weigh(plan.head, plan.tail, vectors)
        known = np.array([self.holds(plan.head, r, plan.tail) for r in range(len(scores))], bool)
        left = plan.allowed[~known[plan.allowed]] if plan.question.drop_known else plan.allowed
        answers = []
        for r in left[np.argsort(-logits[left], kind="stable")].tolist():
            shown, words = self.names.describe_relation(r), self.kg.relations.description(r)
            chance = None if chances is None else float(chances[r])
            answers.append(Answer(shown.id, shown.name, words, float(scores[r]), chance, bool(known[r])))
        return _good_enough(plan.question, answers)[: plan.question.k]  # the order is not that of the scores


def _good_enough(question: Question, answers: list[Answer]) -> list[Answer]:
    score, chance = question.min_score, question.min_probability
    if score is not None:
        answers = [answer for answer in answers if answer.score >= score]
    if chance is not None:
        answers = [answer for answer in answers if answer.probability is not None and answer.probability >= chance]
    return answers
