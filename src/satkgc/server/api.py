"""The routes under /api/v1: each checks its input by its schema and calls the completer."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query

from satkgc.completion import Answer, EntityDetail, Evidence
from satkgc.errors import SatkgcError
from satkgc.server import examples
from satkgc.server.fitting import fitting
from satkgc.server.info import describe
from satkgc.server.schemas import (
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
    Problem,
    Relations,
    entity_ref,
)
from satkgc.server.service import Service
from satkgc.server.settings import MAX_ID, MAX_NAME, MAX_NEIGHBOURS

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is not JSON"},
    401: {"model": Problem, "description": "No token, or a wrong one"},
    404: {"model": Problem, "description": "No entity or relation is called so; some that look like it"},
    409: {"model": Problem, "description": "Several have this name; the candidates"},
    413: {"model": Problem, "description": "The body is too large"},
    422: {"model": Problem, "description": "The request does not fit the schema"},
    503: {"model": Problem, "description": "Still loading, or more questions than can wait"},
}


def routes(service: Service) -> APIRouter:
    """The API over one service."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)

    def submit(ask: AskBody) -> Future[list[Answer]]:
        service.metrics.questions.labels(ask.asked).inc()
        return service.batcher.submit(ask.question())

    @router.post("/complete", summary="Complete a triple")
    async def complete(ask: Annotated[AskBody, Body(openapi_examples=examples.COMPLETE)]) -> Answers:
        """Give two of head, relation and tail; get the third, ranked. Entities by id, by name, or as new text."""
        return Answers(asked=ask.asked, answers=await asyncio.wrap_future(submit(ask)))

    @router.post("/batch", summary="Complete many triples")
    async def batch(body: Annotated[BatchBody, Body(openapi_examples=examples.BATCH)]) -> Batch:
        """Several questions at once; one that cannot be answered says why and does not hold up the others."""
        futures = [asyncio.wrap_future(submit(ask)) for ask in body.questions]
        results = []
        for ask, outcome in zip(body.questions, await asyncio.gather(*futures, return_exceptions=True), strict=True):
            if isinstance(outcome, SatkgcError):
                results.append(Outcome(asked=ask.asked, answers=[], error=str(outcome)))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                results.append(Outcome(asked=ask.asked, answers=outcome))
        return Batch(results=results)

    @router.post("/evidence", summary="Why a triple")
    def evidence(body: Annotated[EvidenceBody, Body(openapi_examples=examples.EVIDENCE)]) -> Evidence:
        """Similar known triples, a shortest path between the two entities, and the texts that were compared."""
        ends = entity_ref(body.head), entity_ref(body.tail)
        return service.completer.evidence(ends[0], body.relation, ends[1], body.k, body.asked)

    @router.get("/relations", summary="All relations")
    def relations() -> Relations:
        """Every relation of the graph, most frequent first."""
        return Relations(relations=service.completer.relation_list())

    @router.post("/fitting", summary="Relations that make sense for an entity")
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

    @router.get("/entity", summary="One entity")
    def entity(
        id: Annotated[str, Query(min_length=1, max_length=MAX_ID, description="an id or a name", examples=["dog"])],
        limit: Annotated[int, Query(ge=1, le=MAX_NEIGHBOURS)] = 50,
    ) -> EntityDetail:
        """An entity with its neighbours. The id is a parameter because ids may be URLs."""
        return service.completer.entity(id, limit)

    @router.get("/info", summary="What is served")
    def info() -> Info:
        """The graph's name and size, and a few entities to begin with."""
        return describe(service.completer)

    return router
