"""Small things to train: a graph with learnable texts, a text model on the tiny backbone, and a batch for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models import EncoderConfig, LossConfig, StepContext, TextModel, TextModelConfig
from satkgc.models.text.collate import Collate, TextBatch
from satkgc.processes import Processes
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.text import TextConfig


def small_graph(seed: int = 0, entities: int = 40, triples: int = 160) -> KnowledgeGraph:
    """Entities of five kinds, which their names tell; a relation leads from one kind to the next but so many."""
    rng = np.random.default_rng(seed)
    names = [f"{'aeiou'[i % 5] * 4} {i}" for i in range(entities)]
    heads, relations = rng.integers(0, entities, triples), rng.integers(0, 3, triples)
    tails = 5 * rng.integers(0, entities // 5, triples) + (heads + relations + 1) % 5
    rows = rng.permutation(np.unique(np.stack([heads, relations, tails], 1), axis=0).astype(np.int32))
    ids = [pa.array(f"{kind}{i}" for i in range(n)) for kind, n in (("e", entities), ("r", 3))]
    descriptions = ["of a " + name[::-1] * (i % 3) for i, name in enumerate(names)]
    return KnowledgeGraph.from_arrays(
        "small",
        Vocabulary.build("entity", ids[0], pa.array(names), pa.array(descriptions)),
        Vocabulary.build("relation", ids[1], pa.array(["relation a", "relation b", "the c"]), pa.array([""] * 3)),
        *(rows[:-20], rows[-20:-10], rows[-10:]),
    )


class Task:
    """Everything that a step of the text model takes, from one seed."""

    def __init__(self, backbone, loss=None, batch_size=16, dropout=0.1, **encoder) -> None:
        self.kg = small_graph()
        config = TextModelConfig(
            text=TextConfig(max_tokens=30),
            encoder=EncoderConfig(backbone=str(backbone), dropout=dropout, **encoder),
            loss=loss or LossConfig(proximity="paper", beta=0.1, frequency=True),
        )
        with torch.random.fork_rng():
            torch.manual_seed(1)  # the pooled vectors of a random model are all alike without some noise on top
            self.model = TextModel(self.kg, config).train()
            for parameter in self.model.towers.parameters():
                parameter.data += 0.1 * torch.randn_like(parameter)
        self.towers, self.texts = self.model.towers, self.model.texts
        sampling = SamplingConfig(batch_size=batch_size, sampler="rwr")
        self.batch = make_sampler(self.kg, sampling, 0, self.model.needs).draw(0)

    def collate(self, chunk_tokens: int | None = None, processes: Processes | None = None) -> TextBatch:
        """The batch of the first step, prepared."""
        return Collate(self.kg, self.texts, self.towers.pack, chunk_tokens, processes)(self.batch)

    def step(
        self,
        chunk_tokens: int | None = None,
        processes: Processes | None = None,
        seed: int = 7,
        precision: torch.dtype = torch.float32,
        cache: bool = True,
    ) -> dict[str, torch.Tensor]:
        """The loss and all gradients of the first step, then cleared; chunks are encoded twice, if `cache`."""
        self.towers.config = self.towers.config.replace(chunk_tokens=chunk_tokens if cache else None)
        context = StepContext(seed, precision, processes or Processes())
        metrics = self.model.backward(self.collate(chunk_tokens, processes), context)
        return {"loss": metrics["loss"], **self.gradients()}

    def gradients(self) -> dict[str, torch.Tensor]:
        """The gradients that lie at the parameters, which are then cleared."""
        named = dict(self.model.named_parameters())
        gradients = {name: p.grad.clone() for name, p in named.items() if p.grad is not None}
        self.model.zero_grad(set_to_none=True)
        return gradients


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float = 1e-5) -> None:
    """The same names, and values that agree to within rounding."""
    assert one.keys() == other.keys()
    assert one
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=1e-3, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")
