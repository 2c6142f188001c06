"""Embedding models: a vector for every entity and directed relation, and an interaction that scores triples of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.embeddings.complex import ComplEx
from satkgc.models.embeddings.compounde import CompoundE
from satkgc.models.embeddings.distmult import DistMult
from satkgc.models.embeddings.interaction import Interaction
from satkgc.models.embeddings.rotate import RotatE
from satkgc.models.embeddings.transe import TransE
from satkgc.models.embeddings.tucker import TuckER
from satkgc.models.model import Metrics, Model, ModelConfig, Questions
from satkgc.sampling import Batch, Needs
from satkgc.settings import Settings

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

    kind: Literal["embedding"] = "embedding"
    interaction: str = "complex"
    """How head, relation and tail make a score: transe, distmult, complex, rotate, tucker or compounde."""
    dim: int = Field(default=200, ge=1)
    """Features of an entity; complex numbers for ComplEx and RotatE, planes for CompoundE."""
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
    """Of the query's features in training."""
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
    def _relation_is_linear(self) -> EmbeddingConfig:
        if self.relation_loss and self.interaction not in ("distmult", "complex"):
            raise ValueError(f"model.relation_loss is for distmult and complex, not {self.interaction}; set it to 0")
        return self


class EmbeddingModel(Model):
    """Scores triples by their embeddings. It knows the entities of its graph, and those with training triples best."""

    Config = EmbeddingConfig

    def __init__(self, kg: KnowledgeGraph, config: Settings) -> None:
        super().__init__(kg, config)
        self.interaction = INTERACTIONS[self.config.interaction](self.config.dim)
        self.entities = nn.Embedding(kg.num_entities, self.interaction.entity_width)
        self.relations = nn.Embedding(2 * kg.num_relations, self.interaction.relation_width)
        self.interaction.reset(self.entities.weight, self.relations.weight, self.config.scale)
        self.needs = Needs(negatives=self.config.negatives if self.config.loss == "self-adversarial" else 0)

    def loss(self, batch: Batch) -> tuple[Tensor, Metrics]:
        """The loss of the batch's triples and their inverses."""
        heads, relations, tails = (self._ids(part) for part in (batch.heads, batch.relations, batch.tails))
        h, r, t = self.entities(heads), self.relations(relations), self.entities(tails)  # (B, W)
        queries = functional.dropout(self.interaction.query(h, r), self.config.dropout, self.training)
        if self.config.loss == "softmax":
            loss = functional.cross_entropy(self.interaction.score_all(queries, self.entities.weight), tails)
        else:
            assert batch.negatives is not None
            negatives = self.interaction.score_some(queries, self.entities(self._ids(batch.negatives)))  # (B, K)
            loss = self._self_adversarial(self.interaction.score_some(queries, t[:, None])[:, 0], negatives)
        metrics: Metrics = {}
        if self.config.n3:
            cubes = torch.stack([(self.interaction.factors(part) ** 3).sum() for part in (h, r, t)]).sum()
            metrics["n3"] = cubes.detach() / len(heads)
            loss = loss + self.config.n3 * cubes / len(heads)
        if self.config.relation_loss:
            scores = self.interaction.relation_query(h, t) @ self.relations.weight.T  # (B, 2R)
            relation_loss = functional.cross_entropy(scores, relations)
            metrics["relation_loss"] = relation_loss.detach()
            loss = loss + self.config.relation_loss * relation_loss
        return loss, metrics

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
        h, r = self.entities(self._ids(questions.entities)), self.relations(self._ids(questions.relations))
        queries = self.interaction.query(h, r)
        if candidates is None:
            return self.interaction.score_all(queries, self.entities.weight).float()
        return self.interaction.score_some(queries, self.entities(self._ids(candidates))).float()

    def _self_adversarial(self, positive: Tensor, negatives: Tensor) -> Tensor:
        """−log σ(γ + f(t)) − Σ p log σ(−γ − f(t')), p the softmax of α f(t') without a gradient."""
        margin = self.config.margin
        weights = (self.config.adversarial_temperature * negatives).softmax(1).detach()
        wrong = (weights * functional.logsigmoid(-margin - negatives)).sum(1)
        return -(functional.logsigmoid(margin + positive) + wrong).mean() / 2

    def _ids(self, array: Int32) -> Tensor:
        return torch.from_numpy(np.asarray(array, np.int64)).to(self.device)
