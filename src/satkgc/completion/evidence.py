"""Why an answer: similar known triples, a shortest path, and the texts that the model compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SimilarTriple:
    """A known triple of the same relation whose head is close to the asked head."""

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
class Evidence:
    """What supports (head, relation, tail), from the training graph and the texts."""

    known: bool
    score: float
    probability: float | None
    similar: tuple[SimilarTriple, ...]
    path: tuple[Step, ...] | None  # None where the two are not connected; never the asked triple itself
    query_text: str  # what the query tower read
    entity_text: str  # what the entity tower read
