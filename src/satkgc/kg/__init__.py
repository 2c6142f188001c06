"""A knowledge graph: ids, triples, texts, splits, adjacency; readers; the catalogue of benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.kg.adjacency import Adjacency
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.known import KnownTriples
from satkgc.kg.vocabulary import Vocabulary

if TYPE_CHECKING:
    from satkgc.kg.bfs import HopSearch, entities_within, hops_from, shortest_path

__all__ = [
    "Adjacency",
    "HopSearch",
    "KnowledgeGraph",
    "KnownTriples",
    "Vocabulary",
    "entities_within",
    "hops_from",
    "shortest_path",
]

# Imported when they are first used: they need numba, which takes longer to import than a stored graph to open.
_LAZY = dict.fromkeys(("HopSearch", "entities_within", "hops_from", "shortest_path"), "bfs")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
