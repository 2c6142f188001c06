"""Questions to a completer and its answers: plain values, ready for JSON by `dataclasses.asdict`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

from satkgc.errors import SatkgcError

MAX_K = 1000  # answers to one question; a longer list is what `propose` is for


def _strings(**parts: object) -> None:
    """Refuse what is no text: questions come from files and from the network."""
    for name, part in parts.items():
        if not isinstance(part, str):
            raise SatkgcError(f"{name} is {part!r}", remedy="give it as text")


@dataclass(frozen=True, slots=True)
class Role:
    """A type of entity, defined by the graph itself: those that are the head or the tail of a relation.

    `Role("profession", "head")` is every entity with a known profession; `Role("instance of", "head", "human")`
    only those whose known tail is `human`. All splits count.
    """

    relation: str
    side: Literal["head", "tail"]
    other: str | None = None  # the entity at the other end, by id or name

    def __post_init__(self) -> None:
        _strings(relation=self.relation, other=self.other or "")
        if self.side not in ("head", "tail"):
            raise SatkgcError(f"the side of a role is {self.side!r}", remedy="say head or tail")


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity that the graph never had, in words. `id` is only needed to add it under an id of one's own.

    `facts` are what is known of it: `Role("hypernym", "head", "dog.n.01")` says that (it, hypernym, dog.n.01). They are
    read where the run's texts name neighbours, and count as known answers.
    """

    name: str
    description: str = ""
    id: str | None = None
    facts: tuple[Role, ...] = ()

    def __post_init__(self) -> None:
        _strings(name=self.name, description=self.description, id=self.id or "")
        remedy = 'give a list of Role(relation, "head" or "tail", other entity)'
        try:
            object.__setattr__(self, "facts", tuple(self.facts))  # from any iterable; what it holds can be compared
        except TypeError as error:
            raise SatkgcError(f"the facts of {self.name!r} are {self.facts!r}", remedy=remedy) from error
        for fact in self.facts:
            if not isinstance(fact, Role) or fact.other is None:
                raise SatkgcError(f"{fact!r} is no fact", remedy=remedy)


_KINDS = {"k": "a whole number", "drop_known": "true or false", "role": "a Role", "type": "a text"}
_KINDS |= dict.fromkeys(("min_score", "min_probability"), "a number")
ObjectionKind = Literal["mirrored", "implied", "cyclic", "second_value", "wrong_type"]
Objections = Literal["push", "mark", "drop"]  # what is done with answers that there are objections to
TriplePart = Literal["head", "relation", "tail"]  # the part of a triple that is missing
EntityRef = str | NewEntity  # an id, an exact name, or new text


@dataclass(frozen=True, slots=True)
class Question:
    """Two of head, relation and tail; the third is asked for. The rest narrows the answers."""

    head: EntityRef | None = None
    relation: str | None = None
    tail: EntityRef | None = None
    k: int = 10
    drop_known: bool = False  # leave triples of the graph out instead of marking them
    among: Sequence[str] | None = None  # only these entities (or relations, where the relation is asked for)
    role: Role | None = None  # only entities that are at this end of a relation
    type: str | None = None  # only entities of this type, by its id or name
    objections: Objections = "push"  # contradictions come last and are marked; "mark" leaves the order, "drop" none
    min_score: float | None = None
    min_probability: float | None = None

    def __post_init__(self) -> None:
        ends = {name: end for name, end in (("head", self.head), ("tail", self.tail)) if not isinstance(end, NewEntity)}
        _strings(**{name: part or "" for name, part in {**ends, "relation": self.relation}.items()})
        if self.among is not None:
            if isinstance(self.among, str):
                raise SatkgcError("among is a text", remedy="give a list of ids or names")
            object.__setattr__(self, "among", tuple(self.among))
            for entity in self.among:
                _strings(among=entity)
        real = Real | None
        kinds = {"k": Integral, "drop_known": bool, "role": Role | None, "type": str | None}
        kinds |= {"min_score": real, "min_probability": real}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise SatkgcError(f"{name} is {value!r}", remedy=f"give {_KINDS[name]}")
        for name in ("min_score", "min_probability"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SatkgcError(f"{name} is {value!r}", remedy="give a number that is finite")
        if self.min_probability is not None and not 0 <= self.min_probability <= 1:
            raise SatkgcError(f"min_probability is {self.min_probability!r}", remedy="give one from 0 to 1")
        parts = sum(part is not None for part in (self.head, self.relation, self.tail))
        if parts != 2:
            raise SatkgcError(
                "a question gives two of head, relation and tail",
                remedy=f"{'leave one out' if parts == 3 else 'name two'}; the missing one is the answer",
            )
        if not 1 <= self.k <= MAX_K:
            raise SatkgcError(f"k is {self.k}", remedy=f"ask for 1 to {MAX_K} answers")
        if self.objections not in get_args(Objections):
            raise SatkgcError(f"objections is {self.objections!r}", remedy=f"say {', '.join(get_args(Objections))}")
        for name in ("role", "type"):
            if self.relation is None and getattr(self, name) is not None:
                what = f"a {name} restricts entities, but the relation is asked for"
                raise SatkgcError(what, remedy=f"leave the {name} out")


@dataclass(frozen=True, slots=True)
class ExpertShare:
    """What one expert of a fused model has to do with an answer.

    Each expert lifts the answer above the best other candidates, or pulls it below them: by its part of the answer's
    score, less the mean of its parts of theirs. The share is that, by the sum of the sizes of all experts': shares of
    0.7, 0.2 and -0.1 say that two are for it, the first most, and one is against it.
    """

    name: str
    share: float | None  # None: it has nothing to say about this question or this answer
    rank: int | None  # the answer's by this expert alone, without known answers; None likewise


@dataclass(frozen=True, slots=True)
class Objection:
    """What the graph's own logic says against an answer that it does not hold.

    *mirrored* and *implied* ones it says already, in other words; the others contradict it: *cyclic* in a hierarchy,
    the *second_value* of a relation that gives one, an entity of a *wrong_type*.
    """

    kind: ObjectionKind
    reason: str  # in words


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `known` says whether the graph holds the triple. A run without calibration has no probability."""

    id: str
    name: str
    description: str
    score: float
    """The model's: a text model's is a cosine, -1 to 1; of a relation, the mean over both directions, or the weighted
    sum of what a mixture's experts say."""
    probability: float | None
    known: bool
    experts: tuple[ExpertShare, ...] = ()  # of a fused model, where an entity is asked for
    objection: Objection | None = None  # what speaks against it, or why it is nothing new; none to a known one


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as a search finds it."""

    id: str
    name: str
    description: str
    degree: int  # distinct neighbours in the training graph; of an entity that was added, by its facts


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type that the graph states of entities."""

    id: str
    name: str
    entities: int  # that it is stated of


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the graph and how many training triples have it."""

    id: str
    name: str
    triples: int


@dataclass(frozen=True, slots=True)
class RelationShare:
    """A relation that entities like some entity have."""

    id: str
    name: str
    share: float  # of the entities most like it, how many have the relation


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One triple at an entity, seen from it: `direction` is "out" where the entity is the head, else "in"."""

    relation: str
    relation_name: str
    direction: Literal["out", "in"]
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class EntityDetail:
    """An entity with its neighbours, some of `total` triples."""

    id: str
    name: str
    description: str
    degree: int
    total: int
    neighbours: tuple[Neighbour, ...]
    types: tuple[EntityType, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarTriple:
    """A known triple of the same relation whose head is close to the question's."""

    head: str
    head_name: str
    relation: str
    tail: str
    tail_name: str
    similarity: float  # cosine of the two heads' entity vectors


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a path from `source` to `target`; "out" where the triple is (source, relation, target), else "in"."""

    source: str
    source_name: str
    relation: str
    relation_name: str
    direction: Literal["out", "in"]
    target: str
    target_name: str


@dataclass(frozen=True, slots=True)
class StrongPath:
    """A path from the question's entity to the answer that a path model's score rests on; never the triple itself."""

    steps: tuple[Step, ...]
    weight: float  # about what that model's score of the answer would lose without these edges; above zero


@dataclass(frozen=True, slots=True)
class Evidence:
    """What supports (head, relation, tail), from the training graph and the texts."""

    asked: TriplePart  # what score, probability and texts take for missing; for a relation the texts are the tail's
    known: bool
    score: float  # as in the list of answers
    probability: float | None  # likewise
    similar: tuple[SimilarTriple, ...]
    path: tuple[Step, ...] | None  # None where the two are not connected; never the triple itself
    query_text: str  # what the model read for the question; nothing where it reads no texts
    entity_text: str  # what it read for the answer
    experts: tuple[ExpertShare, ...] = ()  # of a fused model; for a relation those of the tail
    strong_paths: tuple[StrongPath, ...] = ()  # of a path model, or of a fused one's path expert; strongest first
    objection: Objection | None = None  # as in the list of answers


@dataclass(frozen=True, slots=True)
class DoubtfulEnd:
    """One end of a statement, asked for as if the graph did not have the statement, and what the model says instead."""

    score: float
    rank: int  # among all entities that are no other known answer, from 1
    probability: float | None
    instead: str | None  # the best answer that the graph does not have and its types allow
    instead_name: str | None
    instead_probability: float | None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A statement of the graph, and what the model and the graph's logic say against it."""

    head: str
    head_name: str
    relation: str
    relation_name: str
    tail: str
    tail_name: str
    probability: float | None  # of its less likely end
    asked_tail: DoubtfulEnd
    asked_head: DoubtfulEnd
    objection: Objection | None  # a contradiction to other statements
    reason: str  # in words


class UnknownNameError(SatkgcError):
    """No entity or relation is called so; `suggestions` are ids and names that look like it."""

    def __init__(self, kind: str, text: str, suggestions: list[Entity] | list[Relation]) -> None:
        self.suggestions = suggestions
        near = ", ".join(f"{s.name!r} ({s.id})" if s.name != s.id else repr(s.id) for s in suggestions)
        super().__init__(
            f"unknown {kind} {text!r}", remedy=f"did you mean {near}?" if near else f"no {kind} looks like it"
        )


class UnknownTypeError(SatkgcError):
    """No entity is of this type."""

    def __init__(self, type: str, remedy: str) -> None:
        super().__init__(f"no entity is of the type {type!r}", remedy=remedy)


class AmbiguousNameError(SatkgcError):
    """Several entities or relations have this name; `candidates` lists them: say which by its id."""

    def __init__(self, kind: str, text: str, candidates: list[Entity] | list[Relation], total: int) -> None:
        self.candidates = candidates
        some = ", ".join(
            f"{c.id} ({c.description[:60]})" if isinstance(c, Entity) and c.description else c.id for c in candidates
        )
        more = f", and {total - len(candidates)} more" if total > len(candidates) else ""
        super().__init__(
            f"{total} {'entities are' if kind == 'entity' else 'relations are'} called {text!r}",
            remedy=f"give the id of one: {some}{more}",
        )
