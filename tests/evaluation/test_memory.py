"""Ranking a memory-mapped file: ten times the entities take no more memory. In a process of its own, to measure it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource, sys
import numpy as np
from by_hand import slices_of, unit_vectors
from satkgc.evaluation import rank_queries

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rng = np.random.default_rng(0)
queries = unit_vectors(rng, 50, 64)
block = unit_vectors(rng, 10_000, 64)
peaks = []
for copies in (4, 40):
    with open(sys.argv[1], "wb") as stream:
        for _ in range(copies):
            block.tofile(stream)
    entities = np.memmap(sys.argv[1], np.float32, "r", shape=(copies * 10_000, 64))
    ranks = rank_queries(queries, entities, np.arange(50, dtype=np.int32), slices_of([[]] * 50), memory_mib=8)
    assert (ranks.equal >= copies - 1).all()
    peaks.append(peak())
print(json.dumps({"peaks": peaks, "file": copies * block.nbytes / 2**20}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages as Linux does")
def test_memory_does_not_grow_with_the_number_of_entities(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "entities.f32")]
    here = __file__.rsplit("/", 2)
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": f"{here[0]}:{here[0]}/{here[1]}", "PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    small, large = measured["peaks"]
    assert measured["file"] > 90
    assert large - small < 20
