"""Entities of a graph that are one thing, made one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from satkgc.arrays import Int32, Int64
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary

ORDER = ("train", "inference", "valid", "test")  # a triple that several splits come to have stays in the first


def merge_entities(kg: KnowledgeGraph, into: Mapping[int, int]) -> KnowledgeGraph:
    """The graph without the keys of a map, which become their values in all triples; values are not keys themselves.

    A triple that is there twice by then stays once; one that joined two entities which are one now is dropped. An
    entity without a description takes that of the first that became it.
    """
    target = np.arange(kg.num_entities, dtype=np.int64)
    target[list(into.keys())] = list(into.values())
    stays = target == np.arange(kg.num_entities)
    number = np.cumsum(stays) - 1  # of those that stay
    place = number[target].astype(np.int32)
    descriptions = kg.entities.descriptions.to_pylist()
    for gone in sorted(into):
        descriptions[into[gone]] = descriptions[into[gone]] or descriptions[gone]
    kept = pa.array(np.flatnonzero(stays))
    texts = pa.array(descriptions, pa.large_string()).take(kept)
    entities = Vocabulary.build("entity", kg.entities.ids.take(kept), kg.entities.names.take(kept), texts)
    seen: Int64 = np.empty(0, np.int64)
    splits: dict[str, Int32] = {}
    for name in ORDER:
        before = kg.split(name)
        rows = before.copy()
        rows[:, 0], rows[:, 2] = place[before[:, 0]], place[before[:, 2]]
        rows = rows[(rows[:, 0] != rows[:, 2]) | (before[:, 0] == before[:, 2])]
        wide = rows.astype(np.int64)
        keys = (wide[:, 0] * kg.num_relations + wide[:, 1]) * len(entities) + wide[:, 2]
        _, first = np.unique(keys, return_index=True)
        first = np.sort(first)
        splits[name] = rows[first[~np.isin(keys[first], seen)]]
        seen = np.concatenate([seen, keys])
    held_out = {name: np.unique(place[members]) for name, members in kg.split_entities.items()}
    train, inference, valid, test = (splits[name] for name in ORDER)
    return KnowledgeGraph.from_arrays(
        kg.name, entities, kg.relations, train, valid, test, split_entities=held_out, inference=inference
    )
