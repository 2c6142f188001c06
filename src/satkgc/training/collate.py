"""From a batch of triple ids to everything a step needs, on the prefetch thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.kg import Adjacency, KnowledgeGraph
from satkgc.models.text import ObjectiveConfig, Relations, answer_counts, answer_pairs, frequency_weights, known_pairs
from satkgc.models.text.packed import Packed
from satkgc.processes import Processes
from satkgc.sampling import Batch
from satkgc.sampling.proximity import closeness, proximity
from satkgc.text import Texts, TokenBatch
from satkgc.training.plan import Chunk, places, plan


@dataclass(frozen=True)
class Samples:
    """The B = 2n samples of a step: n triples, then their inverses in the same order. Equal texts are encoded once."""

    step: int
    chunks: list[list[Chunk]]  # of each rank
    query_places: Tensor  # (B,) int64: where the vector of a sample's query lies among the encoded ones
    tail_places: Tensor  # (B,)
    relations: Relations

    def __len__(self) -> int:
        return len(self.query_places)


def joined_otherwise(adjacency: Adjacency, num_triples: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each training triple, whether another one joins the same two entities, either way.  # (T,)"""
    sizes = np.diff(adjacency.edge_ptr)
    found = np.zeros(num_triples, np.bool_)
    found[adjacency.edges[np.repeat(sizes > 1, sizes)]] = True
    return found


class Collate:
    """Turns a `Batch` into `Samples`. Calls share nothing that changes, so several threads may work at once."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        texts: Texts,
        config: ObjectiveConfig,
        pack: Callable[[TokenBatch], Packed],
        chunk_tokens: int | None = None,
        ranks: Processes | None = None,
        seed: int = 0,
    ) -> None:
        self.kg = kg
        self.texts = texts
        self.config = config
        self.pack = pack
        self.chunk_tokens = chunk_tokens
        self.ranks = ranks or Processes()
        self.seed = seed % 2**64
        # Derived lookups are built here and not by the first batches, several of which may ask at once.
        self.known = kg.known_train
        self.degree = kg.adjacency.degree
        self.log_counts = np.log(np.maximum(answer_counts(kg), 1)).astype(np.float32) if config.popularity else None
        edge, exact = texts.config.hide == "edge", texts.config.neighbour_relations
        self.shown = joined_otherwise(kg.adjacency, len(kg.train)) if edge and not exact else None
        self.exact = edge and exact  # neighbours are named by relation, so that the triple itself can be left out

    def __call__(self, batch: Batch) -> Samples:
        """Texts, masks, weights and proximity of one batch."""
        kg = self.kg
        head, relation, tail = kg.train[batch.triples].T  # (n,) each
        heads = np.concatenate([head, tail])  # (B,)
        tails = np.concatenate([tail, head])  # (B,)
        directed = np.concatenate([relation, relation + kg.num_relations])  # (B,)

        hidden_tails, hidden_heads = self._hidden(batch, heads, directed, tails)
        bare_queries, bare_answers = self._bare(batch.step, len(heads))
        queries, query_of = self.texts.queries(heads, directed, **hidden_tails, bare=bare_queries).unique()
        answers, answer_of = self.texts.entities(tails, **hidden_heads, bare=bare_answers).unique()
        chunks = plan(queries.lengths, answers.lengths, self.chunk_tokens, self.ranks.world)
        query_places = self._tensor(places(chunks, True, len(queries))[query_of])
        tail_places = self._tensor(places(chunks, False, len(answers))[answer_of])
        chunks[self.ranks.rank] = [
            replace(chunk, packed=self.pack((queries if chunk.queries else answers).select(chunk.rows)))
            for chunk in chunks[self.ranks.rank]
        ]
        relations = self._relations(batch, heads, directed, tails)
        return Samples(batch.step, chunks, query_places, tail_places, relations)

    def _hidden(self, batch: Batch, heads: Any, directed: Any, tails: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the neighbours named in a text must not give away: in a query its tail, in a tail's text the head."""
        if self.shown is not None:
            shown = np.tile(self.shown[batch.triples], 2)  # (B,)
            heads, tails = np.where(shown, -1, heads), np.where(shown, -1, tails)
        if self.exact:
            return {"without": tails, "by": directed}, {"without": heads, "by": np.roll(directed, len(batch.triples))}
        return {"without": tails}, {"without": heads}

    def _bare(self, step: int, size: int) -> Any:
        """Which texts of queries and of answers name no neighbours: the same in every process, and after a resume."""
        share = self.texts.config.bare_share
        if not share:
            return None, None
        key = np.array([self.seed, step], np.uint64)
        return np.random.Generator(np.random.Philox(key=key)).random((2, size)) < share

    def _relations(self, batch: Batch, heads: Any, directed: Any, tails: Any) -> Relations:
        config = self.config
        parts: dict[str, Any] = {}
        if config.mask == "known":
            pairs = known_pairs(self.known, heads, directed, tails, self.kg.num_relations)
            parts["masked_rows"], parts["masked_columns"] = pairs
        elif config.mask == "answer":
            parts["masked_rows"], parts["masked_columns"] = answer_pairs(tails)
        if config.proximity != "off":
            if config.proximity_rule in ("product", "authors"):
                near = closeness(batch.distances, config.proximity_rule)
                parts["head_closeness"], parts["tail_closeness"] = near
            else:
                parts["omega"] = proximity(batch.distances, config.proximity_rule, batch.pairs)
        if config.frequency:
            parts["tail_weights"] = frequency_weights(self.kg, tails)
            parts["head_weights"] = frequency_weights(self.kg, heads)
        if self.log_counts is not None:
            parts["tail_log_counts"] = self.log_counts[tails]
        return Relations(**{name: self._tensor(part) for name, part in parts.items()})

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        tensor = torch.from_numpy(array.astype(np.int64) if array.dtype.kind == "i" else array)
        # From page-locked memory a GPU copies without stopping the host.
        return tensor.pin_memory() if self.ranks.device.type == "cuda" else tensor
