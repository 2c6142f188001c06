"""How common entities are: the frequency weights ψ (Section 4.4), and the counts that `popularity` corrects by."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Float32, Int32, Int64
from satkgc.kg import KnowledgeGraph


def frequency_weights(kg: KnowledgeGraph, entities: Int32) -> Float32:
    """ψ(t) = log(|N_t| + 1) of each entity, |N_t| its distinct neighbours in the training graph (under Eq. 5)."""
    return np.log1p(kg.adjacency.degree[entities]).astype(np.float32)


def answer_counts(kg: KnowledgeGraph) -> Int64:
    """How many training samples each entity answers: every triple asks for its tail and for its head.  # (E,)"""
    return np.bincount(kg.train[:, [0, 2]].ravel(), minlength=kg.num_entities)
