"""Answering a batch of questions: names to queries, all queries encoded in one go, candidates ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from satkgc.arrays import Bool, Float32, Float64, Int32
from satkgc.completion.answer import Answer, EntityRef, Objection, Question, UnknownNameError, UnknownTypeError
from satkgc.completion.calibration import COMPETITORS, Calibration
from satkgc.completion.consistency import CONTRADICTIONS, Consistency
from satkgc.completion.experts import expert_shares
from satkgc.completion.names import EntityOrText, Names
from satkgc.completion.relations import fill_silence, log_shares
from satkgc.completion.retriever import EncodedQuestions, Retriever
from satkgc.errors import SatkgcError
from satkgc.kg import RelationLogic, relation_logic
from satkgc.models import NewEntityText, Questions

Query = tuple[EntityOrText, int]  # with a directed relation
NONE = np.empty(0, np.int32)
DEEPEST = 5_000  # candidates looked at where those with objections are dropped
SHOWN = 8  # types named in a message


@dataclass(frozen=True, eq=False)
class Competitors:
    """A query's best candidates that are not known answers: they share its probability among them."""

    scores: Float32  # (m,) best first
    ids: Int32  # (m,)


@dataclass(frozen=True, eq=False)
class _EntityQuestion:
    """A question for entities, in indices."""

    question: Question
    query: Query
    allow: Int32 | None


@dataclass(frozen=True, eq=False)
class _RelationQuestion:
    """A question for relations: each is asked from both ends."""

    question: Question
    head: EntityOrText
    tail: EntityOrText
    allow: Int32


class Engine:
    """Questions in, answers out, whatever the model; `Completer` is its public face."""

    def __init__(
        self,
        names: Names,
        retriever: Retriever,
        calibration: Calibration | None = None,
        logic: Sequence[RelationLogic] | None = None,
    ) -> None:
        self.names, self.kg = names, names.kg
        self.retriever, self.model = retriever, retriever.model
        self.calibration = calibration or Calibration()
        self._given_logic = logic
        loops = self.kg.facts[self.kg.facts[:, 0] == self.kg.facts[:, 2], 1]
        self._reflexive = frozenset(np.unique(loops).tolist())  # relations that some entity has to itself

    @cached_property
    def logic(self) -> Sequence[RelationLogic]:
        """What relations mean: as it was given, else as the graph shows it."""
        return relation_logic(self.kg) if self._given_logic is None else self._given_logic

    @cached_property
    def consistency(self) -> Consistency:
        """The graph's logic, to hold answers against; nothing is added to it."""
        return Consistency(self.kg, self.logic)

    def objection(self, head: EntityOrText, relation: int, tail: EntityOrText) -> Objection | None:
        """What the graph's logic says against a triple, unless it is known."""
        ends = [end if isinstance(end, int) else None for end in (head, tail)]
        conflict = self.consistency.conflict(ends[0], relation, ends[1])
        if conflict is None or self.is_known(head, relation, tail):
            return None
        return conflict.objection(self.names.name, self.kg.relations.name)

    def type_members(self, type: str) -> Int32:
        """The entities of a type, given by its id or name."""
        types = self.consistency.types
        stated = [t for t, _ in types.counts]
        if not stated:
            remedy = "no relation in the run's relations.toml tells types: add to it [[relation]] with the id of one "
            raise UnknownTypeError(type, f"{remedy}that does and type = true, or leave the type out")
        named = [t for t in stated if self.names.name(t).casefold() == type.casefold()]
        try:
            members = types.members(named[0] if len(named) == 1 else self.names.entity(type))
        except UnknownNameError:
            members = np.empty(0, np.int32)
        if not len(members):
            known = ", ".join(repr(self.names.name(t)) for t in stated[:SHOWN]) + ", …" * (len(stated) > SHOWN)
            raise UnknownTypeError(type, f"types are {known}")
        return members

    def ask(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """Answer questions; all names are looked up before anything is encoded, so that a bad one costs nothing."""
        return self._answer([self._plan(question) for question in questions])

    def ask_each(self, questions: Sequence[Question]) -> list[list[Answer] | SatkgcError]:
        """As `ask`, but a question that cannot be answered has its error in the place of answers."""
        plans = [self._plan_or_error(question) for question in questions]
        answers = iter(self._answer([plan for plan in plans if not isinstance(plan, SatkgcError)]))
        return [plan if isinstance(plan, SatkgcError) else next(answers) for plan in plans]

    def resolve(self, ref: EntityRef) -> EntityOrText:
        """An entity by id or name, or new text, if the model can read it."""
        if not isinstance(ref, str) and not self.model.reads_text and not (self.model.reads_facts and ref.facts):
            what = f"{type(self.model).__name__} does not read texts and knows nothing of the new entity {ref.name!r}"
            raise SatkgcError(what, remedy="ask about an entity of the graph, or use a text model")
        return self.names.resolve(ref)

    def check_query(self, query: Query) -> None:
        """Refuse a question of whose entity or relation the model has learnt nothing."""
        entity, directed = query
        if isinstance(entity, int) and entity < self.kg.num_entities:
            self.model.check_question(entity, directed)

    def check_ends(self, head: EntityOrText, tail: EntityOrText) -> None:
        """Refuse two entities if the model has learnt nothing of one, whatever the relation."""
        known = self.answerable(queries := self.relation_queries(head, tail))
        for end in (slice(self.kg.num_relations), slice(self.kg.num_relations, None)):
            if not known[end].any():
                self.check_query(queries[end][0])

    def answerable(self, queries: Sequence[Query]) -> Bool:
        """Of which queries the model has something to say; scores of others are as they were drawn.  # (q,)"""
        return self.model.knows_questions(self.questions(queries))

    def questions(self, queries: Sequence[Query]) -> Questions:
        """Queries as a model takes them: those about added entities and about new text carry the words."""
        new: dict[NewEntityText, int] = {}
        texts = [self._text(entity) for entity, _ in queries]
        entities = [
            entity if text is None else self.kg.num_entities + new.setdefault(text, len(new))
            for (entity, _), text in zip(queries, texts, strict=True)
        ]
        return Questions(np.array(entities, np.int32), np.array([d for _, d in queries], np.int32), tuple(new))

    def encode(self, queries: Sequence[Query], progress: bool = False) -> EncodedQuestions:
        """Queries as the retriever takes them."""
        return self.retriever.encode(self.questions(queries), progress)

    def known(self, query: Query) -> Int32:
        """Answers that the graph holds, from any split, or that facts of new entities say; ascending."""
        entity, directed = query
        if isinstance(entity, NewEntityText):
            return np.array([fact.entity for fact in entity.facts if fact.relation == directed], np.int32)
        old = self.kg.known_all.answers(entity, directed) if entity < self.kg.num_entities else NONE
        late = self.names.fact_answers.get((entity, directed))
        return old if late is None else np.union1d(old, np.array(late, np.int32))

    def is_known(self, head: EntityOrText, relation: int, tail: EntityOrText) -> bool:
        """Whether a triple is known; one of its ends may be new text with facts."""
        if isinstance(tail, int):
            return bool(np.isin(tail, self.known((head, relation))))
        return isinstance(head, int) and bool(np.isin(head, self.known((tail, relation + self.kg.num_relations))))

    def exclude(self, query: Query) -> Int32:
        """What is no new answer: those known, and the entity itself unless some entity has the relation to itself."""
        known, reflexive = self.known(query), query[1] % self.kg.num_relations in self._reflexive
        if reflexive or not isinstance(query[0], int):
            return known
        place = int(np.searchsorted(known, query[0]))  # np.union1d takes half a second for a hub
        return known if query[0] in known[place : place + 1] else np.insert(known, place, query[0])

    def competitors(
        self, queries: Sequence[Query], encoded: EncodedQuestions, k: int = COMPETITORS
    ) -> list[Competitors]:
        """The k best candidates of each query that are no known answer, nor the entity asked about itself."""
        exclude = [self.exclude(query) for query in queries]
        scores, ids = self.retriever.search(encoded, min(k, len(self.retriever)), exclude=exclude)
        return [Competitors(s[i >= 0], i[i >= 0]) for s, i in zip(scores, ids, strict=True)]

    def probabilities(self, scores: Float32, ids: Int32, competitors: Competitors, known: Int32) -> Float64 | None:
        """Of one query's candidates (n,); a known answer competes with the unknown ones as a missing one would."""
        calibration = self.calibration.entities
        if calibration is None or not len(scores):
            return None
        listed = np.isin(ids, competitors.ids[:COMPETITORS]) & ~np.isin(ids, known)
        return calibration.probability(scores[None], competitors.scores[None, :COMPETITORS], listed[None])[0]

    def relation_queries(self, head: EntityOrText, tail: EntityOrText) -> list[Query]:
        """What is asked about the relations that may join two entities: each of them, from both ends."""
        count = self.kg.num_relations
        return [(head, r) for r in range(count)] + [(tail, r + count) for r in range(count)]

    def score_relations(
        self, head: EntityOrText, tail: EntityOrText, encoded: EncodedQuestions
    ) -> tuple[Float64, Float64, Float64 | None]:
        """Scores, logits and probabilities of all relations (R,), from the encoded `relation_queries` of the two.

        Of a mixture, whose scores of different questions do not compare, the logits are the scores.
        """
        count, fitted = self.kg.num_relations, self.calibration.relations
        sides = (encoded.select(slice(count)), tail), (encoded.select(slice(count, None)), head)
        if len(fitted.by_tail) > 1:
            tails, heads = (fill_silence(self.retriever.expert_scores(*side)) for side in sides)  # (R, P)
        else:
            tails, heads = (self.retriever.score_one(*side)[:, None] for side in sides)
        logits = fitted.logits(tails, heads, log_shares(self.names.frequency))
        known = self.model.knows_questions(encoded.questions)
        logits[~(known[:count] & known[count:])] = -np.inf  # any score of theirs is as it was drawn
        with np.errstate(invalid="ignore"):  # where none is known
            probabilities = fitted.probability(logits) if fitted.questions else None
        scores = logits if len(fitted.by_tail) > 1 else (tails + heads)[:, 0] / 2
        return scores, logits, probabilities

    def _plan(self, question: Question) -> _EntityQuestion | _RelationQuestion:
        if question.relation is None:
            assert question.head is not None
            assert question.tail is not None
            among = range(self.kg.num_relations) if question.among is None else map(self.names.relation, question.among)
            head, tail = self.resolve(question.head), self.resolve(question.tail)
            self.check_ends(head, tail)
            return _RelationQuestion(question, head, tail, np.unique(np.array([*among], np.int32)))
        directed = self.names.relation(question.relation)
        if question.head is None:
            assert question.tail is not None
            query = (self.resolve(question.tail), directed + self.kg.num_relations)
        else:
            query = (self.resolve(question.head), directed)
        self.check_query(query)
        allow = self.names.allow(question.among, question.role)
        if question.type is not None:
            members = self.type_members(question.type)
            allow = members if allow is None else np.intersect1d(allow, members)
        return _EntityQuestion(question, query, allow)

    def _plan_or_error(self, question: Question) -> _EntityQuestion | _RelationQuestion | SatkgcError:
        try:
            return self._plan(question)
        except SatkgcError as error:
            return error

    def _answer(self, plans: Sequence[_EntityQuestion | _RelationQuestion]) -> list[list[Answer]]:
        queries = [self._queries(plan) for plan in plans]
        rows = {query: row for row, query in enumerate(dict.fromkeys(query for own in queries for query in own))}
        encoded = self.encode(list(rows))
        searched = {rows[plan.query]: plan.query for plan in plans if isinstance(plan, _EntityQuestion)}
        k = max(COMPETITORS, max((plan.question.k for plan in plans), default=1))
        competitors = self.competitors(list(searched.values()), encoded.select(list(searched)), k)
        by_row = dict(zip(searched, competitors, strict=True))
        answers = []
        for plan, own in zip(plans, queries, strict=True):
            places = [rows[query] for query in own]
            if isinstance(plan, _EntityQuestion):
                answers.append(self._entity_answers(plan, encoded.select(places), by_row[places[0]]))
            else:
                answers.append(self._relation_answers(plan, encoded.select(places)))
        return answers

    def _queries(self, plan: _EntityQuestion | _RelationQuestion) -> list[Query]:
        if isinstance(plan, _EntityQuestion):
            return [plan.query]
        return self.relation_queries(plan.head, plan.tail)  # all compete, whatever the question's filters leave

    def _text(self, entity: EntityOrText) -> NewEntityText | None:
        """The words of an entity that the graph does not have."""
        if isinstance(entity, NewEntityText):
            return entity
        late = entity - self.kg.num_entities
        return self.names.added[late].text if late >= 0 else None

    def _entity_answers(
        self, plan: _EntityQuestion, encoded: EncodedQuestions, competitors: Competitors
    ) -> list[Answer]:
        question, known = plan.question, self.known(plan.query)
        scores, ids = competitors.scores, competitors.ids
        if plan.allow is not None:
            scores, ids = self._best(encoded, question.k, plan.allow, self.exclude(plan.query))
        if question.objections == "drop":
            scores, ids = self._without_objections(plan, encoded)
        if not question.drop_known and len(known):
            more = known if plan.allow is None else known[np.isin(known, plan.allow)]
            known_scores, known_ids = self._best(encoded, question.k, more, NONE)
            scores, ids = np.concatenate([scores, known_scores]), np.concatenate([ids, known_ids])
        best = np.lexsort((ids, -scores))[: question.k]
        scores, ids = scores[best], ids[best]
        probabilities = self.probabilities(scores, ids, competitors, known)
        is_known = np.isin(ids, known)
        experts = expert_shares(self.retriever, encoded.questions, ids, competitors.ids, known)
        answers = []
        for i, entity in enumerate(ids):
            shown = self.names.describe(int(entity))
            probability = None if probabilities is None else float(probabilities[i])
            values = float(scores[i]), probability, bool(is_known[i]), experts[i]
            objection = self.objection(*self._triple(plan.query, int(entity)))
            answers.append(Answer(shown.id, shown.name, shown.description, *values, objection))
        return _above_thresholds(question, _pushed(question, answers))

    def _triple(self, query: Query, answer: int) -> tuple[EntityOrText, int, EntityOrText]:
        entity, directed = query
        size = self.kg.num_relations
        return (entity, directed, answer) if directed < size else (answer, directed - size, entity)

    def _without_objections(self, plan: _EntityQuestion, encoded: EncodedQuestions) -> tuple[Float32, Int32]:
        """The best candidates that there is no objection to; ever more are searched until there are enough."""
        k, exclude, sound = plan.question.k, self.exclude(plan.query), dict[int, bool]()
        depth = max(COMPETITORS, k)
        while True:
            scores, ids = self._best(encoded, min(depth, len(self.retriever)), plan.allow, exclude)
            for entity in ids.tolist():  # what a deeper search finds need not begin with what was found before
                if entity not in sound:
                    sound[entity] = self.objection(*self._triple(plan.query, entity)) is None
            kept = np.flatnonzero([sound[entity] for entity in ids.tolist()])
            if len(kept) >= k or len(ids) < depth or depth >= DEEPEST:
                return scores[kept], ids[kept]
            depth = min(4 * depth, DEEPEST)

    def _best(self, encoded: EncodedQuestions, k: int, allow: Int32 | None, exclude: Int32) -> tuple[Float32, Int32]:
        scores, ids = self.retriever.search(encoded, k, allow, [exclude])
        return scores[0][ids[0] >= 0], ids[0][ids[0] >= 0]

    def _relation_answers(self, plan: _RelationQuestion, encoded: EncodedQuestions) -> list[Answer]:
        scores, logits, probabilities = self.score_relations(plan.head, plan.tail, encoded)
        known = np.array([self.is_known(plan.head, r, plan.tail) for r in range(len(scores))], bool)
        left = plan.allow[~known[plan.allow]] if plan.question.drop_known else plan.allow
        answers = []
        left = left[np.isfinite(logits[left])]
        for r in left[np.argsort(-logits[left], kind="stable")].tolist():
            shown, words = self.names.describe_relation(r), self.kg.relations.description(r)
            probability = None if probabilities is None else float(probabilities[r])
            answer = Answer(shown.id, shown.name, words, float(scores[r]), probability, bool(known[r]))
            answers.append(replace(answer, objection=self.objection(plan.head, r, plan.tail)))
        if plan.question.objections == "drop":
            answers = [answer for answer in answers if answer.objection is None]
        # The order is not that of the scores, so that the thresholds come before the count.
        return _pushed(plan.question, _above_thresholds(plan.question, answers)[: plan.question.k])


def _pushed(question: Question, answers: list[Answer]) -> list[Answer]:
    """Contradictions after the other answers, if that is asked for."""
    if question.objections != "push":
        return answers
    return sorted(answers, key=lambda a: a.objection is not None and a.objection.kind in CONTRADICTIONS)


def _above_thresholds(question: Question, answers: list[Answer]) -> list[Answer]:
    score, probability = question.min_score, question.min_probability
    if score is not None:
        answers = [answer for answer in answers if answer.score >= score]
    if probability is not None:
        answers = [answer for answer in answers if answer.probability is not None and answer.probability >= probability]
    return answers
