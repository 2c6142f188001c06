"""What a loaded run is: its graph, its model, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass

from satkgc.completion.answer import Entity


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model by name."""

    kind: str  # text, fused, paths, complex …
    recipe: str
    backbones: tuple[str, ...]  # the language models that it reads texts with
    experts: tuple[str, ...]  # of a fused model
    finished: bool  # trained to the end
    version: str | None  # of satkgc, that trained it


@dataclass(frozen=True, slots=True)
class Ranking:
    """Filtered ranks of held-out triples, in both directions."""

    triples: int
    mrr: float
    hits_at_1: float
    hits_at_10: float


@dataclass(frozen=True, slots=True)
class RelationRanking(Ranking):
    """The ranking of one relation's triples."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Quality(Ranking):
    """How well a run ranks its validation triples, by which it was chosen; then by relation, most triples first."""

    candidates: str  # what the answers compete with
    relations: tuple[RelationRanking, ...]


@dataclass(frozen=True, slots=True)
class CandidateRecall:
    """How often what should be found is among the candidates. Known answers are left out, as for probabilities."""

    listed: int  # candidates of each expert
    near: int  # entities that a path expert reads, unless its settings say how many
    questions: int
    candidates: float  # of a question, on average
    right: float | None  # share of the validation answers that are candidates; None without validation triples
    compared: int  # questions that were scored whole too
    first: float | None  # share of their first answers by whole scores that are candidates
    first_ten: float | None  # the same of the ten first
    same_first: float | None  # share of them whose first answer is the same


@dataclass(frozen=True, slots=True)
class RunVersion:
    """Which state of a run this is: 1 as it was trained, one more with every `satkgc update`."""

    number: int
    updated: str | None  # UTC; None as it was trained


@dataclass(frozen=True, slots=True)
class CompleterInfo:
    """What is loaded, in a few numbers."""

    graph: str
    entities: int
    relations: int
    triples: int  # of training
    calibrated: bool  # whether answers carry probabilities
    reads_facts: bool  # whether facts of a new entity reach the model
    examples: tuple[Entity, ...]  # to begin with
    model: ModelInfo
    quality: Quality | None  # None where it was never measured
    candidates: CandidateRecall | None  # None where all entities are scored
    run_version: RunVersion
