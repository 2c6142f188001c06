"""A file is written whole or not at all, and nothing is left beside it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from satkgc.analysis import ANALYSES, draw_bars
from satkgc.completion.search import EntitySearch
from satkgc.files import atomic_write
from satkgc.sampling import plot_occurrences
from satkgc.training.log import draw_curves

COUNTS = np.array([3, 2, 1])
BARS = SimpleNamespace(groups=["1"], values=COUNTS[:1])
VISITS = SimpleNamespace(triples=COUNTS, entities=COUNTS, degrees=COUNTS, hops=COUNTS)
WRITERS = {
    "curves.png": lambda file: draw_curves([{"step": 1, "loss": 2.0}], file),
    "visits.png": lambda file: plot_occurrences(file, {"rwr": VISITS}, "visits"),
    "bars.svg": lambda file: draw_bars({"run": BARS}, ANALYSES["distance-similarity"], file),
    "names.npy": lambda file: EntitySearch(None, None, np.arange(999), np.arange(9)).save(file.parent),
}


@contextmanager
def small_disk():
    """The system refuses to write more than a little, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", WRITERS)
def test_what_was_there_stays_until_the_new_is_whole(tmp_path, name):
    (tmp_path / name).write_text("before")
    with small_disk(), pytest.raises(OSError, match=r"too large|requested and"):
        WRITERS[name](tmp_path / name)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "before"}
    WRITERS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size > 100


def test_what_killed_processes_left_is_removed(tmp_path):
    file = tmp_path / "a.json"
    script = "import sys, pathlib, satkgc.files as o; o.partial(pathlib.Path(sys.argv[1])).write_text('half')"
    subprocess.run([sys.executable, "-c", script, str(file)], check=True)
    assert len(os.listdir(tmp_path)) == 1
    with atomic_write(file) as part:
        part.write_text("whole")
    assert os.listdir(tmp_path) == ["a.json"]
    assert file.read_text() == "whole"
