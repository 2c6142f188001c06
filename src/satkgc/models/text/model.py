"""The text model: two encoders, one for questions and one for entities; the cosine of their vectors is the score."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from satkgc.arrays import Float32, Int32
from satkgc.kg import KnowledgeGraph
from satkgc.models.model import Metrics, NewEntityText, Questions, StepContext
from satkgc.models.text.collate import Collate, TextBatch, joined_otherwise
from satkgc.models.text.config import LossConfig, TextModelConfig
from satkgc.models.text.encoder_model import EncoderModel
from satkgc.models.text.gradient_caching import backward, loss_of, vectors_of_samples
from satkgc.models.text.loss import ContrastiveLoss
from satkgc.models.text.towers import Towers
from satkgc.sampling import Batch, Needs
from satkgc.settings import Settings
from satkgc.text import Texts, TokenBatch

MakeLoss = Callable[[LossConfig, KnowledgeGraph], nn.Module]


class TextModel(EncoderModel):
    """Encoder_hr reads (head, relation), Encoder_t an entity (Section 4)."""

    Config = TextModelConfig
    optional_weights = ("contrastive.",)  # a loss of one's own has others

    def __init__(
        self,
        kg: KnowledgeGraph,
        config: Settings,
        towers: Towers | None = None,
        make_loss: MakeLoss = ContrastiveLoss,
        texts: Texts | None = None,
    ) -> None:
        super().__init__(kg, config, towers, texts)
        self.contrastive = make_loss(self.config.loss, kg)
        self.needs = Needs(hops=self.config.loss.proximity != "off")
        self._collate: Collate | None = None

    def prepare_training(self, context: StepContext) -> None:
        """Lay out what `collate` looks up; it packs for this process's share of a batch."""
        chunk = self.config.encoder.chunk_tokens
        self._collate = Collate(self.kg, self.texts, self.towers.pack, chunk, context.processes, context.seed)

    def collate(self, batch: Batch) -> TextBatch:
        """Texts as tokens, in chunks, and the negatives to mask."""
        if self._collate is None:
            self.prepare_training(StepContext())
        assert self._collate is not None
        return self._collate(batch)

    def loss(self, batch: TextBatch) -> tuple[Tensor, Metrics]:
        """The contrastive loss, with all texts encoded in one graph of gradients."""
        return loss_of(self.contrastive, self._encode_chunks(batch), batch.to(self.device))

    def batch_vectors(self, batch: TextBatch) -> tuple[Tensor, Tensor]:
        """Unit vectors of the samples' queries and tails, from the texts of training.  # (B, D), (B, D)"""
        return vectors_of_samples(self._encode_chunks(batch), batch.to(self.device))

    def _encode_chunks(self, batch: TextBatch) -> Tensor:
        """The vectors of all texts of a batch."""
        chunks = [chunk for own in batch.chunks for chunk in own]
        towers = self.towers
        return torch.cat([(towers.query if chunk.queries else towers.entity)(chunk.packed) for chunk in chunks])

    def backward(self, batch: TextBatch, context: StepContext) -> Metrics:
        """By chunks and over processes: see `gradient_caching`."""
        return backward(self.towers, self.contrastive, batch, context)

    @property
    def dim(self) -> int:
        """The width of the vectors."""
        return self.towers.dim

    def encode_questions(self, questions: Questions, *, progress: bool = False) -> Float32:
        """Encoder_hr's vectors.  # (Q, dim)"""
        tokens = self.query_tokens(questions)
        return self.towers.encode(self.towers.query, tokens, "encoding queries", progress)

    def encode_entities(self, entities: Int32, new: Sequence[NewEntityText] = (), *, progress: bool = False) -> Float32:
        """Encoder_t's vectors.  # (n, dim)"""
        tokens = self.entity_tokens(entities, new)
        return self.towers.encode(self.towers.entity, tokens, "encoding entities", progress)

    def encode_held_out(self, questions: Questions, answers: Int32) -> tuple[Float32, Float32 | None]:
        """Where texts name neighbours, those of a question and its answer do not name each other, as in training."""
        if not self.config.text.max_neighbours:
            return self.encode_questions(questions), None
        heads, relations, size = questions.entities, questions.relations, self.kg.num_relations
        edge = self.config.text.exclude == "edge"
        by_relation = edge and self.config.text.neighbours_per_relation > 0
        joined = joined_otherwise(self.kg, heads, relations, answers) & edge & (not by_relation)
        without_tail, without_head = np.where(joined, -1, answers), np.where(joined, -1, heads)
        turned = (relations + size) % (2 * size) if by_relation else None
        worded = self.texts.queries(heads, relations, without_tail, relations if by_relation else None)
        queries, query_of = worded.unique()
        tails, tail_of = self.texts.entities(answers, without_head, turned).unique()
        vectors = self.towers.encode(self.towers.query, queries, "encoding queries")
        return vectors[query_of], self.towers.encode(self.towers.entity, tails, "encoding entities")[tail_of]

    def query_tokens(self, questions: Questions) -> TokenBatch:
        """What Encoder_hr reads for each question."""
        return self.tokens(questions.entities, questions.new, questions.relations)

    def frozen(self) -> Self:
        """A copy of the weights as they are, over the same texts."""
        shared = (self.kg, self.texts, self.towers.tokenizer)
        model = copy.deepcopy(self, {id(part): part for part in shared} | {id(self._collate): None})
        return model.eval()

    def save(self, folder: Path) -> None:
        """The towers as transformers models with their tokenizer, and the loss's parameters."""
        folder.mkdir(parents=True, exist_ok=True)
        self.towers.save(folder)
        parameters = {name: p.detach().cpu() for name, p in self.contrastive.named_parameters()}
        if parameters:
            save_file(parameters, folder / "loss.safetensors")

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
        assert isinstance(config, TextModelConfig)
        model = cls(kg, config, Towers.load(folder, config.encoder), texts=texts)
        file = folder / "loss.safetensors"
        if file.exists():
            own = model.contrastive.state_dict()  # a loss of the user's may have had others, or of other shapes
            saved = {name: tensor for name, tensor in load_file(file).items() if name in own}
            model.contrastive.load_state_dict({n: t for n, t in saved.items() if t.shape == own[n].shape}, strict=False)
        return model.to(device).eval()
