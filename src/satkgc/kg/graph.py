"""The knowledge graph: an immutable object that everything else reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.adjacency import Adjacency, KnownTriples, as_indices, as_triples
from satkgc.kg.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test", "inference")


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Entities, relations, the splits of triples, and the lookups that training and evaluation need.

    The fourth split, `inference`, has triples to answer from and never to train on: the graph around entities that
    training does not see. Most graphs have none. Samplers and losses read `train`, `adjacency` and `known_train`; what
    answers reads `facts`, `fact_adjacency` and `known_facts`, which are the same where there is no inference split.

    Arrays are read-only and int32; triples have the columns head, relation, tail. Derived structures are built on
    first use, or memory-mapped when the graph was opened from its binary form.
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Int32  # (T, 3)
    valid: Int32  # (V, 3)
    test: Int32  # (S, 3)
    inference: Int32 = field(default_factory=lambda: as_triples([]))  # (I, 3)
    split_entities: Mapping[str, Int32] = field(default_factory=dict)  # inductive graphs: "valid", "test"
    path: Path | None = None  # the binary folder this was opened from
    fingerprint: str | None = None  # of that folder's content
    benchmark: str | None = None  # its name in the catalogue, if and only if it was loaded from there

    @classmethod
    def from_arrays(
        cls,
        name: str,
        entities: Vocabulary,
        relations: Vocabulary,
        train: Any,
        valid: Any = None,
        test: Any = None,
        split_entities: Mapping[str, Int32] | None = None,
        inference: Any = None,
    ) -> KnowledgeGraph:
        """Make a graph from index triples, as they are: nothing is dropped, nothing split. The arrays are copied."""
        parts = ((name, str), (entities, Vocabulary), (relations, Vocabulary))
        if not all(isinstance(part, kind) for part, kind in parts):
            remedy = "give a text, and what Vocabulary.build makes of ids, names and descriptions"
            raise SatkgcError("a graph has a name and two vocabularies", remedy=remedy)
        splits = [as_triples([] if rows is None else np.array(rows)) for rows in (train, valid, test, inference)]
        for triples in splits:
            _check_range(triples[:, ::2], len(entities), "entity")
            _check_range(triples[:, 1], len(relations), "relation")
        held_out = {key: as_indices(value) for key, value in (split_entities or {}).items()}
        for members in held_out.values():
            _check_range(members, len(entities), "entity", "a split")
        train, valid, test, inference = splits
        return cls(name, entities, relations, train, valid, test, inference, split_entities=held_out)

    @classmethod
    def load(cls, source: str | Path | Sequence[str | Path], **options: Any) -> KnowledgeGraph:
        """Open a graph by catalogue name, binary folder, TSV folder or archive, tables of triples, or RDF files.

        Files may be given as a list, a folder of them, a pattern (`data/*.ttl`) or URLs; they make one graph.

        `options` are the fields of `satkgc.kg.ReadOptions`: column names, languages, how to split.
        """
        from satkgc.kg.loading import load

        return load(source, options)

    @classmethod
    def from_pandas(cls, triples: Any, entities: Any = None, relations: Any = None, **options: Any) -> KnowledgeGraph:
        """Make a graph from data frames of pandas (or pyarrow): triples, and texts of entities and relations.

        They are read as tables are: `options` are those of `load`, the columns by their usual names.
        """
        from satkgc.kg.loading import check_options
        from satkgc.kg.readers.frames import read_pandas

        return read_pandas(triples, entities, relations, check_options(options))

    @classmethod
    def from_networkx(cls, graph: Any, **options: Any) -> KnowledgeGraph:
        """Make a graph from one of networkx, whose edges have a relation as an attribute, or as the key.

        `relation`, `label` and `description` name the attributes of edges and nodes; `relation_name` is what all edges
        say. Other `options` are those of `load`: exclude, split …
        """
        from satkgc.kg.loading import check_options
        from satkgc.kg.readers.frames import read_networkx

        return read_networkx(graph, check_options(options))

    @classmethod
    def from_rdflib(cls, graph: Any, **options: Any) -> KnowledgeGraph:
        """Make a graph from a graph or dataset of rdflib, by the rules for RDF; `options` are those of `load`."""
        from satkgc.kg.loading import check_options
        from satkgc.kg.readers.frames import read_rdflib

        return read_rdflib(graph, check_options(options))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> KnowledgeGraph:
        """Write the binary form and return the graph opened from it."""
        from satkgc.kg import store

        return store.open_graph(Path(folder), store.write_graph(self, Path(folder), overwrite=overwrite))

    def __reduce__(self) -> tuple[Callable[..., KnowledgeGraph], tuple[Any, ...]]:
        """Another process gets the path and maps the same pages; nothing is copied."""
        from satkgc.kg import store

        if self.path is None:
            raise SatkgcError(
                "a graph in memory cannot be sent to another process",
                remedy="save it first: kg = kg.save(folder)",
            )
        return store.open_graph, (self.path, self.fingerprint)

    @property
    def num_entities(self) -> int:
        """E."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """R; directed relations run to 2R, the inverse of r being r + R."""
        return len(self.relations)

    @cached_property
    def facts(self) -> Int32:
        """What answers may be derived from: train, and after it inference.  # (T + I, 3)"""
        return as_triples(np.concatenate([self.train, self.inference])) if len(self.inference) else self.train

    @cached_property
    def adjacency(self) -> Adjacency:
        """Neighbours and triples of every entity in the training graph."""
        return Adjacency.build(self.train, self.num_entities)

    @cached_property
    def fact_adjacency(self) -> Adjacency:
        """Neighbours of every entity among the facts; its edges are rows of `facts`."""
        return Adjacency.build(self.facts, self.num_entities) if len(self.inference) else self.adjacency

    @cached_property
    def known_train(self) -> KnownTriples:
        """Answers known from training alone: what the loss may mask."""
        return KnownTriples.build(self.train, self.num_entities, self.num_relations)

    @cached_property
    def known_facts(self) -> KnownTriples:
        """Answers known from the facts."""
        if not len(self.inference):
            return self.known_train
        return KnownTriples.build(self.facts, self.num_entities, self.num_relations)

    @cached_property
    def known_all(self) -> KnownTriples:
        """Answers known from any split: the filter of filtered ranks."""
        if all(len(self.split(name)) == 0 for name in SPLITS[1:]):
            return self.known_train
        triples = np.concatenate([self.split(name) for name in SPLITS])
        return KnownTriples.build(triples, self.num_entities, self.num_relations)

    def find_triple(self, head: str, relation: str, tail: str) -> tuple[int, int, int] | None:
        """The indices of three ids, whether or not it is a fact; None where one of them is unknown."""
        h, r, t = self.entities.find(head), self.relations.find(relation), self.entities.find(tail)
        return None if h is None or r is None or t is None else (h, r, t)

    def split(self, name: str) -> Int32:
        """The triples of "train", "valid", "test" or "inference"."""
        if name not in SPLITS:
            raise SatkgcError(f"unknown split {name!r}", remedy="choose train, valid, test or inference")
        return {"train": self.train, "valid": self.valid, "test": self.test, "inference": self.inference}[name]

    def __repr__(self) -> str:
        shown = SPLITS if len(self.inference) else SPLITS[:3]
        counts = "/".join(f"{len(self.split(name)):,}" for name in shown)
        return (
            f"KnowledgeGraph({self.name!r}: {self.num_entities:,} entities, {self.num_relations:,} relations, "
            f"{counts} {'/'.join(shown)} triples)"
        )


def _check_range(indices: Int32, size: int, kind: str, what: str = "a triple") -> None:
    """The compiled loops trust their indices, so that a wrong one must not get as far."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise SatkgcError(f"{what} points to {kind} {wrong} of {size}", remedy="indices run from 0 to size - 1")
