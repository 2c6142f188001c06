"""What Neo4j's exports have that other tables do not: kinds of nodes, and nodes and edges written as one cell each.

The Browser saves the answer to `MATCH (n)-[r]->(m) RETURN n, r, m` as CSV with cells like
`(:Character {id: 1, name: "Zeus"})`, `[:LOVES {since: 3}]`, and paths like `(:A {…})-[:R]->(:B {…})`. A node's id is
its property `id` or one like it, else its name; where two nodes have the same, their kind stands before it, `Person:1`.

The kinds of nodes (labels, as Neo4j calls them) become triples of `rdf:type`, as RDF has them: (1, rdf:type, :Person).
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.readers.columns import Listing, Triples, counted, join_listings, join_triples
from satkgc.kg.readers.header import USUAL, plain_name
from satkgc.kg.readers.options import PREFIXES, ReadOptions

log = logging.getLogger("satkgc.kg")

TYPE = f"{PREFIXES['rdf']}type"
_IDS = ("id", "uuid", "identifier", "iri", "uri", "element_id", "node_id", "qid", "key")

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


@dataclass(frozen=True, eq=False)
class _Node:
    text: str  # the whole cell, which is all that tells two nodes apart
    labels: tuple[str, ...]
    properties: Mapping[str, str]


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
    """The triples, and every node with its name, description and labels."""
    next(rows)  # the names of the columns
    nodes: dict[str, _Node] = {}
    edges: list[tuple[str, str, str]] = []
    lines: list[int] = []
    for line, row in rows:
        for head, relation, tail in _row_edges(row, nodes, f"{shown}:{line}"):
            edges.append((head, relation, tail))
            lines.append(line)
    if not edges:
        raise SatkgcError("no row has an edge", where=shown, remedy="RETURN n, r, m")
    ids = _ids(nodes.values(), options)
    heads, relations, tails = zip(*((ids[head], relation, ids[tail]) for head, relation, tail in edges), strict=True)
    triples = Triples(_column(heads), _column(relations), _column(tails), lambda row: f"{shown}:{lines[row]}")
    names = [_first(node, options.label or USUAL["name"]) for node in nodes.values()]
    descriptions = [_first(node, options.description or USUAL["description"]) for node in nodes.values()]
    labels = [";".join(node.labels) for node in nodes.values()]
    named = [name or ids[text] for name, text in zip(names, nodes, strict=True)]
    listing = Listing(
        _column(ids[text] for text in nodes),
        _column(named),
        _column(descriptions),
        shown,
        lambda _: shown,
        _column(labels),
    )
    return triples, listing


def _row_edges(row: list[str], nodes: dict[str, _Node], where: str) -> Iterator[tuple[str, str, str]]:
    """The edges of a row, as texts of nodes and the type: an edge joins the nodes beside it, else the only two."""
    cells = [cell.strip() for cell in row]
    kinds = [_kind(cell) for cell in cells]
    ends = [place for place, kind in enumerate(kinds) if kind == "node"]
    for place in ends:
        _keep(NODE.fullmatch(cells[place]), nodes)
    for place, kind in enumerate(kinds):
        if kind == "path":
            yield from _path_edges(cells[place], nodes, where)
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


def _path_edges(cell: str, nodes: dict[str, _Node], where: str) -> Iterator[tuple[str, str, str]]:
    match = NODE.match(cell)
    head, at = _keep(match, nodes), match.end() if match else 0
    while at < len(cell):
        step = STEP.match(cell, at)
        if step is None or not step[2]:
            raise SatkgcError(f"{cell[at : at + 40]!r} is no step of a path", where=where, remedy="RETURN n, r, m")
        tail = _keep(NODE.fullmatch(step["node"]), nodes)
        yield (tail, _labels(step[2])[0], head) if step[1] else (head, _labels(step[2])[0], tail)
        head, at = tail, step.end()


def _keep(match: re.Match[str] | None, nodes: dict[str, _Node]) -> str:
    assert match is not None
    if match[0] not in nodes:
        pairs = _PROPERTY.findall(match[2][1:-1]) if match[2] else []
        nodes[match[0]] = _Node(
            match[0], _labels(match[1]), {key.strip("`"): _value(text) for key, text in pairs if text.strip() != "null"}
        )
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


def _first(node: _Node, keys: Iterable[str]) -> str:
    """The first of these properties that a node has, with the usual freedom in how it is written."""
    plain = {plain_name(key): value for key, value in node.properties.items()} | dict(node.properties)
    return next((plain[key] for key in keys if plain.get(key)), "")


def _ids(nodes: Iterable[_Node], options: ReadOptions) -> dict[str, str]:
    """An id for each node's text: what its properties say, with its kind where two have the same, else the text."""
    keys = (options.id,) if options.id else (*_IDS, *(options.label or USUAL["name"]))
    short = {node: _first(node, keys) or node.text for node in nodes}
    counts = Counter(short.values())
    with_kind = {node: f"{':'.join(node.labels)}:{id}" if counts[id] > 1 else id for node, id in short.items()}
    counts = Counter(with_kind.values())
    return {node.text: node.text if counts[id] > 1 else id for node, id in with_kind.items()}


def _column(values: Iterable[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(list(values), pa.large_string())])


def add_labels(
    splits: Mapping[str, Triples], entities: Listing, relations: Listing | None, options: ReadOptions
) -> tuple[dict[str, Triples], Listing, Listing | None, ReadOptions]:
    """The labels of nodes as triples of `rdf:type`, with the labels as entities, unless `rdf:type` is excluded."""
    excluded = [text for text in options.exclude if text in ("rdf:type", TYPE)]
    if excluded:
        if pc.index(splits["train"].relation.cast(pa.large_string()), TYPE).as_py() < 0:
            options = replace(options, exclude=tuple(set(options.exclude) - set(excluded)))
        return dict(splits), entities, relations, options
    assert entities.labels is not None
    rows, heads, tails = [], [], []
    for row, (id, text) in enumerate(zip(entities.ids.to_pylist(), entities.labels.to_pylist(), strict=True)):
        for label in filter(None, re.split("[;:]", text or "")):
            rows.append(row)
            heads.append(id)
            tails.append(f":{label}")
    if not rows:
        return dict(splits), entities, relations, options
    typed = Triples(_column(heads), _column([TYPE] * len(rows)), _column(tails), lambda row: entities.where(rows[row]))
    labels = list(dict.fromkeys(tails))
    log.warning(
        "%s: %s of nodes became %s of rdf:type; --exclude rdf:type leaves them out",
        entities.shown, counted(len(labels), "kind"), counted(len(rows), "triple"),
    )  # fmt: skip
    names = _column(label[1:].replace("_", " ") for label in labels)
    listed = join_listings([entities, Listing(_column(labels), names, None, entities.shown, entities.where)])
    assert listed is not None
    if relations is not None and pc.index(relations.ids.cast(pa.large_string()), TYPE).as_py() < 0:
        relations = join_listings([relations, Listing(_column([TYPE]), _column(["type"]), None, "", relations.where)])
    return (
        {**splits, "train": join_triples([splits["train"], typed])},
        replace(listed, shown=entities.shown),
        relations,
        options,
    )
