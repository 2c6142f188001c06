"""A knowledge graph: ids, triples, texts, splits, adjacency; readers; the catalogue of benchmarks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.kg.adjacency import Adjacency, KnownTriples, as_indices
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary

if TYPE_CHECKING:
    from satkgc.kg.bfs import HopSearch, entities_within, hops_from, shortest_path
    from satkgc.kg.bolt import BoltServer, is_bolt
    from satkgc.kg.catalogue import (
        CATALOGUE,
        Counts,
        Entry,
        cache_folder,
        entry_location,
        find_entry,
        load_entry,
    )
    from satkgc.kg.centrality import betweenness
    from satkgc.kg.decisions import (
        DECISIONS,
        Decision,
        Decisions,
        Statement,
        Verdict,
        all_decisions,
        carry_rejections,
        read_decisions,
    )
    from satkgc.kg.endpoint import IRI, Endpoint, check_iri, is_endpoint
    from satkgc.kg.growth import Growth, grow, read_more
    from satkgc.kg.header_row import triple_rows
    from satkgc.kg.inspect import CATEGORIES, inspect_graph, plot_degrees, relation_categories
    from satkgc.kg.language import text_language
    from satkgc.kg.logic import RelationLogic, relation_logic
    from satkgc.kg.logic_file import describe_logic, read_logic, write_logic
    from satkgc.kg.merge import merge_entities
    from satkgc.kg.mistyped import refuse_mistyped
    from satkgc.kg.negatives import published_negatives, read_negatives
    from satkgc.kg.readers import ARCHIVE_SUFFIXES, ReadOptions, is_pattern, is_url, read_graph
    from satkgc.kg.readers.bolt import read_nodes
    from satkgc.kg.readers.delimited import csv_delimiter
    from satkgc.kg.readers.options import expand, shorten
    from satkgc.kg.readers.property_graph import TYPE
    from satkgc.kg.readers.source import SourceFile
    from satkgc.kg.readers.sparql import read_endpoint
    from satkgc.kg.readers.table import YES
    from satkgc.kg.store import altered_files, check_overwrite, is_graph_folder
    from satkgc.kg.tsv import NOT_TSV, check_tsv_ids, tsv_id_error, write_tsv
    from satkgc.kg.types import EntityTypes

__all__ = [
    "ARCHIVE_SUFFIXES",
    "CATALOGUE",
    "CATEGORIES",
    "DECISIONS",
    "IRI",
    "NOT_TSV",
    "SPLITS",
    "TYPE",
    "YES",
    "Adjacency",
    "BoltServer",
    "Counts",
    "Decision",
    "Decisions",
    "Endpoint",
    "EntityTypes",
    "Entry",
    "Growth",
    "HopSearch",
    "KnowledgeGraph",
    "KnownTriples",
    "ReadOptions",
    "RelationLogic",
    "SourceFile",
    "Statement",
    "Verdict",
    "Vocabulary",
    "all_decisions",
    "altered_files",
    "as_indices",
    "betweenness",
    "cache_folder",
    "carry_rejections",
    "check_iri",
    "check_overwrite",
    "check_tsv_ids",
    "csv_delimiter",
    "describe_logic",
    "entities_within",
    "entry_location",
    "expand",
    "find_entry",
    "grow",
    "hops_from",
    "inspect_graph",
    "is_bolt",
    "is_endpoint",
    "is_graph_folder",
    "is_pattern",
    "is_url",
    "load_entry",
    "merge_entities",
    "plot_degrees",
    "published_negatives",
    "read_decisions",
    "read_endpoint",
    "read_graph",
    "read_logic",
    "read_more",
    "read_negatives",
    "read_nodes",
    "refuse_mistyped",
    "relation_categories",
    "relation_logic",
    "shorten",
    "shortest_path",
    "text_language",
    "triple_rows",
    "tsv_id_error",
    "write_logic",
    "write_tsv",
]

# Imported when they are first used: numba alone takes longer to import than a stored graph to open.
_LAZY = {
    "centrality": ("betweenness",),
    "bolt": ("BoltServer", "is_bolt"),
    "bfs": ("HopSearch", "entities_within", "hops_from", "shortest_path"),
    "catalogue": ("CATALOGUE", "Counts", "Entry", "cache_folder", "entry_location", "find_entry", "load_entry"),
    "decisions": (
        "DECISIONS",
        "Decision",
        "Decisions",
        "Statement",
        "Verdict",
        "all_decisions",
        "carry_rejections",
        "read_decisions",
    ),
    "endpoint": ("IRI", "Endpoint", "check_iri", "is_endpoint"),
    "growth": ("Growth", "grow", "read_more"),
    "header_row": ("triple_rows",),
    "inspect": ("CATEGORIES", "inspect_graph", "plot_degrees", "relation_categories"),
    "language": ("text_language",),
    "logic": ("RelationLogic", "relation_logic"),
    "logic_file": ("describe_logic", "read_logic", "write_logic"),
    "merge": ("merge_entities",),
    "mistyped": ("refuse_mistyped",),
    "negatives": ("published_negatives", "read_negatives"),
    "readers": ("ARCHIVE_SUFFIXES", "ReadOptions", "is_pattern", "is_url", "read_graph"),
    "readers.bolt": ("read_nodes",),
    "readers.property_graph": ("TYPE",),
    "readers.delimited": ("csv_delimiter",),
    "readers.options": ("expand", "shorten"),
    "readers.source": ("SourceFile",),
    "readers.sparql": ("read_endpoint",),
    "readers.table": ("YES",),
    "store": ("altered_files", "check_overwrite", "is_graph_folder"),
    "tsv": ("NOT_TSV", "check_tsv_ids", "tsv_id_error", "write_tsv"),
    "types": ("EntityTypes",),
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
