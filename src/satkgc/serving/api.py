"""The routes under /api/v1: each checks its input by its schema and calls the completer."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request
from fastapi.security import HTTPBearer

from satkgc.completion import Answer, EntityDetail, Evidence
from satkgc.errors import SatkgcError
from satkgc.serving import schemas
from satkgc.serving.review import review_routes
from satkgc.serving.schemas import (
    Answers,
    AnswersOrError,
    BatchAnswers,
    BatchBody,
    EntityList,
    EvidenceBody,
    QuestionBody,
    RelationList,
    RelationSuggestions,
    ServiceInfo,
    SuggestRelationsBody,
    TypeList,
    entity_ref,
    one_line,
    problems,
    suggestions,
)
from satkgc.serving.service import Service, until_disconnect
from satkgc.serving.settings import MAX_ID, MAX_NAME, MAX_NEIGHBOURS, MAX_OFFSET, MAX_TYPES
from satkgc.version import __version__


def routes(service: Service) -> APIRouter:
    """The API over one service."""
    settings = service.settings
    # The gate checks the token; this only puts it into the description.
    token = [Depends(HTTPBearer(auto_error=False))] if settings.token else []
    checks = [Depends(_known_parameters), *token]
    router = APIRouter(prefix="/api/v1", responses=problems(settings, 422, 503), dependencies=checks)
    names, bodies = problems(settings, 404, 409), problems(settings, 400, 413)

    async def ask(questions: list[QuestionBody]) -> list[list[Answer] | BaseException]:
        results: list[list[Answer] | BaseException] = []
        for body in questions:
            service.metrics.questions.labels(body.asked).inc()
        completer = service.completer  # one version answers all of a request
        for part in service.batcher.split([(completer, body.question()) for body in questions]):
            futures: list[asyncio.Future[list[Answer]]] = []
            try:
                for question in part:
                    future = service.batcher.submit(question)  # Busy, where the queue is full
                    futures.append(asyncio.wrap_future(future))
                results += await asyncio.gather(*futures, return_exceptions=True)
            finally:
                for waiting in futures:  # also those before the one that was Busy
                    waiting.cancel()
        return results

    @router.post("/complete", summary="Complete a triple", responses={**names, **bodies})
    async def complete(
        request: Request, body: Annotated[QuestionBody, Body(openapi_examples=schemas.COMPLETE_EXAMPLES)]
    ) -> Answers:
        """Give two of head, relation and tail; get the third, ranked. Entities by id, by name, or as new text."""
        (result,) = await until_disconnect(request, ask([body]))
        if isinstance(result, BaseException):
            raise result
        return Answers(asked=body.asked, answers=result)

    @router.post("/batch", summary="Complete many triples", responses=bodies)
    async def batch(
        request: Request, body: Annotated[BatchBody, Body(openapi_examples=schemas.BATCH_EXAMPLES)]
    ) -> BatchAnswers:
        """Several questions at once; one that cannot be answered says why, and the others get their answers."""
        results = []
        for question, result in zip(body.questions, await until_disconnect(request, ask(body.questions)), strict=True):
            if isinstance(result, SatkgcError):
                near = suggestions(result)
                results.append(
                    AnswersOrError(asked=question.asked, answers=[], error=one_line(result), suggestions=near)
                )
            elif isinstance(result, BaseException):
                raise result
            else:
                results.append(AnswersOrError(asked=question.asked, answers=result))
        return BatchAnswers(results=results)

    @router.post("/evidence", summary="Why a triple", responses={**names, **bodies})
    def evidence(body: Annotated[EvidenceBody, Body(openapi_examples=schemas.EVIDENCE_EXAMPLES)]) -> Evidence:
        """Similar known triples, a shortest path between the two entities, and the texts that were compared."""
        head, tail = entity_ref(body.head), entity_ref(body.tail)
        return service.completer.evidence(head, body.relation, tail, body.k, body.asked)

    @router.get("/relations", summary="All relations")
    def relations() -> RelationList:
        """Every relation of the graph, most frequent first."""
        return RelationList(relations=service.completer.relation_list())

    @router.get("/types", summary="Types of entities")
    def types(limit: Annotated[int, Query(ge=1, le=MAX_TYPES)] = 200) -> TypeList:
        """The types that the graph states (rdf:type, labels of Neo4j), most frequent first."""
        return TypeList(types=service.completer.types()[:limit])

    @router.post("/fitting", include_in_schema=False)  # an older name of it
    @router.post("/suggest-relations", summary="Suggest relations for an entity", responses={**names, **bodies})
    def suggest_relations(
        body: Annotated[SuggestRelationsBody, Body(openapi_examples=schemas.SUGGEST_RELATIONS_EXAMPLES)],
    ) -> RelationSuggestions:
        """The relations that the most similar entities have: what makes sense to ask about an entity."""
        return RelationSuggestions(relations=service.completer.suggest_relations(entity_ref(body.entity), body.asked))

    @router.get("/entities", summary="Search entities")
    def entities(
        q: Annotated[str, Query(min_length=1, max_length=MAX_NAME, examples=["dog"])],
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
    ) -> EntityList:
        """Entities whose name or id begins with the text, or is similar to it."""
        return EntityList(entities=service.completer.search(q, limit))

    @router.get("/entity", summary="One entity", responses=names)
    def entity(
        id: Annotated[str, Query(min_length=1, max_length=MAX_ID, description="an id or a name", examples=["dog"])],
        limit: Annotated[int, Query(ge=1, le=MAX_NEIGHBOURS)] = 50,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="how many neighbours to skip")] = 0,
    ) -> EntityDetail:
        """An entity and one page of its `total` neighbours. The id is a parameter because ids may be URLs."""
        return service.completer.entity(id, limit, offset)

    @router.get("/info", summary="What is served")
    def info() -> ServiceInfo:
        """The graph and its size, the model and how good it is, of each relation too; a few entities to begin with."""
        review = settings.proposals is not None
        return ServiceInfo(**asdict(service.completer.info()), review=review, version=__version__)

    if settings.proposals is not None:
        router.include_router(review_routes(service))
    return router


async def _known_parameters(request: Request) -> None:
    """Refuse a parameter that the path does not have: a mistyped one would be ignored."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            remedy = f"this path has {', '.join(known)}" if known else "this path has none"
            raise SatkgcError(f"unknown parameter {name!r}", remedy=remedy)
