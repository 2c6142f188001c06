"""The path model: how strongly do paths of the graph, read with the question's relation, lead from it to an entity?

Message passing as in NBFNet (Zhu et al., 2021). A question (h, r, ?) puts the embedding of r at h. Layer by layer every
entity gathers what its neighbours hold, each message weighed by its edge's relation as the question sees it. What has
arrived in the end is scored. Two things differ from NBFNet: the loss is a softmax over all entities, and messages are
never stored (`aggregate`). There are no entity embeddings: new entities and new graphs of the same relations can be
asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Bool, Int32
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models.model import Metrics, Model, ModelConfig, Questions
from satkgc.models.paths.aggregate import STATISTICS, aggregate, aggregate_plain
from satkgc.models.paths.graph import MessageGraph, find_edges
from satkgc.models.paths.update import update
from satkgc.sampling import Batch
from satkgc.settings import Settings

QUESTIONS = 64  # scored at a time, at most
NUMBERS = 1 << 27  # of the states that are held at once when scoring

Aggregate = Callable[[Tensor, Tensor, Tensor, Tensor, MessageGraph], Tensor]


class PathConfig(ModelConfig):
    """Settings of the path model."""

    kind: Literal["paths"] = "paths"
    dim: int = Field(default=32, ge=1)
    """Numbers that an entity's state has."""
    layers: int = Field(default=6, ge=1)
    """Length of the longest path that is followed."""
    exclude: Literal["pair", "edge"] = "pair"
    """Which edges a training step leaves out of its graph: all between the two ends of a triple that it asks, or the
    triple alone (and its inverse). Otherwise every answer would be one hop away."""


@dataclass(frozen=True, eq=False)
class PathBatch:
    """A sampler's batch with what its loss leaves out."""

    step: int
    heads: Tensor  # (B,)
    relations: Tensor  # (B,) directed
    tails: Tensor  # (B,)
    edges: Tensor  # (n,) edges of the graph that are left out
    rows: Tensor  # (m,) questions, and
    columns: Tensor  # (m,) entities that are known to answer them too

    def __len__(self) -> int:
        return len(self.heads)


class PathLayer(nn.Module):
    """One hop: aggregate what neighbours hold, and update every state by it (Corso et al., 2020)."""

    gather: Aggregate = staticmethod(aggregate)
    update_states = staticmethod(update)

    def __init__(self, dim: int, num_relations: int) -> None:
        super().__init__()
        self.weights = nn.Linear(dim, num_relations * dim)  # of each edge's relation, given the question's
        self.own = nn.Linear(dim, dim)
        self.update = nn.Linear(STATISTICS * dim, 3 * dim, bias=False)  # plain, times log-degree, by log-degree
        self.norm = nn.LayerNorm(dim)
        nn.init.normal_(self.weights.weight, std=0.02)
        nn.init.normal_(self.weights.bias, std=0.5)
        bound = ((1 + 3 * STATISTICS) * dim) ** -0.5
        for parameter in (self.own.weight, self.own.bias, self.update.weight):
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self, states: Tensor, queries: Tensor, heads: Tensor, graph: MessageGraph, edge_weights: Tensor | None = None
    ) -> Tensor:
        """# states (N, B, D), queries (B, D), heads (B,) → (N, B, D)"""
        nodes, batch, dim = states.shape
        weights = self.weights(queries).view(batch, -1, dim).transpose(0, 1)  # (2R, B, D)
        parts = states, weights.to(states.dtype), queries.to(states.dtype), heads, graph
        statistics = self.gather(*parts) if edge_weights is None else aggregate_plain(*parts, edge_weights)
        changes = self.update(statistics.flatten(2)).view(nodes, batch, 3, dim)
        return self.update_states(states, self.own(states), changes, graph.scale, self.norm)


class PathModel(Model):
    """Scores entities by what arrives at them from the question's entity. It knows relations, not entities."""

    Config = PathConfig

    def __init__(self, kg: KnowledgeGraph, config: Settings) -> None:
        super().__init__(kg, config)
        dim = self.config.dim
        self.queries = nn.Embedding(2 * kg.num_relations, dim)
        self.layers = nn.ModuleList(PathLayer(dim, 2 * kg.num_relations) for _ in range(self.config.layers))
        self.hidden = nn.Linear(2 * dim, 2 * dim)
        self.output = nn.Linear(2 * dim, 1)
        self._graphs: dict[str, MessageGraph] = {}

    @property
    def training_graph(self) -> MessageGraph:
        """The training triples and their inverses, where the parameters are."""
        return self._message_graph("train")

    @property
    def graph(self) -> MessageGraph:
        """The same of all facts: what questions are answered from."""
        return self._message_graph("facts" if len(self.kg.inference) else "train")

    def forward(
        self, heads: Tensor, relations: Tensor, graph: MessageGraph, edge_weights: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Scores of all nodes of a graph; weights of its edges, by layer, are for explaining.  # → (B, N), float32"""
        queries = self.queries(relations)  # (B, D)
        half = heads.is_cuda and torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if half else torch.float32
        states = torch.zeros(graph.num_nodes, *queries.shape, dtype=dtype, device=heads.device)
        states = states.index_put((heads, torch.arange(len(heads), device=heads.device)), queries.to(dtype))
        for number, layer in enumerate(self.layers):
            weights = None if edge_weights is None else edge_weights[number]
            states = layer(states, queries, heads, graph, weights)
        with torch.autocast(heads.device.type, enabled=False):  # in half precision scores would tie
            own, question = self.hidden.weight.chunk(2, 1)
            hidden = functional.linear(states.float(), own)  # (N, B, 2D)
            hidden = functional.relu(hidden + functional.linear(queries.float(), question, self.hidden.bias))
            return self.output(hidden).squeeze(-1).T

    def collate(self, batch: Batch) -> PathBatch:
        """With the edges to leave out and the answers that are known besides the one to be found."""
        known = [self.kg.known_train.answers(h, r) for h, r in zip(batch.heads, batch.relations, strict=True)]
        rows = np.repeat(np.arange(len(known)), [len(answers) for answers in known])
        columns = np.concatenate(known)
        other = columns != batch.tails[rows]
        pairs = np.stack([batch.heads, batch.tails], 1)
        directed = batch.relations if self.config.exclude == "edge" else None
        edges = find_edges(*self._edges, pairs, directed)
        arrays = batch.heads, batch.relations, batch.tails, edges, rows[other], columns[other]
        return PathBatch(batch.step, *(self._pin(array) for array in arrays))

    def loss(self, batch: PathBatch) -> tuple[Tensor, Metrics]:
        """Cross-entropy over all entities but the other known answers."""
        tensors = (batch.heads, batch.relations, batch.tails, batch.edges, batch.rows, batch.columns)
        heads, relations, tails, edges, rows, columns = (part.to(self.device, non_blocking=True) for part in tensors)
        scores = self(heads, relations, self.training_graph.without(edges))
        masked = scores.index_put((rows, columns), scores.new_tensor(float("-inf")))
        return functional.cross_entropy(masked, tails), {}

    @torch.no_grad()
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Of all entities, or of each question's candidates."""
        self._refuse_new(questions, candidates)
        heads, relations = (self._ids(part) for part in (questions.entities, questions.relations))
        size = max(1, min(QUESTIONS, NUMBERS // (self.graph.num_nodes * self.config.dim)))
        blocks = [
            self(heads[start : start + size], relations[start : start + size], self.graph)
            for start in range(0, len(heads), size)
        ]
        scores = torch.cat(blocks) if blocks else torch.empty(0, self.kg.num_entities, device=self.device)
        return scores if candidates is None else scores.gather(1, self._ids(candidates))

    def knows_questions(self, questions: Questions) -> Bool:
        """Those from whose entity paths begin, by relations that training has seen."""
        frequency = np.bincount(self.kg.train[:, 1], minlength=self.kg.num_relations)
        known = np.append(self.knows_entities(), False)[np.minimum(questions.entities, self.kg.num_entities)]
        return np.asarray(known & (frequency[questions.relations % self.kg.num_relations] > 0))

    def knows_entities(self) -> Bool:
        """Those that paths can lead to."""
        return np.asarray(self.kg.fact_adjacency.degree > 0)

    def _message_graph(self, triples: str) -> MessageGraph:
        graph = self._graphs.get(triples)
        if graph is None:
            graph = MessageGraph.build(getattr(self.kg, triples), self.kg.num_entities, self.kg.num_relations)
        if graph.source.device != self.device:
            graph = graph.to(self.device)
        self._graphs[triples] = graph
        return graph

    def _refuse_new(self, questions: Questions, candidates: Int32 | None) -> None:
        entities = [questions.entities] if candidates is None else [questions.entities, candidates]
        if any(int(part.max(initial=0)) >= self.kg.num_entities for part in entities):
            what = "the path model is asked about an entity that its graph does not have"
            raise SatkgcError(what, remedy="ask about one of the graph's, or train a model that reads text")

    @property
    def _edges(self) -> tuple[Any, Any, Any]:
        """The training graph's edges as arrays, for `find_edges`."""
        if not hasattr(self, "_edge_arrays"):
            graph = self.training_graph
            self._edge_arrays = graph.ptr.cpu().numpy(), graph.source.cpu().numpy(), graph.relation.cpu().numpy()
        return self._edge_arrays

    def _pin(self, array: Any) -> Tensor:
        tensor = torch.from_numpy(np.asarray(array, np.int64))
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def _ids(self, array: Int32) -> Tensor:
        return torch.from_numpy(np.asarray(array, np.int64)).to(self.device)
