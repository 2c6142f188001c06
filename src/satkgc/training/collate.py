"""From a batch of triple ids to everything a step needs, on the prefetch thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.kg import KnowledgeGraph
from satkgc.kg.adjacency import Int64
from satkgc.objective import ObjectiveConfig, Relations, answer_pairs, frequency_weights, known_pairs
from satkgc.sampling import Batch
from satkgc.sampling.proximity import closeness, proximity
from satkgc.text import Texts, TokenBatch


@dataclass(frozen=True)
class Side:
    """The texts of one tower: each once, and which of them each of the B samples reads."""

    texts: TokenBatch  # u ≤ B of them
    of_sample: Int64  # (B,) rows of `texts`


@dataclass(frozen=True)
class Samples:
    """The B = 2n samples of a step: n triples, then their inverses in the same order."""

    step: int
    queries: Side
    tails: Side
    relations: Relations

    def __len__(self) -> int:
        return len(self.queries.of_sample)


class Collate:
    """Turns a `Batch` into `Samples`. Calls share nothing that changes, so several threads may work at once."""

    def __init__(self, kg: KnowledgeGraph, texts: Texts, config: ObjectiveConfig, pin: bool = False) -> None:
        self.kg = kg
        self.texts = texts
        self.config = config
        self.pin = pin  # in page-locked memory, from which a GPU copies without stopping the host
        # Built now rather than by the first batch, so that the first steps do not wait.
        self.known = kg.known_train if config.mask == "known" else None
        self.degree = kg.adjacency.degree if config.frequency else None

    def __call__(self, batch: Batch) -> Samples:
        """Texts, masks, weights and proximity of one batch."""
        kg, config = self.kg, self.config
        head, relation, tail = kg.train[batch.triples].T  # (n,) each
        heads = np.concatenate([head, tail])  # (B,)
        tails = np.concatenate([tail, head])  # (B,)
        directed = np.concatenate([relation, relation + kg.num_relations])  # (B,)

        # Neighbour names in a text must not give the other end of the triple away.
        queries = self.texts.queries(heads, directed, without=tails)
        answers = self.texts.entities(tails, without=heads)

        parts: dict[str, Any] = {}
        if config.mask == "known":
            pairs = known_pairs(kg.known_train, heads, directed, tails, kg.num_relations)
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
            parts["tail_weights"] = frequency_weights(kg, tails)
            parts["head_weights"] = frequency_weights(kg, heads)
        relations = Relations(**{name: self._tensor(part) for name, part in parts.items()})
        return Samples(batch.step, Side(*queries.unique()), Side(*answers.unique()), relations)

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        tensor = torch.from_numpy(array.astype(np.int64) if array.dtype.kind == "i" else array)
        return tensor.pin_memory() if self.pin else tensor
