"""A small graph of places and people with texts, and a run folder over it whose model was never trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.manifest import write_manifest
from satkgc.models import EncoderConfig, TextModel, TextModelConfig
from satkgc.sampling import SamplingConfig
from satkgc.training import Config, RunFolder

RELATIONS = ["born in", "capital of", "knows", "near"]


def little_world() -> KnowledgeGraph:
    """90 entities, four relations of which only `near` leads from some entity to itself, three splits."""
    rng = np.random.default_rng(11)
    names = [f"{a}{b}{c}" for a in "blmrst" for b in "aeiou" for c in ("ro", "na", "mil")]
    ids = [f"Q{i}" for i in range(90)]
    names[7] = names[41] = "Mercury"  # two of one name
    names[12] = "Leonardo da Mila"
    descriptions = [f"a place of {names[(3 * i + 1) % 90]}" if i % 3 else "" for i in range(90)]
    rows = np.stack([rng.integers(0, 90, 700), rng.integers(0, 4, 700), rng.integers(0, 90, 700) ** 2 // 90], 1)
    rows = rows[(rows[:, 0] != rows[:, 2]) | (rows[:, 1] == 3)]
    rows = np.unique(np.concatenate([rows, [[5, 3, 5]]]), axis=0)
    rows = rows[rng.permutation(len(rows))]
    rows = np.concatenate([rows[(rows == [5, 3, 5]).all(1)], rows[(rows != [5, 3, 5]).any(1)]])
    return KnowledgeGraph.from_arrays(
        "little world",
        Vocabulary.build("entity", pa.array(ids), pa.array(names), pa.array(descriptions)),
        Vocabulary.build(
            "relation", pa.array([r.replace(" ", "_") for r in RELATIONS]), pa.array(RELATIONS), pa.array([""] * 4)
        ),
        rows[:450],
        rows[450:550],
        rows[550:],
    )


def write_run(folder: Path, kg: KnowledgeGraph, backbone: Path, **encoder: object) -> Path:
    """A run folder as training leaves it, but with an untrained text model."""
    model = TextModelConfig(encoder=EncoderConfig(backbone=str(backbone), **encoder))
    config = Config(model=model, sampling=SamplingConfig(batch_size=64))
    RunFolder.create(folder, config, kg, "made up")
    TextModel(kg, config.model).save(folder / "model")
    write_manifest(folder / "model")
    return folder
