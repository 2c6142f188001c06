"""The bodies of the API: requests, answers, examples. Every text and number has a limit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi.openapi.models import Example
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from satkgc.completion import (
    AmbiguousNameError,
    Answer,
    CandidateRecall,
    Entity,
    EntityType,
    ModelInfo,
    NewEntity,
    Objections,
    Quality,
    Question,
    Relation,
    RelationShare,
    Role,
    RunVersion,
    TriplePart,
    UnknownNameError,
)
from satkgc.errors import SatkgcError
from satkgc.serving import settings as limit

Id = Annotated[str, Field(min_length=1, max_length=limit.MAX_ID, description="an id, or a unique name")]
Count = Annotated[int, BeforeValidator(lambda n: int(n) if isinstance(n, float) and n.is_integer() else n)]  # 5.0 is 5
PARTS: tuple[TriplePart, TriplePart, TriplePart] = ("head", "relation", "tail")


# Requests


def _exactly_two(schema: dict[str, Any]) -> None:
    """Say in the schema what the validator checks: two of the three parts are set, and a role is about entities."""
    present = {part: {"required": [part], "properties": {part: {"not": {"type": "null"}}}} for part in PARTS}
    schema["oneOf"] = [
        {"allOf": [present[part] for part in PARTS if part != asked], "properties": {asked: {"type": "null"}}}
        for asked in PARTS
    ]
    schema["oneOf"][PARTS.index("relation")]["properties"] |= {"role": {"type": "null"}, "type": {"type": "null"}}


class RequestBody(BaseModel):
    """No field beyond those of the schema, and no conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class NewEntityBody(RequestBody):
    """An entity that the graph does not have, in words."""

    name: str = Field(min_length=1, max_length=limit.MAX_NAME, pattern=r"\S")
    description: str = Field("", max_length=limit.MAX_DESCRIPTION)
    facts: list[FactBody] = Field([], max_length=limit.MAX_FACTS, description="what is known about it")


class FactBody(RequestBody):
    """A triple of a new entity: it is the head or the tail of the relation, `other` is the entity at the other end."""

    relation: Id
    side: Literal["head", "tail"]
    other: Id


TEXT, NEW = "(text)", "(new)"  # in the location of an error: which of the two forms of an entity was tried
EntityBody = Annotated[
    Annotated[Id, Tag(TEXT)] | Annotated[NewEntityBody, Tag(NEW)],
    Discriminator(
        lambda value: TEXT if isinstance(value, str) else NEW if isinstance(value, dict) else None,
        custom_error_type="entity",
        custom_error_message='give an id or a name as text, or {"name": …, "description": …} for a new entity',
    ),
]


class RoleBody(RequestBody):
    """Only entities that are the head or tail of a relation, perhaps with one entity at its other end."""

    relation: Id
    side: Literal["head", "tail"]
    other: Id | None = None


class QuestionBody(RequestBody):
    """A question: two of head, relation and tail. The third is the answer."""

    model_config = ConfigDict(json_schema_extra=_exactly_two)

    head: EntityBody | None = None
    relation: Id | None = None
    tail: EntityBody | None = None
    k: Count = Field(10, ge=1, le=limit.MAX_K, description="how many answers")
    drop_known: bool = Field(False, description="leave out what the graph holds instead of marking it")
    among: list[Id] | None = Field(None, max_length=limit.MAX_AMONG, description="only these entities (or relations)")
    role: RoleBody | None = None
    type: Id | None = Field(None, description="only entities of this type, by its id or name; see /types")
    objections: Objections = Field(
        "push",
        description="answers that the graph's logic speaks against: push them behind the others, only mark them, or "
        "drop them and what the graph says already",
    )
    min_score: float | None = Field(None, description="in the model's own scale; a text model's is a cosine")
    min_probability: float | None = Field(None, ge=0, le=1)

    @model_validator(mode="after")
    def _two_parts(self) -> QuestionBody:
        if sum(getattr(self, part) is not None for part in PARTS) != 2:
            raise ValueError("give two of head, relation and tail; the missing one is the answer")
        if self.relation is None and not (self.role is None and self.type is None):
            raise ValueError("a role or type restricts entities, but the relation is asked for")
        return self

    @property
    def asked(self) -> TriplePart:
        """The part that is missing."""
        return next(part for part in PARTS if getattr(self, part) is None)

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
            type=self.type,
            objections=self.objections,
            min_score=self.min_score,
            min_probability=self.min_probability,
        )


class BatchBody(RequestBody):
    """Several questions; each is answered or refused by itself."""

    questions: list[QuestionBody] = Field(min_length=1, max_length=limit.MAX_QUESTIONS)


class EvidenceBody(RequestBody):
    """A triple, known or not, whose support is asked for."""

    head: EntityBody
    relation: Id
    tail: EntityBody
    k: Count = Field(5, ge=1, le=50, description="how many similar known triples")
    asked: TriplePart = Field("tail", description="the part that score, probability and texts treat as missing")


class SuggestRelationsBody(RequestBody):
    """An entity, and which end of a triple is missing."""

    entity: EntityBody
    asked: Literal["head", "tail"] = "tail"


def entity_ref(body: str | NewEntityBody) -> str | NewEntity:
    """An id as it is, a new entity as the completer's object."""
    if isinstance(body, str):
        return body
    facts = tuple(Role(fact.relation, fact.side, fact.other) for fact in body.facts)
    return NewEntity(body.name, body.description, facts=facts)


# Answers


class Answers(BaseModel):
    """Ranked answers to one question."""

    asked: TriplePart
    answers: list[Answer]


class AnswersOrError(Answers):
    """The answers to one question of a batch, or why it has none."""

    error: str | None = Field(default=None, description="why this question has no answer")
    suggestions: list[Entity | Relation] = Field(default=[], description="names similar to an unknown or ambiguous one")


class BatchAnswers(BaseModel):
    """Results in the order of the questions."""

    results: list[AnswersOrError]


class RelationList(BaseModel):
    """All relations, most frequent first."""

    relations: list[Relation]


class TypeList(BaseModel):
    """The types that the graph states of its entities, most frequent first."""

    types: list[EntityType]


class RelationSuggestions(BaseModel):
    """Relations that make sense for an entity, best first, each with the share of similar entities that have it."""

    relations: list[RelationShare]


class EntityList(BaseModel):
    """Entities that match a search, best first."""

    entities: list[Entity]


class ServiceInfo(BaseModel):
    """What is served."""

    graph: str
    entities: int
    relations: int
    triples: int = Field(description="in the training graph")
    calibrated: bool = Field(description="whether answers have probabilities")
    reads_facts: bool = Field(description="whether the model reads the facts of a new entity")
    examples: list[Entity] = Field(description="a few well-connected entities to begin with")
    model: ModelInfo = Field(description="which model this is")
    quality: Quality | None = Field(description="filtered ranks of the validation triples, of each relation too")
    candidates: CandidateRecall | None = Field(
        description="of a fused model on a large graph: how often what should be found is among its candidates"
    )
    run_version: RunVersion = Field(description="1 as it was trained, one more with every `satkgc update`")
    review: bool = Field(description="whether there are proposals to decide on")
    version: str = Field(description="of satkgc")


class Health(BaseModel):
    """Whether the service can answer yet."""

    status: Literal["loading", "ready", "failed"]
    doing: str | None = Field(None, description="the progress of a load that takes long")


class Problem(BaseModel):
    """What went wrong, in one line."""

    error: str
    suggestions: list[Entity | Relation] = Field([], description="names similar to an unknown or ambiguous one")


_PROBLEMS = {
    400: "The body is not JSON",
    401: "No token, or a wrong one",
    403: "Another web page has sent it",
    404: "No entity, relation or type has this name; similar ones",
    409: "Several have this name; the candidates",
    413: "The body is too large",
    421: "The service does not answer to this host name",
    422: "The request does not fit the schema",
    500: "An internal error",
    503: "Still loading, stopping, or too busy",
}


def problems(settings: limit.ServiceSettings, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Other answers for the OpenAPI description: these, and those that every request may get."""
    gate = [401] if settings.token else [421] if settings.local_only else []
    return {status: {"model": Problem, "description": _PROBLEMS[status]} for status in (*gate, *statuses, 500)}


def suggestions(error: SatkgcError) -> list[Entity | Relation]:
    """The names that may be meant, where the error is about a name."""
    if isinstance(error, UnknownNameError):
        return [*error.suggestions]
    return [*error.candidates] if isinstance(error, AmbiguousNameError) else []


def one_line(error: object) -> str:
    """A message without its line breaks."""
    return " ".join(str(error).split())


# Examples in the OpenAPI description, one for each way to ask

_NEW_DOG = {"name": "labradoodle", "description": "a dog bred from a labrador and a poodle"}
COMPLETE_EXAMPLES: dict[str, Example] = {
    "tail": {"summary": "(dog, hypernym, ?)", "value": {"head": "dog", "relation": "hypernym", "k": 5}},
    "head": {
        "summary": "(?, hypernym, dog), without what the graph has",
        "value": {"relation": "hypernym", "tail": "dog", "drop_known": True},
    },
    "relation": {"summary": "(dog, ?, canine)", "value": {"head": "dog", "tail": "canine"}},
    "new": {
        "summary": "an entity that the graph does not have",
        "value": {"head": _NEW_DOG, "relation": "hypernym"},
    },
}
BATCH_EXAMPLES: dict[str, Example] = {
    "two": {
        "summary": "two questions",
        "value": {"questions": [{"head": "dog", "relation": "hypernym"}, {"relation": "hypernym", "tail": "dog"}]},
    }
}
EVIDENCE_EXAMPLES: dict[str, Example] = {
    "known": {"summary": "why a dog is a canine", "value": {"head": "dog", "relation": "hypernym", "tail": "canine"}},
    "new": {"summary": "for a new entity", "value": {"head": _NEW_DOG, "relation": "hypernym", "tail": "dog"}},
}
SUGGEST_RELATIONS_EXAMPLES: dict[str, Example] = {
    "tail": {"summary": "relations from a dog to something", "value": {"entity": "dog"}},
    "head": {"summary": "relations from something to a dog", "value": {"entity": "dog", "asked": "head"}},
}
