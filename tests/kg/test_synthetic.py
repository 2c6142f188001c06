"""The generator behind bench/load.py: seeded, of the size asked for, long-tailed, and readable."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from satkgc import KnowledgeGraph


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import synthetic

    yield synthetic
    del sys.modules["synthetic"]


def test_triples_are_distinct_seeded_and_long_tailed(synthetic) -> None:  # type: ignore[no-untyped-def]
    triples = synthetic.triples(2000, 20, 9000, seed=3)
    assert triples.shape == (9000, 3)
    assert len(np.unique(triples, axis=0)) == 9000
    assert (triples.max(0) < [2000, 20, 2000]).all()
    assert np.array_equal(triples, synthetic.triples(2000, 20, 9000, seed=3))
    assert not np.array_equal(triples, synthetic.triples(2000, 20, 9000, seed=4))
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=2000)
    assert degree.max() > 30 * np.median(degree)


def test_its_files_can_be_read(synthetic, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    synthetic.write(tmp_path, 300, 5, 900)
    graph = KnowledgeGraph.load(tmp_path / "triples.parquet", entities=tmp_path / "entities.parquet", split="none")
    assert (graph.num_entities, graph.num_relations, len(graph.train)) == (300, 5, 900)
    assert 8 <= len(graph.entities.description(299).split()) <= 32
