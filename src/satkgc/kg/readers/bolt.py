"""A property graph behind a Bolt server: its nodes, then its relationships, as streams of rows.

A stream that breaks off begins again, by the driver's own rules, and nothing is written before all of it is here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from satkgc.errors import SatkgcError
from satkgc.kg.bolt import BoltServer
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import assemble
from satkgc.kg.readers.columns import counted
from satkgc.kg.readers.literals import XSD
from satkgc.kg.readers.options import ReadOptions, refuse_options
from satkgc.kg.readers.property_graph import PropertyGraph, Value, add_labels
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.kg")

NODES = "MATCH (n) RETURN n"
EDGES = "MATCH ()-[r]->() RETURN r"
COUNTS = {NODES: "MATCH (n) RETURN count(n)", EDGES: "MATCH ()-[r]->() RETURN count(r)"}
FEW = 5


def read_bolt(source: str, options: ReadOptions) -> KnowledgeGraph:
    """The whole graph, or what a Cypher query returns of it."""
    server = BoltServer.of(source)
    refuse_options("bolt", options, server.shown)
    query = None if options.query is None else _query(str(options.query))
    graph = PropertyGraph(options)
    with server.session(options.page_size) as session:
        if query is None:
            _read_whole(session, graph, server.shown)
        else:
            _take(session, query, None, graph, server.shown)
    if not len(graph):
        remedy = "check the database: bolt://host:7687/database" if query is None else "RETURN n, r, m, or paths"
        raise SatkgcError("there is no relationship", where=server.shown, remedy=remedy)
    graph.literals.refuse_unused(graph.left_out, server.shown)
    _tell(graph, server.shown)
    triples, entities = graph.tables(server.shown, lambda _: server.shown)
    splits, listing, relations, options = add_labels({"train": triples}, entities, None, options)
    name = options.name or server.database or str(urlsplit(server.address).hostname)
    return assemble(name, splits, listing, relations, options)


def read_nodes(session: Any, server: BoltServer, options: ReadOptions) -> dict[str, str]:
    """The server's own ids of nodes, by the ids that `read_bolt` gives them."""
    graph = PropertyGraph(options)
    _take(session, NODES, _count(session, NODES), graph, server.shown)
    return {id: key for key, id in graph.ids().items()}


def _read_whole(session: Any, graph: PropertyGraph, shown: str) -> None:
    before = [_count(session, query) for query in COUNTS]
    read = [_take(session, query, total, graph, shown) for query, total in zip(COUNTS, before, strict=True)]
    after = [_count(session, query) for query in COUNTS]
    if not before == read == after:
        text = "%s: it changed meanwhile (%s nodes and %s relationships before, %s and %s read, %s and %s after)"
        figures = [f"{number:,}" for number in (*before, *read, *after)]
        log.warning(f"{text}: some may be missing; import it again to be sure", shown, *figures)


def _count(session: Any, query: str) -> int:
    return int(session.run(COUNTS[query]).single()[0])


def _take(session: Any, query: str, total: int | None, graph: PropertyGraph, shown: str) -> int:
    """Take in what a query returns; how many rows that are of use."""
    with progress_bar() as bar:
        task = bar.add_task(f"asking {urlsplit(shown).hostname}", total=total)

        def collect(transaction: Any) -> tuple[int, list[tuple[str, str, str]]]:
            bar.update(task, completed=0)  # it may be called again; nodes are then there already
            graph.clear_edges()
            rows, early = 0, []
            for record in transaction.run(query):
                early += [edge for part in _parts(record.values()) if (edge := _add(part, graph)) is not None]
                rows += 1
                bar.advance(task)
            return rows, early

        rows, early = session.execute_read(collect)
    lost = 0
    for edge in early:
        if edge[0] in graph and edge[2] in graph:
            graph.add_edge(*edge)
        else:
            lost += 1
    if lost and query not in COUNTS:
        what = f"the query returns {counted(lost, 'relationship')} without the nodes that they join"
        raise SatkgcError(what, where=shown, remedy="RETURN n, r, m, or paths")
    return rows - lost


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """Nodes and relationships, also those in lists and paths."""
    from neo4j.graph import Node, Path, Relationship

    for value in values:
        if isinstance(value, Node | Relationship):
            yield value
        elif isinstance(value, Path):
            yield from value.nodes
            yield from value.relationships
        elif isinstance(value, list):
            yield from _parts(value)


def _add(part: Any, graph: PropertyGraph) -> tuple[str, str, str] | None:
    """Take a node or a relationship in; returns one whose nodes have not come yet."""
    if hasattr(part, "labels"):
        values = [value for name in sorted(part) for value in _values(name, part[name])]  # servers have no order
        texts = {name: text.strip() for name, text, _ in reversed(values)}  # of a list the first
        graph.add_node(part.element_id, sorted(part.labels), texts, values)
        return None
    edge = part.start_node.element_id, part.type, part.end_node.element_id
    if edge[0] not in graph or edge[2] not in graph:
        return edge
    graph.add_edge(*edge)
    return None


def _values(name: str, value: Any) -> Iterator[Value]:
    """A property as texts with datatypes; none of bytes, points and vectors."""
    from neo4j.time import Date, DateTime, Duration, Time

    if isinstance(value, list):
        if len(value) <= FEW or not isinstance(value[0], float):  # a longer one is a vector
            for part in value:
                yield from _values(name, part)
        return
    kinds: dict[type, tuple[str, Callable[[Any], str]]] = {
        bool: ("boolean", lambda flag: str(flag).lower()),
        int: ("integer", str),
        float: ("double", str),
        str: ("string", str),
        Date: ("date", lambda time: time.iso_format()),
        DateTime: ("dateTime", lambda time: time.iso_format()),
        Time: ("time", lambda time: time.iso_format()),
        Duration: ("duration", lambda time: time.iso_format()),
    }
    if (kind := kinds.get(type(value))) is not None:
        yield name, kind[1](value), XSD + kind[0]


def _query(text: str) -> str:
    """A Cypher query, or that of a file."""
    if " " in text.strip() and not Path(text).is_file():
        return text
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read the query ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        raise SatkgcError(what, where=text, remedy="give a Cypher query, or a file that has one") from None


def _tell(graph: PropertyGraph, shown: str) -> None:
    if graph.left_out:
        common = ", ".join(f"{count:,} of {name}" for name, count in graph.left_out.most_common(FEW))
        more = ", …" if len(graph.left_out) > FEW else ""
        number = counted(graph.left_out.total(), "value")
        log.warning("%s: left out of the graph: %s (%s%s); --literal takes them in", shown, number, common, more)
    if graph.literals.cut:
        text = "%s: %s cut short or left out of long descriptions"
        log.warning(text, shown, counted(graph.literals.cut, "literal"))
