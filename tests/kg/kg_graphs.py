"""Random multigraphs with loops, parallel edges and isolated entities, and what a graph says, for comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from satkgc.kg import SPLITS, KnowledgeGraph, Vocabulary

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def vocabulary(kind: str, ids: list[str], names: list[str] | None = None, texts: list[str] | None = None) -> Vocabulary:
    names, texts = names or [f"name of {id}" for id in ids], texts or [""] * len(ids)
    return Vocabulary.build(kind, *(pa.array(column, pa.string()) for column in (ids, names, texts)))


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Few entities, so that loops, parallel edges and repeated triples are common; some entities stay isolated."""
    ids = draw(st.lists(TEXT, min_size=1, max_size=9, unique=True))
    relations = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    entity = st.integers(0, len(ids) - 1)
    rows = st.lists(st.tuples(entity, st.integers(0, len(relations) - 1), entity), max_size=25)
    names = draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids)))
    texts = draw(st.lists(TEXT, min_size=len(ids), max_size=len(ids)))
    held_out = draw(st.dictionaries(st.sampled_from(["valid", "test"]), st.lists(entity, max_size=3)))
    return KnowledgeGraph.from_arrays(
        draw(TEXT),
        vocabulary("entity", ids, names, texts),
        vocabulary("relation", relations),
        draw(rows),
        draw(st.none() | rows),
        draw(st.none() | rows),
        {split: np.array(members, np.int32) for split, members in held_out.items()},
        draw(st.none() | rows),
    )


def content(graph: KnowledgeGraph) -> dict[str, Any]:
    """Everything that a graph holds or derives, as plain lists."""
    parts: dict[str, Any] = {"adjacency": graph.adjacency, "fact_adjacency": graph.fact_adjacency}
    parts |= {name: getattr(graph, name) for name in ("known_train", "known_facts", "known_all")}
    result: dict[str, Any] = {
        f"{name}.{field}": np.asarray(value).tolist()
        for name, part in parts.items()
        for field, value in vars(part).items()
        if field != "degree"
    }
    for members in (graph.entities, graph.relations):
        result |= {f"{members.kind}.{key}": value.tolist() for key, value in vars(members).items() if key != "kind"}
    for split in SPLITS:
        result[split] = graph.split(split).tolist()
    result["degree"] = graph.adjacency.degree.tolist()
    result["held_out"] = {split: members.tolist() for split, members in graph.split_entities.items()}
    return result | {"name": graph.name}
