"""Every kind of model at its smallest, and one more that is not the package's: what test_common tries.

In a module of its own, since processes that it starts import it: it must not take long.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from satkgc.evaluation import evaluate
from satkgc.models import (
    INTERACTIONS,
    MODELS,
    EmbeddingConfig,
    EmbeddingModel,
    EncoderConfig,
    Model,
    StepContext,
    load_tokenizer,
)
from satkgc.processes import Processes
from satkgc.sampling import Needs, SamplingConfig, make_sampler
from satkgc.settings import Settings
from satkgc.text import TextConfig, Texts
from tasks import small_graph

# The smallest settings of each kind; a backbone is there for those that want one.
SMALL = {
    "embedding": lambda backbone: {"dim": 8, "scale": 0.5, "n3": 0.01, "relation_loss": 0.5, "dropout": 0.1},
    "frozen": lambda backbone: {
        "encoder": {"backbone": str(backbone)},
        "text": {"max_tokens": 30, "neighbours": 0},
        "relation_dim": 8,
        "hidden": 16,
        "negatives": 12,
    },
    "paths": lambda backbone: {"dim": 4, "layers": 2},
    "star": lambda backbone: {
        "encoder": {"backbone": str(backbone), "dropout": 0.1},
        "text": {"max_tokens": 30},
        "negatives": 3,
    },
    "text": lambda backbone: {
        "encoder": {"backbone": str(backbone), "dropout": 0.1},
        "text": {"max_tokens": 30, "neighbours": 0},
        "loss": {"proximity": "paper", "frequency": True},
    },
    "toy": lambda backbone: {},
}
# The other interactions, by the names of their recipes: kinds of their own for the tests.
INTERACTION = {name: f"embedding, {name}" for name in INTERACTIONS if name != EmbeddingConfig().interaction}
for name, kind in INTERACTION.items():
    SMALL[kind] = lambda backbone, name=name: {"interaction": name, "dim": 8, "scale": 0.5, "n3": 0.01, "dropout": 0.1}


class ToyConfig(Settings):
    section: ClassVar[str] = "model"
    kind: Literal["toy"] = "toy"
    dim: int = 8


class Toy(Model):
    """DistMult with explicit negatives: what the interface's own `backward`, `save` and `load` are tried with."""

    Config = ToyConfig
    needs = Needs(negatives=4)

    def __init__(self, kg, config):
        super().__init__(kg, config)
        self.entity = nn.Parameter(torch.randn(kg.num_entities, config.dim))
        self.relation = nn.Parameter(torch.randn(2 * kg.num_relations, config.dim))

    def loss(self, batch):
        heads, relations, tails, negatives = (
            torch.from_numpy(part).long() for part in (batch.heads, batch.relations, batch.tails, batch.negatives)
        )
        queries = self.entity[heads] * self.relation[relations]  # (B, dim)
        positive = (queries * self.entity[tails]).sum(1)
        negative = torch.einsum("bd,bkd->bk", queries, self.entity[negatives])
        loss = functional.softplus(-positive).mean() + functional.softplus(negative).mean()
        return loss, {"positive_score": positive.detach().mean()}

    @torch.no_grad()
    def score(self, questions, candidates=None):
        entities, relations = (torch.from_numpy(part).long() for part in (questions.entities, questions.relations))
        queries = self.entity[entities] * self.relation[relations]
        if candidates is None:
            return queries @ self.entity.T
        return torch.einsum("qd,qkd->qk", queries, self.entity[torch.from_numpy(candidates).long()])


TRAINED = {name: kind for name, kind in MODELS.items() if name != "fused"}  # the rest is made of these
KINDS = {**TRAINED, "toy": Toy, **dict.fromkeys(INTERACTION.values(), EmbeddingModel)}
KG = small_graph()


def make(kind, backbone):
    """A model with weights that tell entities apart, from one seed."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = KINDS[kind](KG, KINDS[kind].Config(**SMALL[kind](backbone)))
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def draw(model, step=0):
    """A batch as it comes out of a sampler."""
    return make_sampler(KG, SamplingConfig(batch_size=32, sampler="random"), 0, model.needs).draw(step)


def gradients_of(model):
    """The gradients that lie at the parameters, which are then cleared."""
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return gradients


# What several processes must compute as one does: a step of each kind without dropout, and one of the text model with
# it, which is drawn by chunk and so the same however many processes share the chunks.
STEPS = [*KINDS, CHUNKED := "text, in chunks"]
BY_FOUR = ["text", "toy", CHUNKED]  # one with vectors, one with scores: what four share is no other code
CUT_ALIKE = 5  # a step whose texts are cut into as many chunks for one process as for two and four


def step_of(name, backbone, processes):
    """The loss and the gradients of a step."""
    model = make("text" if name == CHUNKED else name, backbone).eval()
    if name == CHUNKED:
        encoder = model.config.encoder.replace(chunk_tokens=84)
        model.train().config = model.config.replace(encoder=encoder)
        model.towers.config = encoder
    context = StepContext(processes=processes)
    model.prepare_training(context)
    batch = draw(model, CUT_ALIKE if name == CHUNKED else 0)
    metrics = model.backward(model.collate(batch), context)
    return {"loss": metrics["loss"], **gradients_of(model)}


def ranks_of(name, backbone, processes):
    """The filtered counts of a model's evaluation, in both directions."""
    report = evaluate(make(name, backbone), KG, "valid", processes=processes)
    return {
        f"{direction}.{part}": torch.from_numpy(getattr(ranks, part).copy())
        for direction, ranks in report.ranks.items()
        for part in ("greater", "equal", "candidates")
    }


def tokens_of(backbone, processes):
    """What is tokenised of the graph, each process a share of it."""
    texts = Texts(KG, load_tokenizer(str(backbone), EncoderConfig()), TextConfig(max_tokens=30), processes=processes)
    tokens = texts.tokens
    arrays = (*tokens.texts, *tokens.names, tokens.lists)
    return {str(place): torch.from_numpy(array.copy()) for place, array in enumerate(arrays)}


def one_process(rank, worlds, folder, backbone):
    """What each of several processes does: the same batches, shared steps, its own view of the results."""
    torch.set_num_threads(1)
    for world in (size for size in worlds if rank < size):
        torch.distributed.init_process_group("gloo", f"file://{folder}/store-{world}", rank=rank, world_size=world)
        processes = Processes(rank, world)
        for name in STEPS if world == 2 else BY_FOUR:
            save_file(step_of(name, backbone, processes), f"{folder}/{world}-{name}-{rank}.safetensors")
        for name in KINDS if world == 2 else BY_FOUR[:-1]:
            save_file(ranks_of(name, backbone, processes), f"{folder}/{world}-{name}-{rank}-ranks.safetensors")
        save_file(tokens_of(backbone, processes), f"{folder}/{world}-tokens-{rank}.safetensors")
        assert processes.any(rank == 1)
        assert not processes.any(False)
        torch.distributed.destroy_process_group()
