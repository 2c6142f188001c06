"""A knowledge graph: ids, triples, texts, splits, adjacency; readers; the catalogue of benchmarks."""

from satkgc.kg.adjacency import Adjacency
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.known import KnownTriples
from satkgc.kg.vocabulary import Vocabulary

__all__ = ["Adjacency", "KnowledgeGraph", "KnownTriples", "Vocabulary"]
