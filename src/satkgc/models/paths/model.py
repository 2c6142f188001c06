"""The path model: how strongly do paths of the graph, read with the question's relation, lead from it to an entity?

Message passing as in NBFNet (Zhu et al., 2021). A question (h, r, ?) puts the embedding of r at h. Layer by layer every
entity gathers what its neighbours hold, each message weighed by its edge's relation as the question sees it. What has
arrived in the end is scored. Two things differ from NBFNet: the loss is a softmax over all entities, and messages are
never stored (`aggregate`). There are no entity embeddings: new entities and new graphs of the same relations can be
asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.manifest import read_json, write_json
from satkgc.models.model import Metrics, Model, ModelConfig, NewEntityText, Questions
from satkgc.models.paths.cpu_layers import cpu_layers
from satkgc.models.paths.graph import MessageGraph, find_edges, mean_log_degree
from satkgc.models.paths.layer import PathLayer
from satkgc.models.paths.neighbourhood import neighbourhood, triples_within
from satkgc.sampling import Batch
from satkgc.settings import Settings

QUESTIONS = 64  # scored at a time, at most
NUMBERS = 1 << 27  # of the states that are held at once when scoring
HIDDEN = 1 << 26  # of them, read out at a time
DEGREES = "degrees.json"


class PathConfig(ModelConfig):
    """Settings of the path model."""

    shape: ClassVar[frozenset[str]] = frozenset(["model.dim", "model.layers"])

    kind: Literal["paths"] = "paths"
    dim: int = Field(default=32, ge=1)
    """Numbers that an entity's state has."""
    layers: int = Field(default=6, ge=1)
    """Length of the longest path that is followed."""
    exclude: Literal["edge", "pair"] = "edge"
    """Which edges a training step leaves out of its graph, lest every answer be one hop away: the triple that it asks
    (and its inverse), or all between the two ends, for graphs whose held-out ends no training triple joins."""
    neighbourhood: int = Field(default=0, ge=0)
    """Answer a question from so many entities, those nearest to it by personalised PageRank; 0: from the whole graph.
    All others rank behind them. For graphs too large to go over for every question."""
    execution: ClassVar[frozenset[str]] = frozenset(["model.neighbourhood"])


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


class PathModel(Model):
    """Scores entities by what arrives at them from the question's entity. It knows relations, not entities."""

    Config = PathConfig
    relation_rows = ("queries.weight", ".weights.weight", ".weights.bias")
    reads_facts = True
    plain = False  # by PyTorch's own gather and scatter, for comparison

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
        """The training triples and their inverses, where the parameters are, among the entities that they join and one
        that stands for all others, which no step can tell apart."""
        return self._message_graph("training" if self._others else "train")

    @property
    def graph(self) -> MessageGraph:
        """All facts among all entities: what questions are answered from."""
        return self._message_graph("facts" if len(self.kg.inference) else "train")

    def forward(
        self, heads: Tensor, relations: Tensor, graph: MessageGraph, edge_weights: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Scores of all nodes of a graph; weights of its edges, by layer, are for explaining.  # → (B, N), float32"""
        queries = self.queries(relations)  # (B, D)
        if heads.is_cuda or self.plain:
            states = self._states(queries, heads, graph, edge_weights)
        else:
            states = cpu_layers(self.layers, queries, heads, graph, edge_weights)
        with torch.autocast(heads.device.type, enabled=False):  # in half precision scores would tie
            parts = [states] if torch.is_grad_enabled() else torch.split(states, max(1, HIDDEN // queries.numel()))
            return torch.cat([self._read(part, queries) for part in parts]).T

    def _read(self, states: Tensor, queries: Tensor) -> Tensor:
        """Scores of nodes from their last states.  # (n, B, D), (B, D) → (n, B)"""
        own, question = self.hidden.weight.chunk(2, 1)
        hidden = functional.linear(states.float(), own)  # (n, B, 2D)
        hidden = functional.relu(hidden + functional.linear(queries.float(), question, self.hidden.bias))
        read: Tensor = self.output(hidden)
        return read.squeeze(-1)

    def _states(
        self, queries: Tensor, heads: Tensor, graph: MessageGraph, edge_weights: Sequence[Tensor] | None
    ) -> Tensor:
        """After all layers, one by one.  # (N, B, D)"""
        half = heads.is_cuda and torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if half else torch.float32
        states = torch.zeros(graph.num_nodes, *queries.shape, dtype=dtype, device=heads.device)
        states = states.index_put((heads, torch.arange(len(heads), device=heads.device)), queries.to(dtype))
        for number, layer in enumerate(self.layers):
            weights = None if edge_weights is None else edge_weights[number]
            states = layer(states, queries, heads, graph, weights, self.plain)
        return states

    def collate(self, batch: Batch) -> PathBatch:
        """With the edges to leave out and the answers that are known besides the one to be found."""
        known = [self.kg.known_train.answers(h, r) for h, r in zip(batch.heads, batch.relations, strict=True)]
        rows = np.repeat(np.arange(len(known)), [len(answers) for answers in known])
        heads, tails, columns = (self._places(ids) for ids in (batch.heads, batch.tails, np.concatenate(known)))
        other = columns != tails[rows]
        directed = batch.relations if self.config.exclude == "edge" else None
        edges = find_edges(*self._edges, np.stack([heads, tails], 1), directed)
        arrays = heads, batch.relations, tails, edges, rows[other], columns[other]
        return PathBatch(batch.step, *(self._pin(array) for array in arrays))

    def loss(self, batch: PathBatch) -> tuple[Tensor, Metrics]:
        """Cross-entropy over all entities but the other known answers."""
        tensors = (batch.heads, batch.relations, batch.tails, batch.edges, batch.rows, batch.columns)
        heads, relations, tails, edges, rows, columns = (part.to(self.device, non_blocking=True) for part in tensors)
        scores = self(heads, relations, self.training_graph.without(edges))
        masked = scores.index_put((rows, columns), scores.new_tensor(float("-inf")))
        if self._others:
            masked = torch.cat([masked[:, :-1], masked[:, -1:] + math.log(self._others)], 1)
        return functional.cross_entropy(masked, tails), {}

    def logits(self, entities: Tensor, relations: Tensor) -> Tensor:
        """From the whole training graph, which does not have what is asked."""
        scores: Tensor = self(entities, relations, self._message_graph("train"))
        return scores

    @torch.no_grad()
    def score(self, questions: Questions, candidates: Int32 | None = None) -> Tensor:
        """Of all entities, or of each question's candidates."""
        heads, relations = (self._ids(part) for part in (questions.entities, questions.relations))
        if questions.new:
            scores = self._score_new(questions, candidates)
        elif self.answers_nearby:
            pairs = zip(questions.entities.tolist(), questions.relations.tolist(), strict=True)
            rows = [self._score_near(h, r) for h, r in pairs]
            scores = torch.stack(rows) if rows else torch.empty(0, self.kg.num_entities, device=self.device)
        else:
            scores = self._score_blocks(heads, relations, self.graph)
        return scores[:, : self.kg.num_entities] if candidates is None else scores.gather(1, self._ids(candidates))

    @torch.no_grad()
    def score_held_out(self, questions: Questions, answers: Int32) -> Tensor:
        """From a graph without the edges of the triples, for some questions at a time, as in training."""
        directed = questions.relations
        blocks = []
        if self.answers_nearby:
            for head, relation, answer in zip(questions.entities.tolist(), directed.tolist(), answers, strict=True):
                blocks.append(self._score_near(head, relation, int(answer))[None])
        else:
            size = self._block_size(self.graph.num_nodes)
            for rows in (slice(start, start + size) for start in range(0, len(directed), size)):
                part = questions.select(rows)
                graph = self._without(self.graph, part.entities, part.relations, answers[rows])
                blocks.append(self(self._ids(part.entities), self._ids(part.relations), graph))
        return torch.cat(blocks) if blocks else torch.empty(0, self.kg.num_entities, device=self.device)

    def _without(self, graph: MessageGraph, heads: Int32, directed: Int32, tails: Int32) -> MessageGraph:
        """A graph that has no edges, either way, of the triples, or of these pairs, by `exclude`."""
        pairs = np.concatenate([np.stack([heads, tails], 1), np.stack([tails, heads], 1)])
        turned = (directed + self.kg.num_relations) % (2 * self.kg.num_relations)
        relations = np.concatenate([directed, turned]) if self.config.exclude == "edge" else None
        edges = find_edges(*_edge_arrays(graph), pairs, relations)
        return graph.without(torch.from_numpy(edges).to(self.device))

    def knows_questions(self, questions: Questions) -> Bool:
        """Those from whose entity paths begin, by relations that training has seen; a new entity needs facts."""
        late = [any(self._seen[fact.relation % self.kg.num_relations] for fact in new.facts) for new in questions.new]
        known = np.concatenate([self.knows_entities(), late]).astype(bool)[questions.entities]
        return np.asarray(known & self._seen[questions.relations % self.kg.num_relations])

    def knows_entities(self) -> Bool:
        """Those that paths can lead to."""
        return self._joined

    @cached_property
    def _joined(self) -> Bool:
        """Which entities facts join to others, by relations that training has seen.  # (E,)"""
        ends = self._readable(self.kg.facts)[:, [0, 2]]
        return np.asarray(np.bincount(ends.ravel(), minlength=self.kg.num_entities) > 0)

    def check_question(self, entity: int, relation: int) -> None:
        """Training must have seen the relation."""
        relation %= self.kg.num_relations
        if not self._seen[relation]:
            what = f"training saw no triples of the relation {self.kg.relations.id(relation)!r}: no path speaks for it"
            raise SatkgcError(what, remedy="train again, or use a model that reads its name")

    def learnt(self) -> tuple[Bool, Bool]:
        """All entities, and relations that training saw."""
        return np.ones(self.kg.num_entities, bool), self._seen

    def grow(self, kg: KnowledgeGraph) -> Self:
        """Degrees are measured as before."""
        model = super().grow(kg)
        model._typical = self._typical
        return model

    def save(self, folder: Path) -> None:
        """The parameters, and what degrees are measured by: a graph that has grown since does not tell."""
        super().save(folder)
        write_json(folder / DEGREES, {"typical": self._typical})

    @classmethod
    def load(cls, folder: Path, kg: KnowledgeGraph, config: Settings, device: torch.device | str = "cpu") -> Self:
        """Open what `save` wrote; earlier versions left the degrees out, and measured them by those of all entities."""
        model = super().load(folder, kg, config, device)
        noted = (folder / DEGREES).exists()
        typical = read_json(folder / DEGREES)["typical"] if noted else mean_log_degree(model._degrees())
        model._typical = float(typical)
        return model

    @cached_property
    def _seen(self) -> Bool:
        """Which relations have training triples, and something learnt of them.  # (R,)"""
        counts = np.bincount(self.kg.train[:, 1], minlength=self.kg.num_relations)
        return (counts > 0) & self.queries.weight.any(1).cpu().numpy()[: len(counts)]

    def _readable(self, triples: Int32) -> Int32:
        """Those along which messages can go: the weights of a relation that training has not seen are noise."""
        return triples if self._seen.all() else triples[self._seen[triples[:, 1]]]

    def _message_graph(self, name: Literal["training", "train", "facts"]) -> MessageGraph:
        graph = self._graphs.get(name)
        if graph is None:
            nodes, triples = self.kg.num_entities, self.kg.facts if name == "facts" else self.kg.train
            triples = self._readable(triples)
            if name == "training":
                nodes = len(self._trained) + 1
                heads, tails = self._places(triples[:, 0]), self._places(triples[:, 2])
                triples = np.stack([heads, triples[:, 1], tails], 1)
            graph = MessageGraph.build(triples, nodes, self.kg.num_relations, typical=self._typical)
        if graph.source.device != self.device:
            graph = graph.to(self.device)
        self._graphs[name] = graph
        return graph

    @cached_property
    def _trained(self) -> Int32:
        """The entities that training triples join, ascending."""
        return np.unique(self.kg.train[:, [0, 2]])

    @property
    def _others(self) -> int:
        """How many entities training triples do not join. Without them a step would know its answers by their having no
        edges left."""
        return self.kg.num_entities - len(self._trained)

    def _places(self, entities: Int32) -> Int32:
        """Those of entities among the trained ones."""
        return np.searchsorted(self._trained, entities).astype(np.int32)

    def _score_blocks(self, heads: Tensor, relations: Tensor, graph: MessageGraph) -> Tensor:
        """Of all nodes of a graph, a few questions at a time.  # (Q, N)"""
        size = self._block_size(graph.num_nodes)
        starts = range(0, len(heads), size)
        blocks = [self(heads[i : i + size], relations[i : i + size], graph) for i in starts]
        return torch.cat(blocks) if blocks else torch.empty(0, graph.num_nodes, device=self.device)

    def _score_new(self, questions: Questions, candidates: Int32 | None) -> Tensor:
        """Of all entities and the new ones. Facts of a new entity are known to questions that ask about it or have it
        as a candidate, not to those beside them.  # (Q, E + m)"""
        size, graph = self.kg.num_entities, self._graph_with(questions.new)
        asked = questions.entities[:, None] if candidates is None else np.column_stack([questions.entities, candidates])
        row, column = np.nonzero(asked >= size)
        reads = np.zeros((len(questions), len(questions.new)), bool)  # which new entities a question has to do with
        reads[row, asked[row, column] - size] = True
        source, target = graph.source.cpu().numpy(), graph.target.cpu().numpy()
        late = np.flatnonzero((source >= size) | (target >= size))
        scores = torch.empty(len(questions), graph.num_nodes, device=self.device)
        kinds, kind = np.unique(reads, axis=0, return_inverse=True)
        for number, read in enumerate(kinds):
            rows = np.flatnonzero(kind == number)
            own = questions.select(rows)
            if not read.any():
                scores[rows, :size] = self.score(Questions(own.entities, own.relations))
                continue
            known = np.append(np.ones(size, bool), read)  # (E + m,)
            others = late[~(known[source[late]] & known[target[late]])]
            part = graph.without(torch.from_numpy(others).to(self.device))
            scores[rows] = self._score_blocks(self._ids(own.entities), self._ids(own.relations), part)
        return scores

    def _block_size(self, num_nodes: int) -> int:
        """Questions that are scored at a time."""
        return max(1, min(QUESTIONS, NUMBERS // (num_nodes * self.config.dim)))

    @property
    def answers_nearby(self) -> bool:
        """Whether questions are answered from a neighbourhood alone."""
        return 0 < self.config.neighbourhood < self.kg.num_entities

    def graph_near(self, head: int, size: int | None = None) -> tuple[Int32, MessageGraph]:
        """The neighbourhood of a question's entity: its entities, ascending, and the facts among them."""
        adjacency, facts = self.kg.fact_adjacency, self.kg.facts
        nodes = neighbourhood(adjacency, head, size or self.config.neighbourhood)
        triples = self._readable(triples_within(adjacency, facts, nodes))
        return nodes, MessageGraph.build(triples, len(nodes), self.kg.num_relations, self.device, self._typical)

    @torch.no_grad()
    def score_near(
        self, head: int, relations: Int32, size: int | None = None, held_out: int | None = None
    ) -> tuple[Int32, Tensor]:
        """Scores of a neighbourhood's entities for some questions about one entity; an answer may be held out of one.

        `size` entities, or as many as the settings say.  # (q,) → (n,), (q, n)
        """
        nodes, graph = self.graph_near(head, size)
        places = np.full(len(relations), np.searchsorted(nodes, head), np.int32)
        if held_out is not None and held_out in nodes:
            answers = np.full(len(relations), np.searchsorted(nodes, held_out), np.int32)
            graph = self._without(graph, places, relations, answers)
        return nodes, self._score_blocks(self._ids(places), self._ids(relations), graph)

    def _score_near(self, head: int, relation: int, held_out: int | None = None) -> Tensor:
        """Of all entities, from the neighbourhood of the question's; an answer may be held out.  # (E,)"""
        nodes, rows = self.score_near(head, np.array([relation], np.int32), held_out=held_out)
        scores = (rows[0].min() - 1).repeat(self.kg.num_entities)
        scores[self._ids(nodes)] = rows[0]
        return scores

    @cached_property
    def _typical(self) -> float:
        """The mean log-degree in training: degrees of every graph that is asked are measured by it."""
        return mean_log_degree(self._degrees()[self._trained])

    def _degrees(self) -> Int64:
        """In training.  # (E,)"""
        ends = self._readable(self.kg.train)[:, [0, 2]]
        return np.bincount(ends.ravel(), minlength=self.kg.num_entities)

    def _graph_with(self, new: Sequence[NewEntityText]) -> MessageGraph:
        """All facts, and those of entities that are new."""
        size, triples = self.kg.num_relations, []
        for node, entity in enumerate(new, self.kg.num_entities):
            for fact in entity.facts:
                forward = fact.relation < size
                triples.append(
                    (node, fact.relation, fact.entity) if forward else (fact.entity, fact.relation - size, node)
                )
        more = np.array(triples, np.int32).reshape(-1, 3)
        more = more[(more[:, [0, 2]] < self.kg.num_entities + len(new)).all(1)]
        triples_of_all = self._readable(np.concatenate([self.kg.facts, more]))
        return MessageGraph.build(triples_of_all, self.kg.num_entities + len(new), size, self.device, self._typical)

    @cached_property
    def _edges(self) -> tuple[Any, Any, Any]:
        """The training graph's edges as arrays, for `find_edges`."""
        return _edge_arrays(self.training_graph)

    def _pin(self, array: Any) -> Tensor:
        tensor = torch.from_numpy(np.asarray(array, np.int64))
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def _ids(self, array: Int32) -> Tensor:
        return torch.from_numpy(np.asarray(array, np.int64)).to(self.device)


def _edge_arrays(graph: MessageGraph) -> tuple[Any, Any, Any]:
    """A graph's edges as arrays, for `find_edges`."""
    return graph.ptr.cpu().numpy(), graph.source.cpu().numpy(), graph.relation.cpu().numpy()
