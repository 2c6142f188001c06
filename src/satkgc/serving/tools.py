"""What a language model can do with a run, as tools: a name, what it does in words, a schema of its arguments, a call.

The Model Context Protocol hands them out (`satkgc mcp`), and any program that calls a model with functions can
(docs/language-models.md). They take what the REST API takes, answer what it answers, and write nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from satkgc.completion import Answer, Doubt, EntityDetail, Evidence, Question
from satkgc.errors import SatkgcError
from satkgc.serving import settings as limits
from satkgc.serving.messages import field_path, invalid_value
from satkgc.serving.schemas import (
    Answers,
    Count,
    EntityList,
    EvidenceBody,
    Id,
    QuestionBody,
    RelationList,
    RelationSuggestions,
    RequestBody,
    SuggestRelationsBody,
    entity_ref,
)

if TYPE_CHECKING:
    from satkgc.completion import Completer

Ask = Callable[[Question], list[Answer]]
_TEXTS = ("name", "description", "text", "reason")  # ends of the names of fields that may be cut: no id is


class SearchBody(RequestBody):
    """A text, and how many entities."""

    text: str = Field(min_length=1, max_length=limits.MAX_NAME, description="the beginning of a name or id, or similar")
    limit: Annotated[Count, Field(ge=1, le=50)] = 10


class EntityLookupBody(RequestBody):
    """An entity, and which of its statements."""

    entity: Id
    limit: Annotated[Count, Field(ge=1, le=limits.MAX_NEIGHBOURS, description="how many statements")] = 20
    offset: Annotated[Count, Field(ge=0, le=limits.MAX_OFFSET, description="how many to skip")] = 0


class RelationsBody(RequestBody):
    """How many relations."""

    limit: Annotated[Count, Field(ge=1, le=limits.MAX_TYPES)] = 100


class CheckBody(RequestBody):
    """A statement about two entities of the graph."""

    head: Id
    relation: Id
    tail: Id


class DoubtsBody(RequestBody):
    """An entity whose statements are looked at, perhaps of one relation only."""

    entity: Id
    relation: Id | None = None
    n: Annotated[Count, Field(ge=1, le=limits.MAX_DOUBTS, description="how many")] = 10


class CheckedStatement(BaseModel):
    """Whether the graph has a statement, and what model and logic say of it."""

    known: bool = Field(description="whether the graph has it")
    verdict: Doubt


class DoubtList(BaseModel):
    """Statements of the graph, those doubted most first."""

    doubts: list[Doubt]


@dataclass(frozen=True)
class Tool:
    """One thing that a language model can do."""

    name: str
    title: str
    description: str
    body: type[RequestBody]
    reply: type[Any]
    call: Callable[[Completer, Ask, Any], Any]

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """Of the arguments. Rules between fields stand in the description: models' hosts refuse them at the top."""
        schema = self.body.model_json_schema()
        return {name: part for name, part in schema.items() if name not in ("oneOf", "anyOf", "allOf")}

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """Of the answer."""
        return self._reply.json_schema(mode="serialization")

    @cached_property
    def _reply(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.reply)

    def __call__(self, completer: Completer, arguments: Mapping[str, Any], ask: Ask | None = None) -> dict[str, Any]:
        """The answer as plain values for JSON, bounded in size. `ask` may answer questions in the completer's place."""
        try:
            body = self.body.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors()[0]
            raise SatkgcError(invalid_value(field_path(first["loc"]) or "arguments", dict(first))) from None
        reply = self.call(completer, ask or (lambda question: completer.ask([question])[0]), body)
        values: dict[str, Any] = _cut(self._reply.dump_python(reply, mode="json"))
        if (size := len(json.dumps(values, ensure_ascii=False))) > limits.MAX_REPLY:
            what = f"the answer has {size:,} characters, and at most {limits.MAX_REPLY:,} are sent"
            raise SatkgcError(what, remedy="ask for fewer")
        return values


def _cut(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _cut(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_cut(part) for part in value]
    if isinstance(value, str) and len(value) > limits.MAX_CELL and name.endswith(_TEXTS):
        return value[: limits.MAX_CELL - 1] + "…"
    return value


def _complete(completer: Completer, ask: Ask, body: QuestionBody) -> Answers:
    return Answers(asked=body.asked, answers=ask(body.question()))


def _evidence(completer: Completer, ask: Ask, body: EvidenceBody) -> Evidence:
    return completer.evidence(entity_ref(body.head), body.relation, entity_ref(body.tail), body.k, body.asked)


def _check(completer: Completer, ask: Ask, body: CheckBody) -> CheckedStatement:
    statement = body.head, body.relation, body.tail
    return CheckedStatement(known=completer.knows(*statement), verdict=completer.doubt(*statement))


def _doubts(completer: Completer, ask: Ask, body: DoubtsBody) -> DoubtList:
    relations = None if body.relation is None else [body.relation]
    return DoubtList(doubts=completer.check(body.n, relations, entity=body.entity, most=limits.MAX_CHECKED))


def _suggest(completer: Completer, ask: Ask, body: SuggestRelationsBody) -> RelationSuggestions:
    return RelationSuggestions(relations=completer.suggest_relations(entity_ref(body.entity), body.asked))


_ALL = (
    Tool(
        "search",
        "Search entities",
        "Find entities of the knowledge graph by name or id. Several may have one name: read the descriptions, and "
        "give the id of the one that is meant to the other tools.",
        SearchBody,
        EntityList,
        lambda completer, ask, body: EntityList(entities=completer.search(body.text, body.limit)),
    ),
    Tool(
        "entity",
        "Look up an entity",
        "What the graph says about one entity: description, types, and its statements, a page at a time. `direction` "
        "is out where the entity is the head of the statement, in where it is the tail.",
        EntityLookupBody,
        EntityDetail,
        lambda completer, ask, body: completer.entity(body.entity, body.limit, body.offset),
    ),
    Tool(
        "relations",
        "List relations",
        "The relations that statements of the graph can have, most frequent first.",
        RelationsBody,
        RelationList,
        lambda completer, ask, body: RelationList(relations=completer.relation_list()[: body.limit]),
    ),
    Tool(
        "suggest_relations",
        "Suggest relations for an entity",
        "The relations that make sense to ask about an entity: those that entities like it have.",
        SuggestRelationsBody,
        RelationSuggestions,
        _suggest,
    ),
    Tool(
        "complete",
        "Complete a statement",
        "Give two of head, relation and tail; get the third, best first: (head, relation, ?), (?, relation, tail) or "
        "(head, ?, tail). `known` answers stand in the graph; the others are predictions, with the probability of "
        "being right where the model is calibrated, and an objection where the graph's logic speaks against one. "
        "Predictions are no facts: say so when you pass them on. An entity that the graph does not have is "
        '{"name": …, "description": …}.',
        QuestionBody,
        Answers,
        _complete,
    ),
    Tool(
        "evidence",
        "Why a statement",
        "What supports a statement, in the graph or not: similar known statements, a shortest path between the two "
        "entities, the paths that the model follows, and the texts that it compared.",
        EvidenceBody,
        Evidence,
        _evidence,
    ),
    Tool(
        "check",
        "Check a statement",
        "How likely one statement about two entities of the graph is. It is asked for from both ends as if the graph "
        "did not have it; the probability is that of the less likely end. Beside it is what the model would rather "
        "say, and the contradiction, if it contradicts other statements. A low probability is a reason to look, no "
        "proof.",
        CheckBody,
        CheckedStatement,
        _check,
    ),
    Tool(
        "doubts",
        "Doubtful statements about an entity",
        "Of what the graph says about one entity, the statements that are most likely wrong: contradictions first, "
        "then what the model finds least likely. Candidates for a look, no verdicts.",
        DoubtsBody,
        DoubtList,
        _doubts,
    ),
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}


def call_tool(completer: Completer, name: str, arguments: Mapping[str, Any], ask: Ask | None = None) -> dict[str, Any]:
    """Call a tool by its name; what is wrong with name or arguments is a `SatkgcError` of one line."""
    if name not in TOOLS:
        raise SatkgcError(f"no tool is called {name[: limits.MAX_NAME]!r}", remedy=f"there are {', '.join(TOOLS)}")
    return TOOLS[name](completer, arguments, ask)
