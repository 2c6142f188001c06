"""The embeddings of an embedding model as files, of entities and of directed relations, and what their numbers mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.arrays import Float32
from satkgc.kg import Vocabulary
from satkgc.models import EmbeddingConfig, EmbeddingModel
from satkgc.training import RunFolder

FORMS = {
    "transe": "The score of (h, r, t) is the negative distance of h + r from t.",
    "distmult": "The score of (h, r, t) is the sum of h · r · t.",
    "complex": "The first half of a vector are real parts, the second imaginary ones. "
    "The score of (h, r, t) is the real part of the sum of h · r · conjugate(t).",
    "rotate": "The first half of an entity's vector are real parts, the second imaginary ones; a relation's numbers "
    "are angles in radians. The score of (h, r, t) is the negative distance of h · exp(i r) from t.",
    "tucker": "core.npy holds W. The score of (h, r, t) is the sum of W[i, j, k] · h[i] · r[j] · t[k].",
    "compounde": "The first half of an entity's vector are the x of its planes, the second the y. Of a relation's five "
    "parts two move x and y, two scale them, and the last turns them, in radians: h is scaled, then turned, then "
    "moved. The score of (h, r, t) is the negative distance of that from t.",
}
DISTANCES = {"l1": "l1", "l2": "l2", "l2-squared": "squared l2"}


def describe_form(config: EmbeddingConfig) -> str:
    """What the numbers mean, for the model card."""
    form = FORMS[config.interaction].replace("negative distance", f"negative {DISTANCES[config.distance]} distance")
    return f"{form} Relations come twice: as they are, then inverted, for questions that ask for heads."


def write_embeddings_parquet(run: RunFolder, out: Path) -> dict[str, Any]:
    """entities.parquet: id, name, vector; relations.parquet: id, name, inverse, vector."""
    entities, relations, facts = _tables(run, out)
    kg = run.kg
    pq.write_table(pa.table(_columns(kg.entities) | {"vector": _vectors(entities)}), out / "entities.parquet")
    twice = {name: pa.chunked_array([column, column]) for name, column in _columns(kg.relations).items()}
    inverse = pa.array(np.arange(2 * kg.num_relations) >= kg.num_relations)
    table = pa.table(twice | {"inverse": inverse, "vector": _vectors(relations)})
    pq.write_table(table, out / "relations.parquet")
    return facts


def write_embeddings_npy(run: RunFolder, out: Path) -> dict[str, Any]:
    """entities.npy (E, width) and relations.npy (2R, width)."""
    entities, relations, facts = _tables(run, out)
    np.save(out / "entities.npy", entities)
    np.save(out / "relations.npy", relations)
    return facts


def _tables(run: RunFolder, out: Path) -> tuple[Float32, Float32, dict[str, Any]]:
    model = run.model("cpu")
    assert isinstance(model, EmbeddingModel)
    entities, relations = (table.weight.detach().numpy() for table in (model.entities, model.relations))
    for name, parameter in model.interaction.named_parameters():
        np.save(out / f"{name}.npy", parameter.detach().numpy())
    return entities, relations, {"entities": len(entities), "relations": len(relations), "width": entities.shape[1]}


def _columns(vocabulary: Vocabulary) -> dict[str, Any]:
    return {"id": vocabulary.ids.cast(pa.string()), "name": vocabulary.names.cast(pa.string())}


def _vectors(rows: Float32) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
