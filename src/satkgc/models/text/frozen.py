"""The frozen model: the pretrained encoder reads every entity once; small heads are trained on its vectors.

A question (h, r, ?) is the entity's vector x and a change that a perceptron makes of x and an embedding of r,

    q = x + W2 GELU(W1 [x, r]),

and its cosine with an entity's vector is the score. (A linear map of the answers' vectors was no better on validation.)

Nothing is nearer to x than x itself, so without more the question's own entity would come first. It is no answer, in
training and after: but where the relation joins entities to themselves in training.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Bool, Float32, Int32
from satkgc.errors import SatkgcError
from satkgc.files import atomic_folder
from satkgc.kg import KnowledgeGraph
from satkgc.manifest import Damaged, check_folder, write_manifest
from satkgc.models.model import Metrics, NewEntityText, Questions, StepContext
from satkgc.models.text.config import EncoderConfig, EncoderModelConfig
from satkgc.models.text.encoder_model import EncoderModel
from satkgc.models.text.towers import Towers, normalize
from satkgc.sampling import Batch
from satkgc.settings import Settings
from satkgc.text import TextConfig, Texts, TokenBatch

HEADS, VECTORS = "heads.safetensors", "vectors.safetensors"


class FrozenConfig(EncoderModelConfig):
    """A frozen encoder and trained heads."""

    shape: ClassVar[frozenset[str]] = EncoderModelConfig.shape | {"model.relation_dim", "model.hidden"}

    kind: Literal["frozen"] = "frozen"
    text: TextConfig = TextConfig(neighbours=0)
    encoder: EncoderConfig = EncoderConfig(tied=True)
    """Both sides read by the one encoder, whatever `tied` says."""
    relation_dim: int = Field(default=128, ge=1)
    """Features of a relation."""
    hidden: int = Field(default=512, ge=1)
    """Width of the perceptron that changes an entity's vector into a question's."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Of the perceptron's hidden features."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Of the softmax at the start; log(1/τ) is trained."""
    negatives: int = Field(default=4096, ge=1)
    """Entities that the answers of a batch compete with, besides one another: all, where the graph has no more."""

    @model_validator(mode="after")
    def _no_neighbours(self) -> FrozenConfig:
        if self.text.max_neighbours:
            what = "texts are read once, so the asked triple cannot be left out of them"
            raise ValueError(f"{what}; set model.text.neighbours and model.text.neighbours_per_relation to 0")
        return self


@dataclass(frozen=True, eq=False)
class FrozenBatch:
    """The ids of a step's samples, and what they compete with."""

    step: int
    heads: Tensor  # (B,)
    relations: Tensor  # (B,) directed
    candidates: Tensor  # (C,) entities, ascending
    answers: Tensor  # (B,) places among the candidates
    rows: Tensor  # (m,) questions, and
    columns: Tensor  # (m,) places of candidates that do not compete: other known answers, the question's own entity

    def __len__(self) -> int:
        return len(self.heads)


class FrozenModel(EncoderModel):
    """Heads over the vectors of an encoder that is not trained. It knows the relations that have training triples."""

    Config = FrozenConfig
    relation_rows = ("relations.weight",)

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: Settings,
        towers: Towers | None = None,
        texts: Texts | None = None,
        vectors: Tensor | None = None,
    ) -> None:
        """The encoder's vectors of all entities are made when first needed, unless they are given."""
        assert isinstance(config, FrozenConfig)
        super().__init__(kg, config, towers or Towers.create(config.encoder.replace(tied=True)), texts)
        self.towers.requires_grad_(False)
        width, features = self.towers.dim, self.config.relation_dim
        self.relations = nn.Embedding(2 * kg.num_relations, features)
        nn.init.normal_(self.relations.weight, std=features**-0.5)
        self.hidden = nn.Linear(width + features, self.config.hidden)
        self.change = nn.Linear(self.config.hidden, width)
        for parameter in self.change.parameters():
            nn.init.zeros_(parameter)  # untrained, it compares texts
        self.log_scale = nn.Parameter(torch.tensor(-math.log(self.config.temperature)))
        self._vectors: Tensor | None
        self.register_buffer("_vectors", vectors, persistent=False)
        self._seed = 0
        heads, relations, tails = kg.train.T
        self._loops = np.tile(np.bincount(relations[heads == tails], minlength=kg.num_relations) > 0, 2)  # (2R,)

    @cached_property
    def _seen(self) -> Bool:
        """Which relations have training triples, and something learnt of them.  # (R,)"""
        counts = np.bincount(self.kg.train[:, 1], minlength=self.kg.num_relations)
        return (counts > 0) & self.relations.weight.any(1).cpu().numpy()[: len(counts)]

    def learnt(self) -> tuple[Bool, Bool]:
        """All entities, and relations that training saw."""
        return np.ones(self.kg.num_entities, bool), self._seen

    @torch.no_grad()
    def grow(self, kg: KnowledgeGraph) -> Self:
        """Only what is new, or reads otherwise now, is read by the encoder."""
        model = super().grow(kg)
        changed = model.changed_entities(self)
        read = self.towers.encode(self.towers.entity, model.entity_tokens(changed), "reading new texts", progress=True)
        vectors = self.vectors.new_empty(kg.num_entities, self.towers.dim)
        vectors[: self.kg.num_entities] = self.vectors
        vectors[self._ids(changed)] = torch.from_numpy(read).to(vectors.device)
        model._vectors = vectors
        return model

    @property
    def dim(self) -> int:
        """The width of the vectors: the encoder's."""
        return self.towers.dim

    @property
    def vectors(self) -> Tensor:
        """The encoder's vectors of all entities.  # (E, width)"""
        if self._vectors is None:
            tokens = self.entity_tokens(np.arange(self.kg.num_entities, dtype=np.int32))
            read = self.towers.encode(self.towers.entity, tokens, "reading the entities' texts", progress=True)
            self._vectors = torch.from_numpy(read).to(self.device)
        return self._vectors

    def prepare_training(self, context: StepContext) -> None:
        """Read the entities' texts, unless the run has done so before."""
        self._seed = context.seed
        folder = None if context.cache is None else context.cache / "entity-vectors"
        if folder is None or self._vectors is not None:
            return
        self._vectors = self._kept(folder)
        if self._vectors is None and context.processes.first:
            with atomic_folder(folder) as part:
                save_file({"vectors": self.vectors.cpu()}, part / VECTORS)
                write_manifest(part)

    def _kept(self, folder: Path) -> Tensor | None:
        try:
            check_folder(folder)
            vectors = load_file(folder / VECTORS)["vectors"]
        except (OSError, SafetensorError, KeyError, Damaged):
            return None
        return vectors.to(self.device) if vectors.shape == (self.kg.num_entities, self.towers.dim) else None

    def collate(self, batch: Batch) -> FrozenBatch:
        """With the entities that compete, and those of them that must not."""
        count, known = self.kg.num_entities, self.kg.known_train
        candidates = np.arange(count)
        if count > self.config.negatives:
            rng = np.random.default_rng([self._seed, batch.step])
            drawn = rng.choice(count, self.config.negatives, replace=False, shuffle=False)
            candidates = np.union1d(drawn, batch.tails)
        answers = [known.answers(h, r) for h, r in zip(batch.heads, batch.relations, strict=True)]
        own = np.flatnonzero(~self._loops[batch.relations])
        rows = np.concatenate([np.repeat(np.arange(len(answers)), [len(part) for part in answers]), own])
        others = np.concatenate([*answers, batch.heads[own]])
        columns = np.minimum(np.searchsorted(candidates, others), len(candidates) - 1)
        out = (candidates[columns] == others) & (others != batch.tails[rows])
        places = np.searchsorted(candidates, batch.tails)
        parts = batch.heads, batch.relations, candidates, places, rows[out], columns[out]
        return FrozenBatch(batch.step, *(torch.from_numpy(np.asarray(part, np.int64)) for part in parts))

    def loss(self, batch: FrozenBatch) -> tuple[Tensor, Metrics]:
        """Cross-entropy over the candidates."""
        parts = batch.heads, batch.relations, batch.candidates, batch.answers, batch.rows, batch.columns
        heads, relations, candidates, answers, rows, columns = (
            part.to(self.device, non_blocking=True) for part in parts
        )
        dropout = self.config.dropout if self.training else 0.0
        queries = self._queries(self.vectors[heads], relations, dropout)  # (B, width)
        everyone = self.vectors if len(candidates) == self.kg.num_entities else self.vectors[candidates]
        scores = self.log_scale.exp() * (queries @ everyone.T).float()  # (B, C)
        scores[rows, columns] = -torch.inf
        temperature = (-self.log_scale.detach()).exp()
        return functional.cross_entropy(scores, answers), {"temperature": temperature}

    def logits(self, entities: Tensor, relations: Tensor) -> Tensor:
        """Cosines by the temperature, which is left alone; a question's own entity is no candidate, as in training."""
        queries = self._queries(self.vectors[entities], relations)
        scores = self.log_scale.detach().exp() * (queries @ self.vectors.T).float()  # (Q, E)
        own = torch.nonzero(~torch.from_numpy(self._loops).to(self.device)[relations])[:, 0]
        return scores.index_put((own, entities[own]), scores.new_tensor(-torch.inf))

    def bars_own(self, questions: Questions) -> Bool:
        """Those of relations that join no entity to itself in training."""
        return np.asarray(~self._loops[questions.relations])

    @torch.no_grad()
    def encode_questions(self, questions: Questions, *, progress: bool = False) -> Float32:
        """The changed vectors.  # (Q, dim)"""
        texts = self._read(questions.entities, questions.new, progress)
        return _as_numpy(self._queries(texts, self._ids(questions.relations)))

    @torch.no_grad()
    def encode_entities(self, entities: Int32, new: Sequence[NewEntityText] = (), *, progress: bool = False) -> Float32:
        """The encoder's vectors.  # (n, dim)"""
        return _as_numpy(self._read(entities, new, progress))

    def query_tokens(self, questions: Questions) -> TokenBatch:
        """What is read of a question is its entity; the relation has an embedding."""
        return self.entity_tokens(questions.entities, questions.new)

    def check_question(self, entity: int, relation: int) -> None:
        """The relation must have training triples."""
        relation %= self.kg.num_relations
        if not self._seen[relation]:
            what = f"training saw no triples of the relation {self.kg.relations.id(relation)!r}: it has no embedding"
            raise SatkgcError(what, remedy="give it some and train again, or use a recipe that reads its name")

    def knows_questions(self, questions: Questions) -> Bool:
        """Those whose relation training has seen."""
        return np.asarray(self._seen[questions.relations % self.kg.num_relations])

    def frozen(self) -> Self:
        """A copy of the heads as they are, over the same encoder and texts."""
        shared = (self.kg, self.texts, self.towers, self.vectors)
        return copy.deepcopy(self, {id(part): part for part in shared}).eval()

    def save(self, folder: Path) -> None:
        """The encoder as a transformers model with its tokenizer, the vectors that it gave, and the heads."""
        folder.mkdir(parents=True, exist_ok=True)
        self.towers.save(folder)
        save_file({"vectors": self.vectors.cpu().contiguous()}, folder / VECTORS)
        heads = {name: p.detach().cpu().contiguous() for name, p in self.named_parameters() if p.requires_grad}
        save_file(heads, folder / HEADS)

    @classmethod
    def load(
        cls,
        folder: Path,
        kg: KnowledgeGraph,
        config: Settings,
        device: torch.device | str = "cpu",
        texts: Texts | None = None,
    ) -> Self:
        """Open what `save` wrote; `texts` of the same run spare making them again."""
        assert isinstance(config, FrozenConfig)
        towers = Towers.load(folder, config.encoder.replace(tied=True))
        try:
            model = cls(kg, config, towers, texts, load_file(folder / VECTORS)["vectors"])
            model.load_state_dict({**model.state_dict(), **load_file(folder / HEADS)})
        except (OSError, SafetensorError, RuntimeError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise SatkgcError(f"cannot open the model: {reason}", where=folder, remedy="copy the run again") from error
        return model.to(device).eval()

    def _queries(self, texts: Tensor, relations: Tensor, dropout: float = 0.0) -> Tensor:
        """Directions of questions.  # (Q, width), (Q,) → (Q, width)"""
        features = functional.gelu(self.hidden(torch.cat([texts, self.relations(relations)], 1)))
        return normalize(texts + self.change(functional.dropout(features, dropout)))

    def _read(self, entities: Int32, new: Sequence[NewEntityText], progress: bool) -> Tensor:
        """The encoder's vectors.  # (n, width)"""
        size = self.kg.num_entities
        if not len(late := np.unique(entities[entities >= size])):
            return self.vectors[self._ids(entities)]
        tokens = self.entity_tokens(late, new)
        words = self.towers.encode(self.towers.entity, tokens, "encoding entities", progress)
        known = torch.from_numpy(entities < size)
        rows = self.vectors.new_empty(len(entities), self.vectors.shape[1])  # not a copy of all vectors
        rows[known] = self.vectors[self._ids(entities[entities < size])]
        rows[~known] = torch.from_numpy(words[np.searchsorted(late, entities[entities >= size])]).to(rows)
        return rows

    def _ids(self, array: Int32) -> Tensor:
        return torch.from_numpy(np.asarray(array, np.int64)).to(self.device)


def _as_numpy(vectors: Tensor) -> Float32:
    return np.asarray(vectors.float().cpu().numpy(), np.float32)
