"""StAR (Wang et al., 2021): a siamese text encoder that tells true triples from false ones and keeps them near."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Bool, Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.model import Metrics, Questions, StepContext
from satkgc.models.text import EncoderConfig, EncoderModelConfig, TextReader, Towers
from satkgc.models.text.packed import Packed
from satkgc.sampling import Batch, Needs
from satkgc.settings import Settings
from satkgc.text import TextConfig, Texts, TokenBatch

_HEAD = "classifier.safetensors"
_PAIRS = 1 << 16  # scored at a time


class SiameseConfig(EncoderConfig):
    """One set of weights reads both sides."""

    tied: Literal[True] = True
    """One set of weights for both towers, which is what siamese means."""


class PlainTextConfig(TextConfig):
    """Texts that name no neighbours."""

    neighbours: int = Field(default=0, ge=0, le=0)
    """StAR's texts name no neighbours."""
    neighbours_per_relation: int = Field(default=0, ge=0, le=0)
    """StAR's texts name no neighbours."""


class StarConfig(EncoderModelConfig):
    """A siamese text encoder with a classifier of pairs; explicit negatives."""

    kind: Literal["star"] = "star"
    text: PlainTextConfig = PlainTextConfig()
    encoder: SiameseConfig = SiameseConfig()
    negatives: int = Field(default=5, ge=1)
    """False tails for each sample; those that are known answers do not count."""
    negatives_from: Literal["graph", "batch"] = "graph"
    """Uniform over all entities, or tails of other samples of the batch, which a subgraph has made hard."""
    margin: float = Field(default=1.0, gt=0)
    """λ: how much nearer than a false tail the true one should be."""
    distance_weight: float = Field(default=1.0, ge=0)
    """γ: the share of the distance's loss beside the classifier's."""


@dataclass(frozen=True)
class StarBatch:
    """The texts of B = 2n samples, each distinct one once, and where they are needed."""

    step: int
    queries: Packed
    query_places: Tensor  # (B,)
    entities: Packed  # tails and negatives
    tail_places: Tensor  # (B,)
    negative_places: Tensor  # (B, K)
    valid: Tensor  # (B, K): negatives that are no known answers

    def __len__(self) -> int:
        return len(self.query_places)


class StarModel(TextReader):
    """Scores a pair of vectors u of (head, relation) and v of a tail by a classifier of [u; u∘v; u−v; v].

    Two objectives: cross-entropy of true and false triples, and a margin between their distances ‖u−v‖. Answers are
    ranked by the classifier. The first layer of it is linear in u, v and u∘v, so that all entities are scored by one
    product a question.
    """

    Config = StarConfig

    def __init__(
        self, kg: KnowledgeGraph, config: Settings, towers: Towers | None = None, texts: Texts | None = None
    ) -> None:
        super().__init__(kg, config, towers, texts)
        width = self.towers.dim
        self.mix = nn.Linear(4 * width, width)
        self.judge = nn.Linear(width, 1)
        self.needs = Needs(negatives=self.config.negatives if self.config.negatives_from == "graph" else 0)
        self._seed = 0
        self._entities: tuple[tuple[int, ...], Tensor] | None = None

    def query_tokens(self, questions: Questions) -> TokenBatch:
        """What is read of each question."""
        return self.tokens(questions.entities, questions.new, questions.relations)

    def prepare_training(self, context: StepContext) -> None:
        """See what negatives of the batch are drawn from."""
        self._seed = context.seed % 2**64

    def collate(self, batch: Batch) -> StarBatch:
        """Texts as tokens, and which negatives are false."""
        negatives = batch.negatives if batch.negatives is not None else self._from_batch(batch)
        entities, place = np.unique(np.concatenate([batch.tails, negatives.ravel()]), return_inverse=True)
        queries, query_places = self.texts.queries(batch.heads, batch.relations).unique()
        return StarBatch(
            batch.step,
            self.towers.pack(queries),
            torch.from_numpy(query_places),
            self.towers.pack(self.texts.entities(entities.astype(np.int32))),
            torch.from_numpy(place[: len(batch)]),
            torch.from_numpy(place[len(batch) :].reshape(negatives.shape)),
            torch.from_numpy(self._false(batch, negatives)),
        )

    def _from_batch(self, batch: Batch) -> Int32:
        """Tails of other samples, from seed and step alone.  # (B, K)"""
        random = np.random.Generator(np.random.Philox(key=np.array([self._seed, batch.step], np.uint64)))
        return batch.tails[random.integers(0, len(batch), (len(batch), self.config.negatives))]

    def _false(self, batch: Batch, negatives: Int32) -> Bool:
        """Which negatives are no known answers of their samples.  # (B, K)"""
        known = self.kg.known_train
        questions = zip(batch.heads.tolist(), batch.relations.tolist(), negatives, strict=True)
        return np.stack([~np.isin(tails, known.answers(head, relation)) for head, relation, tails in questions])

    def loss(self, batch: StarBatch) -> tuple[Tensor, Metrics]:
        """Both objectives, a mean over the samples."""
        self._entities = None  # an optimizer may change weights without a new version
        device = self.device
        queries = self.towers.query(batch.queries).float()  # (texts, D)
        entities = self.towers.query(batch.entities).float()
        u = functional.embedding(batch.query_places.to(device), queries)  # (B, D)
        tails = functional.embedding(batch.tail_places.to(device), entities)[:, None]  # (B, 1, D)
        wrong = functional.embedding(batch.negative_places.to(device), entities)  # (B, K, D)
        valid = batch.valid.to(device).float()  # (B, K)
        v = torch.cat([tails, wrong], 1)  # (B, 1 + K, D)
        logits = self._classify(u, v)  # (B, 1 + K)
        distance = torch.linalg.vector_norm(u[:, None] - v + 1e-8, dim=-1)  # (B, 1 + K)
        count = valid.sum(1)  # (B,)
        cross_entropy = functional.softplus(-logits[:, 0]) + (valid * functional.softplus(logits[:, 1:])).sum(1)
        classified = (cross_entropy / (1 + count)).mean()
        hinge = functional.relu(self.config.margin + distance[:, :1] - distance[:, 1:])
        kept_apart = ((valid * hinge).sum(1) / count.clamp(min=1)).mean()
        accuracy = ((logits[:, :1] > logits[:, 1:]) * valid).sum() / valid.sum().clamp(min=1)
        metrics = {"accuracy": accuracy, "classification": classified, "distance": kept_apart}
        loss = classified + self.config.distance_weight * kept_apart
        return loss, {name: value.detach() for name, value in metrics.items()}

    def _classify(self, u: Tensor, v: Tensor) -> Tensor:
        """Logits of pairs, with the first layer applied to u, v and u∘v apart.  # (B, D), (B or 1, K, D) → (B, K)"""
        of_u, of_product, of_difference, of_v = self.mix.weight.chunk(4, dim=1)  # (D, D) each
        left = functional.linear(u, of_u + of_difference, self.mix.bias)[:, None]  # (B, 1, D)
        right = functional.linear(v, of_v - of_difference)  # (B, K, D)
        hidden = torch.tanh(left + right + functional.linear(u[:, None] * v, of_product))
        return self.judge(hidden)[..., 0]

    @torch.no_grad()
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """The classifier's logits."""
        tokens = self.query_tokens(questions)
        encoded = self.towers.encode(self.towers.query, tokens, "encoding queries", unit=False)
        u, entities = torch.from_numpy(encoded).to(self.device), self._entity_vectors()
        if candidates is not None:
            late = np.unique(candidates[candidates >= self.kg.num_entities])
            if len(late):
                tokens = self.entity_tokens(late, questions.new)
                encoded = self.towers.encode(self.towers.query, tokens, "encoding entities", unit=False)
                entities = torch.cat([entities, torch.from_numpy(encoded).to(self.device)])
                own = self.kg.num_entities + np.searchsorted(late, candidates)
                candidates = np.where(candidates < self.kg.num_entities, candidates, own)
            return self._classify(u, entities[torch.from_numpy(candidates).long().to(self.device)]).float()
        size = max(1, _PAIRS // max(1, len(u)))
        parts = (entities[None, start : start + size] for start in range(0, len(entities), size))  # (1, e, D)
        return torch.cat([self._classify(u, part).float() for part in parts], 1)

    def _entity_vectors(self) -> Tensor:
        """Of all entities, kept until a weight changes.  # (E, D)"""
        versions = tuple(parameter._version for parameter in self.towers.parameters())
        if self._entities is None or self._entities[0] != versions or self._entities[1].device != self.device:
            everyone = np.arange(self.kg.num_entities, dtype=np.int32)
            tokens = self.texts.entities(everyone)
            encoded = self.towers.encode(self.towers.query, tokens, "encoding entities", unit=False)
            self._entities = versions, torch.from_numpy(encoded).to(self.device)
        return self._entities[1]

    def save(self, folder: Path) -> None:
        """The encoder as a transformers model with its tokenizer, and the classifier."""
        folder.mkdir(parents=True, exist_ok=True)
        self.towers.save(folder)
        head = {name: p.detach().cpu() for name, p in self.named_parameters() if not name.startswith("towers.")}
        save_file(head, folder / _HEAD)

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
        assert isinstance(config, StarConfig)
        model = cls(kg, config, Towers.load(folder, config.encoder), texts)
        try:
            missing = model.load_state_dict(load_file(folder / _HEAD), strict=False).missing_keys
            if any(not name.startswith("towers.") for name in missing):
                raise OSError("weights are missing")
        except (OSError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise SatkgcError(f"cannot open the model: {reason}", where=folder, remedy="copy the run again") from error
        return model.to(device).eval()
