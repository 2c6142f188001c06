"""Entity vectors as files: Parquet with ids and texts, or a .npy array with ids beside it; what the encoders read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.completion import Completer
from satkgc.errors import SatkgcError
from satkgc.export.embeddings import write_embeddings_npy, write_embeddings_parquet
from satkgc.files import reserve
from satkgc.kg import KnowledgeGraph
from satkgc.models import EmbeddingConfig, EncoderModelConfig, TextModel
from satkgc.text import TextConfig, full_text, relation_label, relation_text
from satkgc.training import RunFolder

ROWS = 8192  # entities written at once


def write_parquet(run: RunFolder, out: Path, device: str) -> dict[str, Any]:
    """entities.parquet: id, name, the text that was read if the model reads any, vector."""
    if isinstance(run.config.model, EmbeddingConfig):
        return write_embeddings_parquet(run, out)
    completer, kg = Completer.load(run.folder, device), run.kg
    dim = completer.vectors(0, 1).shape[1]
    config = run.config.model
    fields = [("id", pa.string()), ("name", pa.string()), ("vector", pa.list_(pa.float32(), dim))]
    if isinstance(config, EncoderModelConfig):
        fields.insert(2, ("text", pa.string()))
    schema = pa.schema(fields)
    with pq.ParquetWriter(out / "entities.parquet", schema, compression="zstd") as writer:
        for start, stop in _ranges(kg.num_entities):
            rows = completer.vectors(start, stop)
            columns = {
                "id": kg.entities.ids[start:stop].cast(pa.string()),
                "name": kg.entities.names[start:stop].cast(pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), dim),
            }
            if isinstance(config, EncoderModelConfig):
                columns["text"] = pa.array(entity_strings(kg, config.text, start, stop), pa.string())
            writer.write_table(pa.table([columns[name] for name in schema.names], schema))
    return {"entities": kg.num_entities, "width": dim}


def write_npy(run: RunFolder, out: Path, device: str) -> dict[str, Any]:
    """entities.npy (E, dim) float32, and ids.txt with one id a line."""
    _write_ids(_ids(run.kg), out / "ids.txt")
    if isinstance(run.config.model, EmbeddingConfig):
        _write_ids(run.kg.relations.ids.to_pylist(), out / "relation_ids.txt")
        return write_embeddings_npy(run, out)
    completer, count = Completer.load(run.folder, device), run.kg.num_entities
    dim = completer.vectors(0, 1).shape[1]
    array = np.lib.format.open_memmap(out / "entities.npy", "w+", np.float32, (count, dim))
    reserve(out / "entities.npy", (out / "entities.npy").stat().st_size)  # or a full disk would end the process
    for start, stop in _ranges(count):
        array[start:stop] = completer.vectors(start, stop)
    array.flush()
    return {"entities": count, "width": dim}


def load_text_model(run: RunFolder, format: str) -> TextModel:
    """A run's text model, on the CPU, whose float32 the exported encoders are compared with."""
    model = run.model("cpu")
    if not isinstance(model, TextModel):
        what = f"{format} takes trained text encoders, and {type(model).__name__} has none"
        raise SatkgcError(what, where=run.folder, remedy="export its vectors, if it has any, as parquet or npy")
    return model


def entity_strings(kg: KnowledgeGraph, config: TextConfig, start: int = 0, stop: int | None = None) -> Iterator[str]:
    """What the encoders read of entities, in order: to be handed to a tokenizer elsewhere for the same vectors.

    Name and description, and neighbours' names where the description is short.
    """
    stop = kg.num_entities if stop is None else stop

    def label(directed: int) -> str:
        relation, inverse = directed % kg.num_relations, directed >= kg.num_relations
        return relation_label(kg.relations.id(relation), kg.relations.name(relation), inverse)

    for entity in range(start, stop):
        near = list(_neighbours(kg, config, entity)) if config.max_neighbours else []
        yield full_text(kg.entities.name(entity), kg.entities.description(entity), near, config, label)


def relation_strings(kg: KnowledgeGraph, config: TextConfig) -> list[str]:
    """Texts of the 2R directed relations, the inverse ones after the others."""
    both = [(kg.relations.id(r), kg.relations.name(r)) for r in range(kg.num_relations)]
    return [relation_text(id, name, config, inverse) for inverse in (False, True) for id, name in both]


def _neighbours(kg: KnowledgeGraph, config: TextConfig, entity: int) -> Iterator[tuple[int, str]]:
    """An entity's neighbours: directed relations, all the same where they are not named, and names."""
    trained = kg.adjacency.degree[entity] > 0  # others have neighbours in the inference split alone
    if not config.neighbours_per_relation:
        groups = [(0, (kg.adjacency if trained else kg.fact_adjacency).neighbours_of(entity))]
    else:
        known = kg.known_train if trained else kg.known_facts
        groups = [(directed, known.answers(entity, directed)) for directed in range(2 * kg.num_relations)]
    for directed, others in groups:
        yield from ((directed, kg.entities.name(int(other))) for other in others if other != entity)


def _ranges(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, ROWS):
        yield start, min(start + ROWS, count)


def _write_ids(ids: Iterable[str], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for id in ids:
            if "\n" in id or "\r" in id:
                what = f"the id {id!r} has two lines, {file.name} one for each"
                raise SatkgcError(what, remedy="export as parquet")
            stream.write(f"{id}\n")


def _ids(kg: KnowledgeGraph) -> Iterator[str]:
    for start, stop in _ranges(kg.num_entities):
        yield from kg.entities.ids[start:stop].to_pylist()
