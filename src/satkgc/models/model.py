"""What a model is: something that scores how well entities answer questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor, nn

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models.rejections import Rejections
from satkgc.processes import Processes
from satkgc.sampling import Batch, Needs
from satkgc.settings import Settings

Metrics = dict[str, Tensor]  # named numbers of a step, tensors of shape (): reading one makes the host wait for the GPU


@dataclass(frozen=True)
class Fact:
    """One triple of a new entity, seen from it."""

    relation: int  # directed: r where the new entity is the head, r + R where it is the tail
    entity: int
    name: str  # of that entity


@dataclass(frozen=True)
class NewEntityText:
    """An entity that the graph does not have, in words, and what is known of it."""

    name: str
    description: str = ""
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs (entity, directed relation): which entities stand across? The relation r + R asks for the heads of r.

    An entity E + i, beyond the graph's E, is the i-th of `new`.
    """

    entities: Int32  # (Q,)
    relations: Int32  # (Q,) directed
    new: Sequence[NewEntityText] = ()

    def __len__(self) -> int:
        return len(self.entities)

    def select(self, rows: Any) -> Questions:
        """Some of them."""
        return Questions(self.entities[rows], self.relations[rows], self.new)


class ModelConfig(Settings):
    """The settings of a model: each kind extends it with its own, and `kind` is its name in `MODELS`."""

    section: ClassVar[str] = "model"
    execution: ClassVar[frozenset[str]] = frozenset()
    """Settings that change how a run is carried out and not what comes of it, as recipes name them: a resumed run may
    change these."""
    saves_memory: ClassVar[str | None] = None
    """The setting that, when lowered, takes less memory for a batch of the same size, if there is one."""

    shape: ClassVar[frozenset[str]] = frozenset()
    """Settings without which the weights of one model are of no use to another: a run begins from another only where
    these are the same."""

    kind: str = "text"

    @classmethod
    def variant(cls, values: Mapping[str, Any]) -> type[ModelConfig]:
        """The settings of the kind that is named, for the base class of all kinds."""
        from satkgc.models.registry import MODELS  # models are made of settings, so these are imported first

        if cls is not ModelConfig:
            return cls
        kind = values.get("kind", "text")
        if kind not in list(MODELS):
            raise SatkgcError(f"model.kind is {kind!r}", remedy=f"it takes one of {', '.join(MODELS)}")
        return MODELS[kind].Config


@dataclass(frozen=True)
class StepContext:
    """What a training step depends on besides its batch."""

    seed: int = 0
    precision: torch.dtype = torch.float32  # of matrix products; weights are float32
    processes: Processes = field(default_factory=Processes)
    tf32: bool = False  # whether a GPU rounds products of float32
    cache: Path | None = None  # a folder in which a model may keep, until the run is finished, what takes it long

    def autocast(self) -> Any:
        """The precision as a context."""
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self.processes.device.type, self.precision)

    def seed_step(self, *words: int) -> None:
        """Random numbers of a part of a step, from the seed and these words.

        `torch.manual_seed` also seeds devices that are not in use, which takes it longer than a small step.
        """
        seed = step_seed(self.seed, *words)
        torch.default_generator.manual_seed(seed)
        if self.processes.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    @contextmanager
    def rounded_products(self) -> Iterator[None]:
        """TF32 for forward and backward, if that is wanted and there is a GPU; scores outside of it stay exact."""
        before = torch.get_float32_matmul_precision()
        if self.tf32 and self.processes.device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


class Model(nn.Module, ABC):
    """Scores how well entities answer questions. A new kind of model is one file, and one line in `MODELS`.

    To write one: a settings class, the parameters in `__init__`, `loss`, `score`. That is enough to train, validate,
    evaluate, complete, propose and serve it. Its parameters are saved as safetensors by their names. What else it has
    belongs into `save` and `load`. What needs other inputs than ids adds them in `collate`, on a prefetch thread.

    A model belongs to one graph: entities and relations are the graph's own numbers. Directed relations run to 2R, the
    inverse of r being r + R, so that one method answers for tails and heads.
    """

    Config: ClassVar[type[ModelConfig]]
    needs: Needs = Needs()  # what batches must carry besides ids
    reads_text: bool = False  # whether it can be asked about a NewEntityText
    reads_facts: bool = False  # whether it can if that has facts
    rejections: Rejections | None = None  # statements to learn as wrong, where `logits` can say how likely they are
    entity_rows: ClassVar[tuple[str, ...]] = ()  # ends of the names of parameters that have a row for each entity
    relation_rows: ClassVar[
        tuple[str, ...]
    ] = ()  # the same of directed relations; a row may be several of the tensor's
    optional_weights: ClassVar[tuple[str, ...]] = ()  # beginnings of names that another model of the kind may lack

    def __init__(self, kg: KnowledgeGraph, config: Settings) -> None:
        super().__init__()
        self.kg = kg
        self.config: Any = config

    @abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, Metrics]:
        """The loss of a collated batch, a tensor of shape (), and named numbers for the log and the display."""

    @abstractmethod
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """How well entities answer, higher is better, float32. Whoever calls it wants no gradients.

        Without candidates of all entities, (Q, E); else of each question's own, (Q, K). A candidate E + i is the i-th
        new entity of the questions, where the model can be asked about those.
        """

    def score_held_out(self, questions: Questions, answers: Int32) -> Tensor:
        """As `score` of all entities, as if the graph did not have each question's answer: what the model reads of the
        graph leaves these triples out, as in training. What it has learnt of them stays.  # (Q,), (Q,) → (Q, E)

        A model that reads texts with neighbours, or paths, replaces this.
        """
        return self.score(questions)

    def logits(self, entities: Tensor, relations: Tensor) -> Tensor:
        """What the softmax of the loss is taken of, with gradients: of all entities, for each question; −∞ where one is
        no candidate. A model whose loss compares answers with all entities has it; it learns from rejected statements.
        # (Q,), (Q,) directed → (Q, E)"""
        raise NotImplementedError

    @classmethod
    def learns_rejections(cls) -> bool:
        """Whether it has `logits`, and adds the gradients of `loss` as all do."""
        return cls.logits is not Model.logits

    def check_question(self, entity: int, relation: int) -> None:
        """Refuse in one line an entity or a directed relation of the graph that it has learnt nothing of.

        For questions that people ask; evaluation asks them all.
        """

    def knows_questions(self, questions: Questions) -> Bool:
        """Of which questions it has something to say; a mixture leaves it out of the others.  # (Q,)

        By default those about the graph's entities, and about new ones if it reads texts.
        """
        return (questions.entities < self.kg.num_entities) | self.reads_text

    def knows_entities(self) -> Bool:
        """Of which of the graph's entities, as answers, it has something to say.  # (E,)"""
        return np.ones(self.kg.num_entities, bool)

    def collate(self, batch: Batch) -> Any:
        """What `loss` takes of a sampler's batch. It runs ahead on other threads and must not change the model."""
        return batch

    def prepare_training(self, context: StepContext) -> None:
        """Called once before the first batch is collated, with what all steps share."""

    def backward(self, batch: Any, context: StepContext) -> Metrics:
        """Add the gradients of the batch's loss to the parameters, on every process the same; "loss" and the metrics.

        A model whose batch is too large for one graph of gradients replaces this. The default has every process compute
        the whole batch, which is right for small models.
        """
        context.seed_step(batch.step)
        with context.autocast():
            loss, metrics = self.loss(batch)
            if self.rejections is not None:
                metrics["rejected"] = (wrong := self.rejections.loss(self, batch.step)).detach()
                loss = loss + wrong
        check_loss(loss, type(self).__qualname__)
        loss.backward()  # type: ignore[no-untyped-call]
        return {"loss": loss.detach(), **metrics}

    @torch.no_grad()
    def begin_from(self, other: Model) -> None:
        """Take the weights of a trained model of the same kind, which may be of another graph.

        Rows of entities and relations are matched by id; those of which it has learnt nothing stay as they are.
        """
        entities_learnt, relations_learnt = other.learnt()
        entities = matched_rows(self.kg.entities, other.kg.entities, entities_learnt)
        new, old = matched_rows(self.kg.relations, other.kg.relations, relations_learnt)
        directed = (
            np.concatenate([new, new + self.kg.num_relations]),
            np.concatenate([old, old + other.kg.num_relations]),
        )
        theirs = dict(other.named_parameters())
        for name, parameter in self.named_parameters():
            source, rows, count = theirs.get(name), None, (0, 0)
            if name.endswith(self.entity_rows or ("\0",)):
                rows, count = entities, (self.kg.num_entities, other.kg.num_entities)
            elif name.endswith(self.relation_rows or ("\0",)):
                rows, count = directed, (2 * self.kg.num_relations, 2 * other.kg.num_relations)
            if source is not None and rows is not None:
                own = parameter.view(count[0], -1)  # a view: what is written here is the parameter's
                taken = source.detach().view(count[1], -1)[torch.from_numpy(rows[1]).to(source.device)]
                own[torch.from_numpy(rows[0]).to(own.device)] = taken.to(own.device)
            elif source is not None and source.shape == parameter.shape:
                parameter.copy_(source)
            elif not name.startswith(self.optional_weights or ("\0",)):
                remedy = "begin from a run of the same settings, or anew"
                raise SatkgcError(f"the weights {name} are not those of this model", remedy=remedy)

    def learnt(self) -> tuple[Bool, Bool]:
        """Of which entities (E,) and relations (R,) it has learnt something, where it has rows for them."""
        return np.ones(self.kg.num_entities, bool), np.ones(self.kg.num_relations, bool)

    @torch.no_grad()
    def grow(self, kg: KnowledgeGraph) -> Self:
        """The same model over a graph that has grown, whose old members have their old numbers; it is not trained.

        Rows of which nothing was learnt are zeros: by that they can be told.
        """
        model = self._over(kg).to(self.device).eval()
        model.begin_from(self)
        sizes = kg.num_entities, kg.num_relations
        new = [np.append(~own, np.ones(size - len(own), bool)) for own, size in zip(self.learnt(), sizes, strict=True)]
        entities, relations = (torch.from_numpy(rows).to(self.device) for rows in new)
        for name, parameter in model.named_parameters():
            if name.endswith(self.entity_rows or ("\0",)):
                parameter.view(len(entities), -1)[entities] = 0
            elif name.endswith(self.relation_rows or ("\0",)):
                parameter.view(2, len(relations), -1)[:, relations] = 0
        return model

    def _over(self, kg: KnowledgeGraph) -> Self:
        """A fresh one over another graph, which may share what does not depend on the graph."""
        return type(self)(kg, self.config)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    def save(self, folder: Path) -> None:
        """Write the parameters into a folder; the caller makes it atomic by writing to a sibling first."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(tensors, folder / "model.safetensors")

    @classmethod
    def load(cls, folder: Path, kg: KnowledgeGraph, config: Settings, device: torch.device | str = "cpu") -> Self:
        """Open what `save` wrote."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        model = cls(kg, config)
        try:
            model.load_state_dict(load_file(folder / "model.safetensors"))
        except (OSError, SafetensorError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise SatkgcError(f"cannot open the model: {reason}", where=folder, remedy="copy the run again") from error
        return model.to(device).eval()


def matched_rows(ours: Vocabulary, theirs: Vocabulary, learnt: Bool) -> tuple[Int64, Int64]:
    """Places of the members that both have, by id, of theirs those that are learnt.  # (n,), (n,)"""
    places = pc.index_in(ours.ids, value_set=theirs.ids)
    new = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    old = places.drop_null().to_numpy().astype(np.int64)
    return new[learnt[old]], old[learnt[old]]


def step_seed(*words: int) -> int:
    """A seed from several numbers: random numbers depend on them alone, so that a resumed run draws the same."""
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def check_loss(loss: Any, name: str) -> None:
    """Refuse what cannot be trained on, by the name of the loss that gave it."""
    if not isinstance(loss, Tensor) or loss.ndim or not loss.requires_grad:
        value = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        remedy = "return one number, a tensor of shape () that depends on the parameters"
        raise SatkgcError(f"the loss {name} gave {value}", remedy=remedy)
