"""The routes under /api/v1: each checks its input by its schema and calls the completer."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.security import HTTPBearer

from satkgc.completion import Answer, EntityDetail, Evidence
from satkgc.errors import SatkgcError
from satkgc.serving import examples
from satkgc.serving.fitting import fitting
from satkgc.serving.info import describe
from satkgc.serving.schemas import (
    Answers,
    AskBody,
    Batch,
    BatchBody,
    Entities,
    EvidenceBody,
    FittingBody,
    FittingRelations,
    Info,
    Outcome,
    Relations,
    entity_ref,
    one_line,
    problems,
    suggestions,
)
from satkgc.serving.service import Service
from satkgc.serving.settings import MAX_ID, MAX_NAME, MAX_NEIGHBOURS, MAX_OFFSET
from satkgc.serving.waiting import unless_gone


def routes(service: Service) -> APIRouter:
    """The API over one service."""
    settings = service.settings
    # The gate checks the token; this only puts it into the description.
    token = [Depends(HTTPBearer(auto_error=False))] if settings.token else []
    checks = [Depends(_known_parameters), *token]
    router = APIRouter(prefix="/api/v1", responses=problems(settings, 422, 503), dependencies=checks)
    names, bodies = problems(settings, 404, 409), problems(settings, 400, 413)

    async def answers(asks: list[AskBody]) -> list[list[Answer] | BaseException]:
        outcomes: list[list[Answer] | BaseException] = []
        for ask in asks:
            service.metrics.questions.labels(ask.asked).inc()
        for part in service.batcher.slices([ask.question() for ask in asks]):
            futures: list[asyncio.Future[list[Answer]]] = []
            try:
                for question in part:
                    waits = service.batcher.submit(question)
                    futures.append(asyncio.wrap_future(waits))
                outcomes += await asyncio.gather(*futures, return_exceptions=True)
            finally:
                for future in futures:  # where the queue was full before the slice was in it
                    future.cancel()
        return outcomes

    @router.post("/complete", summary="Complete a triple", responses={**names, **bodies})
    async def complete(request: Request, ask: Annotated[AskBody, Body(openapi_examples=examples.COMPLETE)]) -> Answers:
        """Give two of head, relation and tail; get the third, ranked. Entities by id, by name, or as new text."""
        (outcome,) = await unless_gone(request, answers([ask]))
        if isinstance(outcome, BaseException):
            raise outcome
        return Answers(asked=ask.asked, answers=outcome)

    @router.post("/batch", summary="Complete many triples", responses=bodies)
    async def batch(request: Request, body: Annotated[BatchBody, Body(openapi_examples=examples.BATCH)]) -> Batch:
        """Several questions at once; one that cannot be answered says why and does not hold up the others."""
        results = []
        for ask, outcome in zip(body.questions, await unless_gone(request, answers(body.questions)), strict=True):
            if isinstance(outcome, SatkgcError):
                near = suggestions(outcome)
                results.append(Outcome(asked=ask.asked, answers=[], error=one_line(outcome), suggestions=near))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                results.append(Outcome(asked=ask.asked, answers=outcome))
        return Batch(results=results)

    @router.post("/evidence", summary="Why a triple", responses={**names, **bodies})
    def evidence(body: Annotated[EvidenceBody, Body(openapi_examples=examples.EVIDENCE)]) -> Evidence:
        """Similar known triples, a shortest path between the two entities, and the texts that were compared."""
        ends = entity_ref(body.head), entity_ref(body.tail)
        return service.completer.evidence(ends[0], body.relation, ends[1], body.k, body.asked)

    @router.get("/relations", summary="All relations")
    def relations() -> Relations:
        """Every relation of the graph, most frequent first."""
        return Relations(relations=service.completer.relation_list())

    @router.post("/fitting", summary="Relations that make sense for an entity", responses={**names, **bodies})
    def fitting_relations(body: Annotated[FittingBody, Body(openapi_examples=examples.FITTING)]) -> FittingRelations:
        """Those that the entities most like it have: what to ask when all relations are asked for."""
        return FittingRelations(relations=fitting(service.completer, entity_ref(body.entity), body.asked))

    @router.get("/entities", summary="Search entities")
    def entities(
        q: Annotated[str, Query(min_length=1, max_length=MAX_NAME, examples=["dog"])],
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> Entities:
        """Entities whose name or id begins with the text, or looks like it."""
        return Entities(entities=service.completer.search(q, limit))

    @router.get("/entity", summary="One entity", responses=names)
    def entity(
        id: Annotated[str, Query(min_length=1, max_length=MAX_ID, description="an id or a name", examples=["dog"])],
        limit: Annotated[int, Query(ge=1, le=MAX_NEIGHBOURS)] = 50,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="how many neighbours to pass over")] = 0,
    ) -> EntityDetail:
        """An entity with its neighbours, of `total` a page. The id is a parameter because ids may be URLs."""
        return service.completer.entity(id, limit, offset)

    @router.get("/info", summary="What is served")
    def info() -> Info:
        """The graph's name and size, and a few entities to begin with."""
        return describe(service.completer)

    return router


async def _known_parameters(request: Request) -> None:
    """Refuse a parameter that the path does not have: a mistyped one would be passed over."""
    has = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in has:
            remedy = f"this path has {', '.join(has)}" if has else "this path has none"
            raise SatkgcError(f"unknown parameter {name!r}", remedy=remedy)
