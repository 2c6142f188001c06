"""What the Browser of Neo4j saves: nodes and edges written as one cell each.

The answer to `MATCH (n)-[r]->(m) RETURN n, r, m` is CSV with cells like `(:Character {id: 1, name: "Zeus"})`,
`[:LOVES {since: 3}]`, and paths like `(:A {…})-[:R]->(:B {…})`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

from satkgc.errors import SatkgcError
from satkgc.kg.readers.columns import Listing, Triples
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.property_graph import PropertyGraph

# Possessive throughout, so that no cell takes longer than its length.
_STRING = r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\''
_VALUE = rf"(?:{_STRING}|\[(?:{_STRING}|[^\]\"'])*+\]|[^,}}\"'\[\]]*+)"
_KEY = r"(?:`[^`]*+`|[^\s:,{}`\"']++)"
_PAIR = rf"\s*+{_KEY}\s*+:\s*+{_VALUE}\s*+"
_PROPERTIES = rf"\{{(?:{_PAIR}(?:,{_PAIR})*+|\s*+)\}}"
_LABELS = r"((?::(?:`[^`]*+`|[^\s:{}()\[\]`]++))*+)"
_NODE = rf"\(\s*+{_LABELS}\s*+({_PROPERTIES})?\s*+\)"
_EDGE = rf"\[\s*+{_LABELS}\s*+({_PROPERTIES})?\s*+\]"
NODE, EDGE = re.compile(_NODE), re.compile(_EDGE)
STEP = re.compile(rf"(<)?-{_EDGE}->?(?P<node>{_NODE})")
_PROPERTY = re.compile(rf"\s*+({_KEY})\s*+:\s*+({_VALUE})\s*+,?")
_MISSING = ("", "null", "NULL")


def is_browser_export(rows: Iterator[tuple[int, list[str]]]) -> bool:
    """Whether one of the first rows has a cell that is an edge between cells that are nodes, or a path."""
    for _, row in islice(rows, 1, 20):
        kinds = [_kind(cell) for cell in row]
        if "path" in kinds or ("edge" in kinds and kinds.count("node") >= 2):
            return True
    return False


def _kind(cell: str) -> str | None:
    cell = cell.strip()
    if cell.startswith("["):
        return "edge" if (match := EDGE.fullmatch(cell)) and match[1] else None
    if not cell.startswith("("):
        return None
    if (node := NODE.match(cell)) is None:
        return None
    return "node" if node.end() == len(cell) else "path" if STEP.match(cell, node.end()) else None


def read_browser_export(
    rows: Iterator[tuple[int, list[str]]], shown: str, options: ReadOptions
) -> tuple[Triples, Listing]:
    """The triples, and every node with its name, description and labels; a node's whole cell tells it apart."""
    next(rows)  # the names of the columns
    graph = PropertyGraph(options)
    lines: list[int] = []
    for line, row in rows:
        for head, relation, tail in _row_edges(row, graph, f"{shown}:{line}"):
            graph.add_edge(head, relation, tail)
            lines.append(line)
    if not len(graph):
        raise SatkgcError("no row has an edge", where=shown, remedy="RETURN n, r, m")
    return graph.tables(shown, lambda row: f"{shown}:{lines[row]}")


def _row_edges(row: list[str], graph: PropertyGraph, where: str) -> Iterator[tuple[str, str, str]]:
    """The edges of a row, as texts of nodes and the type: an edge joins the nodes beside it, else the only two."""
    cells = [cell.strip() for cell in row]
    kinds = [_kind(cell) for cell in cells]
    ends = [place for place, kind in enumerate(kinds) if kind == "node"]
    for place in ends:
        _keep(NODE.fullmatch(cells[place]), graph)
    for place, kind in enumerate(kinds):
        if kind == "path":
            yield from _path_edges(cells[place], graph, where)
        elif kind == "edge":
            left, right = [at for at in ends if at < place][-1:], [at for at in ends if at > place][:1]
            between = left + right if left and right else ends if len(ends) == 2 else []
            if between:
                match = EDGE.fullmatch(cells[place])
                assert match is not None
                yield cells[between[0]], _labels(match[1])[0], cells[between[1]]
        elif kind is None and cells[place] not in _MISSING and cells[place][0] in "([":
            raise SatkgcError(
                f"{cells[place][:40]!r} is no node and no edge", where=where, remedy="RETURN nodes, edges or paths"
            )


def _path_edges(cell: str, graph: PropertyGraph, where: str) -> Iterator[tuple[str, str, str]]:
    match = NODE.match(cell)
    head, at = _keep(match, graph), match.end() if match else 0
    while at < len(cell):
        step = STEP.match(cell, at)
        if step is None or not step[2]:
            raise SatkgcError(f"{cell[at : at + 40]!r} is no step of a path", where=where, remedy="RETURN n, r, m")
        tail = _keep(NODE.fullmatch(step["node"]), graph)
        yield (tail, _labels(step[2])[0], head) if step[1] else (head, _labels(step[2])[0], tail)
        head, at = tail, step.end()


def _keep(match: re.Match[str] | None, graph: PropertyGraph) -> str:
    assert match is not None
    if match[0] not in graph:
        pairs = _PROPERTY.findall(match[2][1:-1]) if match[2] else []
        properties = {key.strip("`"): _value(text) for key, text in pairs if text.strip() != "null"}
        graph.add_node(match[0], _labels(match[1]), properties)
    return match[0]


def _labels(text: str) -> tuple[str, ...]:
    return tuple(label.strip("`") for label in re.findall(r":(`[^`]*`|[^:`]+)", text))


def _value(text: str) -> str:
    text = text.strip()
    if text[:1] == '"':
        try:
            return str(json.loads(text, strict=False)).strip()
        except ValueError:
            pass
    return text[1:-1].replace("\\'", "'").strip() if text[:1] in ("'", '"') else text
