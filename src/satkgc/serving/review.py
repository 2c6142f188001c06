"""The routes of a review: proposals to decide on, and the decisions. They are there where the service has proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Body, Query
from fastapi.openapi.models import Example
from pydantic import BaseModel, Field

from satkgc.kg import Verdict
from satkgc.serving.queue import Progress, Proposal, RelationCount
from satkgc.serving.schemas import Id, RequestBody, problems
from satkgc.serving.settings import MAX_ID, MAX_OFFSET, MAX_PROPOSALS

if TYPE_CHECKING:
    from satkgc.serving.service import Service


class ProposalList(BaseModel):
    """A page of proposals, and how far the review is."""

    proposals: list[Proposal]
    total: int = Field(description="of this verdict and relation")
    progress: Progress = Field(description="over all proposals")
    relations: list[RelationCount]


class DecisionBody(RequestBody):
    """What a person says of a proposal: open takes back what was said before."""

    head: Id
    relation: Id
    tail: Id
    verdict: Verdict


class Decided(BaseModel):
    """How far the review is, after a decision that is on the disk."""

    progress: Progress
    relations: list[RelationCount]


_EXAMPLES: dict[str, Example] = {
    "reject": {
        "summary": "a statement that is wrong",
        "value": {"head": "dog", "relation": "hypernym", "tail": "feline", "verdict": "reject"},
    }
}


def review_routes(service: Service) -> APIRouter:
    """Below the prefix of the API."""
    router = APIRouter()

    @router.get("/proposals", summary="Proposals to decide on")
    def proposals(
        verdict: Annotated[Literal["all", Verdict], Query(description="only those with it")] = "open",
        relation: Annotated[str | None, Query(min_length=1, max_length=MAX_ID, description="only this, by id")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PROPOSALS)] = 50,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="how many to skip")] = 0,
    ) -> ProposalList:
        """The most likely statements that the graph does not have; what was decided already, the last first."""
        review = service.review
        found = review.select(verdict, relation)
        page = found[offset : offset + limit]
        return ProposalList(proposals=page, total=len(found), progress=review.progress(), relations=review.relations())

    @router.post("/decisions", summary="Decide on a proposal", responses=problems(service.settings, 400, 403, 413))
    def decide(body: Annotated[DecisionBody, Body(openapi_examples=_EXAMPLES)]) -> Decided:
        """Accept, reject or skip a proposal, or take that back. The last decision counts; it is kept in the run."""
        service.review.decide((body.head, body.relation, body.tail), body.verdict)
        return Decided(progress=service.review.progress(), relations=service.review.relations())

    return router
