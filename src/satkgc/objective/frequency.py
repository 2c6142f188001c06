"""Frequency weights ψ (Section 4.4): samples with high-degree answers count for more."""

from __future__ import annotations

import numpy as np

from satkgc.kg import KnowledgeGraph
from satkgc.kg.vocabulary import Int32

Float32 = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def frequency_weights(kg: KnowledgeGraph, entities: Int32) -> Float32:
    """ψ(t) = log(|N_t| + 1) of each entity, |N_t| its distinct neighbours in the training graph (under Eq. 5)."""
    return np.log1p(kg.adjacency.degree[entities]).astype(np.float32)
