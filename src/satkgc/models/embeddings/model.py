"""Embedding models: a vector for every entity and directed relation, and an interaction that scores triples of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Bool, Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.embeddings.complex import ComplEx
from satkgc.models.embeddings.compounde import CompoundE
from satkgc.models.embeddings.distmult import DistMult
from satkgc.models.embeddings.interaction import Distance, Interaction
from satkgc.models.embeddings.recorded import RecordedStep
from satkgc.models.embeddings.rotate import RotatE
from satkgc.models.embeddings.transe import TransE
from satkgc.models.embeddings.tucker import TuckER
from satkgc.models.model import Metrics, Model, ModelConfig, Questions, StepContext
from satkgc.sampling import Batch, Needs
from satkgc.settings import Settings

_EAGER_STEPS = 3  # in which libraries set themselves up
INTERACTIONS: dict[str, type[Interaction]] = {
    "transe": TransE,
    "distmult": DistMult,
    "complex": ComplEx,
    "rotate": RotatE,
    "tucker": TuckER,
    "compounde": CompoundE,
}


class EmbeddingConfig(ModelConfig):
    """Settings of an embedding model."""

    shape: ClassVar[frozenset[str]] = frozenset(["model.interaction", "model.dim", "model.distance"])

    kind: Literal["embedding"] = "embedding"
    interaction: str = "complex"
    """How head, relation and tail make a score: transe, distmult, complex, rotate, tucker or compounde."""
    dim: int = Field(default=200, ge=1)
    """Features of an entity; complex numbers for ComplEx and RotatE, planes for CompoundE."""
    distance: Distance = "l2"
    """Of TransE, RotatE and CompoundE; of l2-squared the ranks are those of l2. l1 over all entities is slow."""
    loss: Literal["softmax", "self-adversarial"] = "softmax"
    """Softmax over all entities, or negative sampling with self-adversarial weights (Sun et al., 2019)."""
    negatives: int = Field(default=256, ge=1)
    """Wrong tails of each sample, where the loss samples them."""
    margin: float = Field(default=9.0, gt=0)
    """γ of the self-adversarial loss: distances below it are near."""
    adversarial_temperature: float = Field(default=1.0, ge=0)
    """α: how much more harder negatives count."""
    n3: float = Field(default=0.0, ge=0)
    """Weight of the N3 regulariser (Lacroix et al., 2018): the cubes of the moduli, a mean over samples."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the features of heads and queries in training."""
    relation_loss: float = Field(default=0.0, ge=0)
    """Weight of predicting the relation of (head, tail) as well (Chen et al., 2021); DistMult and ComplEx."""
    scale: float = Field(default=1e-3, gt=0)
    """Standard deviation of fresh embeddings."""

    @field_validator("interaction")
    @classmethod
    def _known(cls, interaction: str) -> str:
        if interaction not in INTERACTIONS:
            raise ValueError(f"it takes one of {', '.join(INTERACTIONS)}")
        return interaction

    @model_validator(mode="after")
    def _interaction_can(self) -> EmbeddingConfig:
        if self.interaction == "rotate" and self.distance == "l1":
            raise ValueError("model.distance is l2 or l2-squared for rotate: turns change the l1 distance")
        if self.relation_loss and self.interaction not in ("distmult", "complex"):
            raise ValueError(f"model.relation_loss is for distmult and complex, not {self.interaction}; set it to 0")
        return self


@dataclass(frozen=True, eq=False)
class EmbeddingBatch:
    """The ids of a step's samples, in memory from which a GPU copies them while the host goes on."""

    step: int
    ids: Tensor  # (3, 2n) heads, directed relations, tails: n triples, then their inverses
    negatives: Tensor | None  # (2n, K)

    def __len__(self) -> int:
        return self.ids.shape[1]

    def to(self, device: torch.device) -> EmbeddingBatch:
        """A copy elsewhere."""
        negatives = None if self.negatives is None else self.negatives.to(device, copy=True)
        return EmbeddingBatch(self.step, self.ids.to(device, copy=True), negatives)


class EmbeddingModel(Model):
    """Scores triples by their embeddings. It knows the entities and relations of its graph that have training triples.

    An embedding that no triple has trained is noise: evaluation ranks it as any other, but nobody is answered from it.
    """

    Config = EmbeddingConfig
    entity_rows = ("entities.weight",)
    relation_rows = ("relations.weight",)

    def __init__(self, kg: KnowledgeGraph, config: Settings) -> None:
        super().__init__(kg, config)
        self.interaction = INTERACTIONS[self.config.interaction](self.config.dim, self.config.distance)
        self.entities = nn.Embedding(kg.num_entities, self.interaction.entity_width)
        self.relations = nn.Embedding(2 * kg.num_relations, self.interaction.relation_width)
        self.interaction.reset(self.entities.weight, self.relations.weight, self.config.scale)
        self._pin = False
        self._recorded: RecordedStep | None = None
        self._steps = 0  # done by this process
        self.needs = Needs(negatives=self.config.negatives if self.config.loss == "self-adversarial" else 0)

    def prepare_training(self, context: StepContext) -> None:
        """See where batches go."""
        self._pin = context.processes.device.type == "cuda"

    def collate(self, batch: Batch) -> EmbeddingBatch:
        """The ids as tensors."""
        ids = torch.from_numpy(np.stack([batch.heads, batch.relations, batch.tails]).astype(np.int64))
        negatives = None if batch.negatives is None else torch.from_numpy(batch.negatives)
        if self._pin:
            ids, negatives = ids.pin_memory(), None if negatives is None else negatives.pin_memory()
        return EmbeddingBatch(batch.step, ids, negatives)

    def backward(self, batch: EmbeddingBatch, context: StepContext) -> Metrics:
        """As of any model; on a GPU a step is recorded once and replayed, unless rejections make each step another."""
        self._steps += 1
        exact = context.precision == torch.float32
        if self.device.type != "cuda" or not exact or self.rejections is not None or self._steps <= _EAGER_STEPS:
            return super().backward(batch, context)
        context.seed_step(batch.step)
        if self._recorded is None:
            self._recorded = RecordedStep(self, batch)
        if len(batch) != len(self._recorded.batch):
            return super().backward(batch, context)
        return self._recorded.backward(batch)

    def loss(self, batch: EmbeddingBatch) -> tuple[Tensor, Metrics]:
        """The loss of the batch's triples and their inverses."""
        heads, relations, tails = batch.ids.to(self.device, non_blocking=True)
        h, r = _rows(self.entities.weight, heads), _rows(self.relations.weight, relations)  # (B, W)
        t = h.roll(len(batch) // 2, 0)  # the tail of a triple is the head of its inverse
        queries = self._dropout(self.interaction.query(self._dropout(h), r))
        if self.config.loss == "softmax":
            loss = functional.cross_entropy(self._score_all(queries), tails)
        else:
            assert batch.negatives is not None
            wrong = self.entities(batch.negatives.to(self.device, non_blocking=True))  # (B, K, W)
            positive = self.interaction.score_some(queries, t[:, None])[:, 0]
            loss = self._self_adversarial(positive, self.interaction.score_some(queries, wrong))
        metrics: Metrics = {}
        if self.config.n3:
            # Heads and tails are the same entities in another order.
            cubes = 2 * self.interaction.cubes(h)
            if self.interaction.relations_have_size:
                cubes = cubes + self.interaction.cubes(r)
            n3 = cubes / len(batch)
            metrics["n3"] = n3.detach()
            loss = loss + self.config.n3 * n3
        if self.config.relation_loss:
            scores = self.interaction.relation_query(h, t) @ self.relations.weight.T  # (B, 2R)
            relation_loss = functional.cross_entropy(scores, relations)
            metrics["relation_loss"] = relation_loss.detach()
            loss = loss + self.config.relation_loss * relation_loss
        return loss, metrics

    def logits(self, entities: Tensor, relations: Tensor) -> Tensor:
        """Scores as they are."""
        queries = self.interaction.query(self.entities(entities), self.relations(relations))
        return self.interaction.score_all(queries, self.entities.weight).float()

    @torch.no_grad()
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Of all entities, or of each question's candidates."""
        beyond = int(questions.entities.max(initial=0)) >= self.kg.num_entities
        if beyond or (candidates is not None and int(candidates.max(initial=0)) >= self.kg.num_entities):
            what = "an embedding model knows the entities of its graph alone"
            raise SatkgcError(what, remedy="ask about one of them, or train a model that reads text")
        if (
            len(self.kg.inference)
            and (new := questions.entities[self.kg.adjacency.degree[questions.entities] == 0]).size
        ):
            what = f"an embedding model learns nothing of entity {self.kg.entities.id(int(new[0]))!r}, not in train"
            raise SatkgcError(what, where=self.kg.name, remedy="choose a model that reads the inference split's facts")
        heads, relations = self._ids(questions.entities), self._ids(questions.relations)
        if candidates is None:
            return self.logits(heads, relations)
        queries = self.interaction.query(self.entities(heads), self.relations(relations))
        if (
            len(candidates) > 1 and (candidates == candidates[0]).all()
        ):  # one list: (C, dim), where (Q, C, dim) is 50 GB
            return self.interaction.score_all(queries, self.entities(self._ids(candidates[0]))).float()
        return self.interaction.score_some(queries, self.entities(self._ids(candidates))).float()

    def check_question(self, entity: int, relation: int) -> None:
        """Both must have training triples."""
        kg, (entities, relations) = self.kg, self._seen
        for seen, place, vocabulary in (
            (entities, entity, kg.entities),
            (relations, relation % kg.num_relations, kg.relations),
        ):
            if not seen[place]:
                what = f"training saw no triples of the {vocabulary.kind} {vocabulary.id(place)!r}: it has no embedding"
                raise SatkgcError(what, remedy="give it some and train again, or use a model that reads text")

    @cached_property
    def _seen(self) -> tuple[Bool, Bool]:
        """Which entities (E,) and relations (R,) have training triples, and something learnt of them."""
        heads, relations, tails = self.kg.train.T
        counts = (
            np.bincount(np.concatenate([heads, tails]), minlength=self.kg.num_entities),
            np.bincount(relations, minlength=self.kg.num_relations),
        )
        learnt = (part.weight.any(1).cpu().numpy() for part in (self.entities, self.relations))
        entities, relations = ((count > 0) & rows[: len(count)] for count, rows in zip(counts, learnt, strict=True))
        return entities, relations

    def learnt(self) -> tuple[Bool, Bool]:
        """Those that training saw."""
        return self._seen

    def _dropout(self, features: Tensor) -> Tensor:
        return functional.dropout(features, self.config.dropout) if self.training and self.config.dropout else features

    def knows_questions(self, questions: Questions) -> Bool:
        """Those whose entity and relation training has seen: any other embedding is as it was drawn."""
        entities, relations = self._seen
        known = np.append(entities, False)[np.minimum(questions.entities, self.kg.num_entities)]
        return np.asarray(known & relations[questions.relations % self.kg.num_relations])

    def knows_entities(self) -> Bool:
        """Those that have training triples."""
        return self._seen[0]

    def _score_all(self, queries: Tensor) -> Tensor:
        """Scores of all entities, and −∞ up to a multiple of eight: the GPU multiplies such matrices twice as fast."""
        table = self.entities.weight
        scores = self.interaction.score_all(queries, functional.pad(table, (0, 0, 0, -len(table) % 8)))
        with torch.no_grad():  # softmax gives these columns no gradient
            scores[:, len(table) :] = -torch.inf
        return scores

    def _self_adversarial(self, positive: Tensor, negatives: Tensor) -> Tensor:
        """−log σ(γ + f(t)) − Σ p log σ(−γ − f(t')), p the softmax of α f(t') without a gradient."""
        margin = self.config.margin
        weights = (self.config.adversarial_temperature * negatives).softmax(1).detach()
        wrong = (weights * functional.logsigmoid(-margin - negatives)).sum(1)
        return -(functional.logsigmoid(margin + positive) + wrong).mean() / 2

    def _ids(self, array: Int32) -> Tensor:
        return torch.from_numpy(np.asarray(array, np.int64)).to(self.device)


def _rows(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table, by the quickest way whose gradient adds up in a fixed order: a resumed run repeats itself."""
    return table[ids] if table.is_cuda else table.index_select(0, ids)
