"""Small things to train: a graph with learnable texts, towers from the tiny backbone, and a batch of samples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from satkgc.training.collate import Collate, Samples
from satkgc.training.step import backward

from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models.text import EncoderConfig, Objective, ObjectiveConfig, Towers
from satkgc.processes import Processes
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.text import TextConfig, Texts


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
    """Everything that a step takes, from one seed."""

    def __init__(self, backbone, objective=None, batch_size=16, dropout=0.1, **encoder) -> None:
        self.kg = small_graph()
        self.config = objective or ObjectiveConfig(proximity="all", beta=0.1, frequency=True)
        with torch.random.fork_rng():
            torch.manual_seed(1)  # the pooled vectors of a random model are all alike without some noise on top
            self.towers = Towers.create(EncoderConfig(backbone=str(backbone), dropout=dropout, **encoder)).train()
            for parameter in self.towers.parameters():
                parameter.data += 0.1 * torch.randn_like(parameter)
        self.objective = Objective(self.config)
        self.texts = Texts(self.kg, self.towers.tokenizer, TextConfig(max_tokens=30))
        self.sampler = make_sampler(self.kg, SamplingConfig(batch_size=batch_size, sampler="rwr"), 0)

        self.batch = self.sampler.draw(0)

    def samples(self, chunk_tokens: int | None = None, ranks: Processes | None = None) -> Samples:
        """The samples of the first step."""
        return Collate(self.kg, self.texts, self.config, self.towers.pack, chunk_tokens, ranks)(self.batch)

    def step(
        self, samples: Samples | None = None, chunk_tokens: int | None = None, ranks: Processes | None = None, **how
    ):
        """The loss and all gradients of the first step, which are then cleared."""
        samples = samples or self.samples(chunk_tokens, ranks)
        how = {"seed": 7, "keep": chunk_tokens is None, "ranks": ranks} | how
        return {"loss": backward(self.towers, self.objective, samples, **how), **self.gradients()}

    def gradients(self) -> dict[str, torch.Tensor]:
        """The gradients that lie at the parameters, which are then cleared."""
        named = [*self.towers.named_parameters(), *self.objective.named_parameters()]
        found = {name: p.grad.clone() for name, p in named if p.grad is not None}
        for _, parameter in named:
            parameter.grad = None
        return found


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float = 1e-5) -> None:
    """The same names, and values that agree to within rounding."""
    assert one.keys() == other.keys()
    assert one
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=1e-3, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")
