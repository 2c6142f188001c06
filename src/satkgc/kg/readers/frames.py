"""Graphs that another library holds in memory: data frames, networkx, rdflib."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.readers.header import EDGE_NAMES, USUAL
from satkgc.kg.readers.options import ReadOptions, refuse_options
from satkgc.kg.readers.sources import local_files
from satkgc.kg.readers.table import read_tables
from satkgc.kg.readers.table_file import open_table

log = logging.getLogger("satkgc.kg")

NAME = "graph"  # of a graph that nobody named


class FrameTable:
    """A data frame as a table to read: pandas, or anything that pyarrow takes."""

    def __init__(self, frame: Any, shown: str) -> None:
        self.shown = shown
        try:
            if type(frame).__module__.partition(".")[0] == "pandas":
                frame = pa.Table.from_pandas(frame, preserve_index=False)
            self._table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise SatkgcError(f"this is no table ({reason})", where=shown, remedy="give a data frame") from None
        self.names = [str(name) for name in self._table.column_names]
        if not len(self._table):
            raise SatkgcError("the table has no rows", where=shown, remedy="put rows in it")

    def columns(self, places: Sequence[int], header: bool = True) -> list[pa.ChunkedArray]:
        """The columns at these places, as strings."""
        return [self._as_text(place) for place in places]

    def where(self, row: int, header: bool = True) -> str:
        """The place that a message names."""
        return f"{self.shown}: row {row:,}"

    def _as_text(self, place: int) -> pa.ChunkedArray:
        column = self._table.column(place)
        try:
            if pa.types.is_floating(column.type):  # numbers with gaps, which pandas has as floats
                whole = column.cast(pa.int64(), safe=False)
                if pc.all(pc.equal(whole.cast(column.type), column)).as_py():
                    column = whole
            return column.cast(pa.large_string())
        except pa.ArrowException:
            what = f"column {self.names[place]!r} is no text but {column.type}"
            raise SatkgcError(what, where=self.shown, remedy="choose another column") from None


def read_pandas(triples: Any, entities: Any, relations: Any, options: ReadOptions) -> KnowledgeGraph:
    """A graph of data frames, by the rules for tables."""
    refuse_options("table", options, "the data frame")
    beside = None if relations is None else FrameTable(relations, "the relations")
    listed = [] if entities is None else [FrameTable(entities, "the entities")]
    return read_tables(options.name or NAME, [FrameTable(triples, "the triples")], listed, beside, options)


def add_tables(kg: KnowledgeGraph, sources: Sequence[str | Path], options: ReadOptions) -> KnowledgeGraph:
    """A graph with the triples of tables beside its own, in the splits that they name, else in train."""
    refuse_options("table", options, kg.name)
    if kg.split_entities:
        raise SatkgcError("an inductive graph takes no more triples", where=kg.name, remedy="import its source again")
    splits = [split for split in SPLITS for _ in range(len(kg.split(split)))]
    rows = np.concatenate([kg.split(split) for split in SPLITS])
    columns = {
        "head": kg.entities.ids.take(rows[:, 0]),
        "relation": kg.relations.ids.take(rows[:, 1]),
        "tail": kg.entities.ids.take(rows[:, 2]),
        "split": splits,
    }
    listed, relations = (
        FrameTable({"id": of.ids, "name": of.names, "description": of.descriptions}, f"{kg.name}'s {what}")
        for of, what in ((kg.entities, "entities"), (kg.relations, "relations"))
    )
    with local_files(sources, lambda name: name.endswith((".csv", ".tsv", ".parquet"))) as files:
        for file in files:
            if not file.stem.lower().endswith((".csv", ".tsv", ".parquet")):
                remedy = "give tables, as `satkgc accept` writes them"
                raise SatkgcError(
                    "a graph that has been read takes more triples from tables", where=file.shown, remedy=remedy
                )
        tables = [FrameTable(columns, kg.name), *(open_table(file) for file in files)]
        options = replace(options, split="none")  # a graph without valid and test stays without
        return read_tables(options.name or kg.name, tables, [listed], relations, options)


def read_networkx(graph: Any, options: ReadOptions) -> KnowledgeGraph:
    """A graph of networkx: the attributes of edges and nodes say what they are, by the usual names or chosen ones."""
    refuse_options("table", options, "the graph")
    nodes: dict[str, dict[str, Any]] = {}
    for node, attributes in graph.nodes(data=True):
        if str(node) in nodes:
            raise SatkgcError(f"two nodes are written {str(node)!r}", remedy="nx.convert_node_labels_to_integers")
        nodes[str(node)] = attributes
    edges = [(str(u), str(v), data) for u, v, data in graph.edges(data=True)]
    if not edges:
        raise SatkgcError("the graph has no edges", remedy="add some")
    if not graph.is_directed():
        log.warning("%s: edges without a direction are taken from the first end to the second", options.name or NAME)
    columns = {"head": [u for u, _, _ in edges], "tail": [v for _, v, _ in edges]}
    if not options.relation_name:
        columns["relation"] = _relations(graph, [data for _, _, data in edges], options)
    names, descriptions = (
        [_first(attributes, chosen or USUAL[role]) for attributes in nodes.values()]
        for role, chosen in (("name", options.label), ("description", options.description))
    )
    listed = {
        "id": list(nodes),
        "name": [n or id for n, id in zip(names, nodes, strict=True)],
        "description": descriptions,
    }
    plain = ReadOptions(
        **{f: getattr(options, f) for f in ("exclude", "relation_name", "split", "valid", "test", "seed")}
    )
    tables = FrameTable(columns, "the edges"), FrameTable(listed, "the nodes")
    return read_tables(options.name or graph.name or NAME, tables[:1], tables[1:], None, plain)


def _relations(graph: Any, attributes: list[dict[str, Any]], options: ReadOptions) -> list[str]:
    keys = options.relation or (*USUAL["relation"], *EDGE_NAMES, "key")
    key = next((key for key in keys if all(key in data for data in attributes)), None)
    if key is not None:
        return [str(data[key]) for data in attributes]
    if graph.is_multigraph() and not options.relation:
        named = [key for _, _, key in graph.edges(keys=True)]
        if all(isinstance(key, str) for key in named):
            return named
    there = sorted({str(key) for data in attributes for key in data})
    raise SatkgcError(
        f"not every edge has {'the attribute ' + repr(options.relation[0]) if options.relation else 'a relation'}",
        remedy=f"relation= names its attribute, of {', '.join(there[:8]) or 'which there are none'}; "
        "relation_name= is what all edges say",
    )


def _first(attributes: dict[str, Any], keys: Sequence[str]) -> str:
    return next((str(attributes[key]) for key in keys if attributes.get(key) not in (None, "", np.nan)), "")


def read_rdflib(graph: Any, options: ReadOptions) -> KnowledgeGraph:
    """A graph or dataset of rdflib, by the rules for RDF."""
    from satkgc.kg.readers.rdf import read_statements

    refuse_options("rdf", options, "the graph")
    quads = hasattr(graph, "quads")
    data = graph.serialize(format="nquads" if quads else "nt", encoding="utf-8")
    prefixes = {prefix: str(iri) for prefix, iri in graph.namespaces()}
    return read_statements(data, "nq" if quads else "nt", prefixes, options.name or NAME, options)
