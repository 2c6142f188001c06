"""A property graph, as Neo4j has it: nodes with labels and properties, and relationships, which become triples.

A node's id is its property `id` or one like it, else its name; where two nodes have the same, their labels stand before
it, `Person:1`. The labels become triples of `rdf:type`, as RDF has them: (1, rdf:type, :Person).
"""

from __future__ import annotations

import logging
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from satkgc.kg.readers.columns import Listing, Triples, Where, counted, join_listings, join_triples
from satkgc.kg.readers.header import USUAL, plain_name
from satkgc.kg.readers.literals import Literals
from satkgc.kg.readers.options import PREFIXES, ReadOptions
from satkgc.kg.vocabulary import name_from_id

log = logging.getLogger("satkgc.kg")

TYPE = f"{PREFIXES['rdf']}type"
_IDS = ("id", "uuid", "identifier", "iri", "uri", "element_id", "node_id", "qid", "key")


Value = tuple[str, str, str]  # a property's name, the text, its datatype as XML Schema has it


class _Node(NamedTuple):
    labels: tuple[str, ...]
    id: str  # of its properties; "" where none tells
    name: str
    description: str


class PropertyGraph:
    """Nodes and relationships as they come; a node has a key that tells it from all others."""

    def __init__(self, options: ReadOptions) -> None:
        names = options.label or USUAL["name"]
        self._roles = (
            options.id or (*_IDS, *names),
            names,
            options.description or USUAL["description"],
        )
        self._nodes: dict[str, _Node] = {}
        self._numbers: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._edges = array("i")  # head, type, tail, head, …
        self.literals = Literals(options)
        self.left_out: Counter[str] = Counter()  # values that are no part of the graph, by property

    def __len__(self) -> int:
        return len(self._edges) // 3

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

    def add_node(
        self, key: str, labels: Iterable[str], properties: Mapping[str, str], values: Iterable[Value] = ()
    ) -> None:
        """Take a node in, unless it is there already; its properties as texts, and as values with their datatypes."""
        if key in self._nodes:
            return
        number = self._numbers[key] = len(self._nodes)
        plain = {plain_name(name): value for name, value in properties.items()} | dict(properties)
        texts = [next((plain[key] for key in keys if plain.get(key)), "") for keys in self._roles]
        self._nodes[key] = _Node(tuple(labels), *texts)
        for name, text, datatype in values:
            if text not in texts and not (
                self.literals.wants(name) and self.literals.offer(number, name, text, datatype)
            ):
                self.left_out[name] += 1

    def clear_edges(self) -> None:
        """Forget the relationships, which are about to come again."""
        del self._edges[:]

    def add_edge(self, head: str, type: str, tail: str) -> None:
        """Take a relationship between two nodes in."""
        number = self._types.setdefault(type, len(self._types))
        self._edges.extend((self._numbers[head], number, self._numbers[tail]))

    def ids(self) -> dict[str, str]:
        """An id for each key: what the properties say, with the labels where two have the same, else the key."""
        short = [node.id or key for key, node in self._nodes.items()]
        counts = Counter(short)
        nodes = zip(self._nodes.values(), short, strict=True)
        with_kind = [f"{':'.join(node.labels)}:{id}" if counts[id] > 1 else id for node, id in nodes]
        counts = Counter(with_kind)
        return {key: key if counts[id] > 1 else id for key, id in zip(self._nodes, with_kind, strict=True)}

    def tables(self, shown: str, where: Where) -> tuple[Triples, Listing]:
        """The triples, `where` of each, and every node with its name, description and labels."""
        ids = list(self.ids().values())
        heads, tails = (pa.array(self._edges[role::3], pa.int32()) for role in (0, 2))
        types = pa.array(self._edges[1::3], pa.int32())
        entities, relations = (pa.array(values, pa.large_string()) for values in (ids, list(self._types)))
        head, relation, tail = (
            pa.chunked_array([names.take(rows)])
            for names, rows in ((entities, heads), (relations, types), (entities, tails))
        )
        triples = Triples(head, relation, tail, where)
        nodes = self._nodes.values()
        names = {name: name_from_id(name) for name in self.literals.predicates}
        listing = Listing(
            text_column(ids),
            text_column(node.name or id for node, id in zip(nodes, ids, strict=True)),
            text_column(self.literals.described(i, node.description, names) for i, node in enumerate(nodes)),
            shown,
            lambda _: shown,
            text_column(";".join(node.labels) for node in nodes),
        )
        return triples, listing


def text_column(values: Iterable[str]) -> pa.ChunkedArray:
    """A column of texts."""
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
    typed = Triples(
        text_column(heads), text_column([TYPE] * len(rows)), text_column(tails), lambda row: entities.where(rows[row])
    )
    labels = list(dict.fromkeys(tails))
    log.warning(
        "%s: %s of nodes became %s of rdf:type; --exclude rdf:type leaves them out",
        entities.shown, counted(len(labels), "kind"), counted(len(rows), "triple"),
    )  # fmt: skip
    names = text_column(label[1:].replace("_", " ") for label in labels)
    listed = join_listings([entities, Listing(text_column(labels), names, None, entities.shown, entities.where)])
    assert listed is not None
    if relations is not None and pc.index(relations.ids.cast(pa.large_string()), TYPE).as_py() < 0:
        relations = join_listings(
            [relations, Listing(text_column([TYPE]), text_column(["type"]), None, "", relations.where)]
        )
    return (
        {**splits, "train": join_triples([splits["train"], typed])},
        replace(listed, shown=entities.shown),
        relations,
        options,
    )
