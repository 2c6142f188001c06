"""The knowledge graph: an immutable object that everything else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.kg.adjacency import Adjacency, _frozen
from satkgc.kg.known import KnownTriples
from satkgc.kg.vocabulary import Int32, Vocabulary


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Entities, relations, three splits of triples, and the lookups that training and evaluation need.

    Arrays are read-only and int32; triples have the columns head, relation, tail. Derived structures are built on
    first use, or memory-mapped when the graph was opened from its binary form.
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Int32  # (T, 3)
    valid: Int32  # (V, 3)
    test: Int32  # (S, 3)
    split_entities: Mapping[str, Int32] = field(default_factory=dict)  # inductive graphs: "valid", "test"
    path: Path | None = None  # the binary folder this was opened from

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
    ) -> KnowledgeGraph:
        """Make a graph from index triples; the arrays are copied where they are not int32 already."""

        def frozen(split: Any) -> Int32:
            array: Int32 = _frozen(np.ascontiguousarray(np.empty((0, 3)) if split is None else split, np.int32))
            return array

        splits = frozen(train), frozen(valid), frozen(test)
        return cls(name, entities, relations, *splits, split_entities=dict(split_entities or {}))

    @property
    def num_entities(self) -> int:
        """E."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """R; directed relations run to 2R, the inverse of r being r + R."""
        return len(self.relations)

    @cached_property
    def adjacency(self) -> Adjacency:
        """Neighbours and triples of every entity in the training graph."""
        return Adjacency.build(self.train, self.num_entities)

    @cached_property
    def known_train(self) -> KnownTriples:
        """Answers known from training alone: what the loss may mask."""
        return KnownTriples.build(self.train, self.num_entities, self.num_relations)

    @cached_property
    def known_all(self) -> KnownTriples:
        """Answers known from any split: the filter of filtered ranks."""
        triples = np.concatenate([self.train, self.valid, self.test])
        return KnownTriples.build(triples, self.num_entities, self.num_relations)

    def split(self, name: str) -> Int32:
        """The triples of "train", "valid" or "test"."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.name!r}: {self.num_entities:,} entities, {self.num_relations:,} relations, "
            f"{len(self.train):,}/{len(self.valid):,}/{len(self.test):,} train/valid/test triples)"
        )
