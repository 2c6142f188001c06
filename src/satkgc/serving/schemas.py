"""The bodies of the API: what a request may hold, and what an answer holds. Every text and number has a limit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from satkgc.completion import (
    AmbiguousNameError,
    Answer,
    Entity,
    NewEntity,
    Question,
    Relation,
    Role,
    UnknownNameError,
)
from satkgc.errors import SatkgcError
from satkgc.serving import settings as limit

Id = Annotated[str, Field(min_length=1, max_length=limit.MAX_ID, description="an id, or a name that only one has")]
Count = Annotated[int, BeforeValidator(lambda n: int(n) if isinstance(n, float) and n.is_integer() else n)]  # 5.0 is 5
Asked = Literal["head", "relation", "tail"]
_PARTS: tuple[Asked, Asked, Asked] = ("head", "relation", "tail")


def _exactly_two(schema: dict[str, Any]) -> None:
    """Say in the schema what the validator checks: two of the three parts are given, and a role is of entities."""
    given = {part: {"required": [part], "properties": {part: {"not": {"type": "null"}}}} for part in _PARTS}
    schema["oneOf"] = [
        {"allOf": [given[a] for a in _PARTS if a != asked], "properties": {asked: {"type": "null"}}} for asked in _PARTS
    ]
    schema["oneOf"][_PARTS.index("relation")]["properties"]["role"] = {"type": "null"}


class Body(BaseModel):
    """A request body: nothing beyond its fields, and no guessing at types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class NewText(Body):
    """An entity that the graph does not have, in words."""

    name: str = Field(min_length=1, max_length=limit.MAX_NAME, pattern=r"\S")
    description: str = Field("", max_length=limit.MAX_DESCRIPTION)
    facts: list[Fact] = Field([], max_length=limit.MAX_FACTS, description="what is known of it")


class Fact(Body):
    """What a new entity is joined to: it is the head or the tail of a relation, `other` the entity across."""

    relation: Id
    side: Literal["head", "tail"]
    other: Id


TEXT, NEW = "(text)", "(new)"  # which of the two was tried, within the place of an error
Ref = Annotated[
    Annotated[Id, Tag(TEXT)] | Annotated[NewText, Tag(NEW)],
    Discriminator(
        lambda given: TEXT if isinstance(given, str) else NEW if isinstance(given, dict) else None,
        custom_error_type="entity",
        custom_error_message='give an id or a name as text, or {"name": …, "description": …} for a new entity',
    ),
]


class RoleFilter(Body):
    """Only entities that are the head or tail of a relation, perhaps with a given entity at its other end."""

    relation: Id
    side: Literal["head", "tail"]
    other: Id | None = None


class AskBody(Body):
    """A question: two of head, relation and tail. The third is the answer."""

    model_config = ConfigDict(json_schema_extra=_exactly_two)

    head: Ref | None = None
    relation: Id | None = None
    tail: Ref | None = None
    k: Count = Field(10, ge=1, le=limit.MAX_K, description="how many answers")
    drop_known: bool = Field(False, description="leave out what the graph holds instead of marking it")
    among: list[Id] | None = Field(None, max_length=limit.MAX_AMONG, description="only these entities (or relations)")
    role: RoleFilter | None = None
    min_score: float | None = Field(None, ge=-1, le=1)
    min_probability: float | None = Field(None, ge=0, le=1)

    @model_validator(mode="after")
    def _two_parts(self) -> AskBody:
        if sum(getattr(self, part) is not None for part in _PARTS) != 2:
            raise ValueError("give two of head, relation and tail; the missing one is the answer")
        if self.relation is None and self.role is not None:
            raise ValueError("a role restricts entities, but the relation is asked for")
        return self

    @property
    def asked(self) -> Asked:
        """The part that is missing."""
        return next(part for part in _PARTS if getattr(self, part) is None)

    def question(self) -> Question:
        """The same as the completer takes it."""
        return Question(
            head=None if self.head is None else entity_ref(self.head),
            relation=self.relation,
            tail=None if self.tail is None else entity_ref(self.tail),
            k=self.k,
            drop_known=self.drop_known,
            among=None if self.among is None else tuple(self.among),
            role=None if self.role is None else Role(self.role.relation, self.role.side, self.role.other),
            min_score=self.min_score,
            min_probability=self.min_probability,
        )


class BatchBody(Body):
    """Several questions; each is answered or refused by itself."""

    questions: list[AskBody] = Field(min_length=1, max_length=limit.MAX_QUESTIONS)


class EvidenceBody(Body):
    """A triple, known or not, whose support is asked for."""

    head: Ref
    relation: Id
    tail: Ref
    k: Count = Field(5, ge=1, le=50, description="how many similar known triples")
    asked: Asked = Field("tail", description="the part that score, probability and texts take for the missing one")


class FittingBody(Body):
    """An entity, and which side of a statement is asked for."""

    entity: Ref
    asked: Literal["head", "tail"] = "tail"


def entity_ref(ref: str | NewText) -> str | NewEntity:
    """An id as it is, new text as the completer's object."""
    if isinstance(ref, str):
        return ref
    facts = tuple(Role(fact.relation, fact.side, fact.other) for fact in ref.facts)
    return NewEntity(ref.name, ref.description, facts=facts)


class Answers(BaseModel):
    """Ranked answers to one question."""

    asked: Asked
    answers: list[Answer]


class Outcome(Answers):
    """What came of one question of a batch."""

    error: str | None = Field(default=None, description="why this question has no answer")
    suggestions: list[Entity | Relation] = Field(
        default=[], description="names that look like an unknown or ambiguous one"
    )


class Batch(BaseModel):
    """Outcomes in the order of the questions."""

    results: list[Outcome]


class Relations(BaseModel):
    """All relations, most frequent first."""

    relations: list[Relation]


class FittingRelation(BaseModel):
    """A relation that entities like the given one have."""

    id: str
    name: str
    share: float = Field(description="of the entities most like it, how many have the relation", ge=0, le=1)


class FittingRelations(BaseModel):
    """Relations that make sense for an entity, best first."""

    relations: list[FittingRelation]


class Entities(BaseModel):
    """Entities that a search found, best first."""

    entities: list[Entity]


class Info(BaseModel):
    """What is served."""

    graph: str
    entities: int
    relations: int
    triples: int = Field(description="in the training graph")
    calibrated: bool = Field(description="whether answers carry probabilities")
    reads_facts: bool = Field(description="whether facts of a new entity reach the model: its texts name neighbours")
    examples: list[Entity] = Field(description="a few well-connected entities to begin with")
    version: str


class Health(BaseModel):
    """Whether the service can answer yet."""

    status: Literal["loading", "ready", "failed"]
    doing: str | None = Field(None, description="what loading is at, where it takes long")


class Problem(BaseModel):
    """What went wrong, in one line."""

    error: str
    suggestions: list[Entity | Relation] = Field([], description="names that look like an unknown or ambiguous one")


_PROBLEMS = {
    400: "The body is not JSON",
    401: "No token, or a wrong one",
    404: "No entity or relation is called so; some that look like it",
    409: "Several have this name; the candidates",
    413: "The body is too large",
    421: "The service does not answer to this name of the host",
    422: "The request does not fit the schema",
    500: "A fault of the service",
    503: "Still loading, stopping, or more questions than can wait",
}


def problems(settings: limit.Settings, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What may be answered instead, for the description: these, and what every request may meet."""
    gate = [401] if settings.token else [421] if settings.local_only else []
    return {status: {"model": Problem, "description": _PROBLEMS[status]} for status in (*gate, *statuses, 500)}


def suggestions(error: SatkgcError) -> list[Entity | Relation]:
    """The names that may have been meant, where the error is about one."""
    if isinstance(error, UnknownNameError):
        return [*error.suggestions]
    return [*error.candidates] if isinstance(error, AmbiguousNameError) else []


def one_line(error: object) -> str:
    """A message without its line breaks."""
    return " ".join(str(error).split())
