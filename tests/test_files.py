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

from satkgc import files
from satkgc.analysis.chart import Chart, draw_charts
from satkgc.completion import Completer
from satkgc.completion.rows import Rows
from satkgc.completion.search import EntitySearch
from satkgc.errors import SatkgcError
from satkgc.export.vectors import write_npy
from satkgc.files import atomic_folder, atomic_write, check_writable, new_folder, put_in_place
from satkgc.kg.pieces import mapped_triples
from satkgc.sampling import plot_occurrences
from satkgc.training import RunFolder
from satkgc.training.log import draw_curves

pytest_plugins = ["world"]

COUNTS = np.array([3, 2, 1])
BARS = Chart("seen", "group", ["1"], {"run": COUNTS[:1].astype(float)})
VISITS = SimpleNamespace(triples=COUNTS, entities=COUNTS, degrees=COUNTS, hops=COUNTS)
WRITERS = {
    "curves.png": lambda file: draw_curves([{"step": 1, "loss": 2.0}], file),
    "visits.png": lambda file: plot_occurrences(file, {"rwr": VISITS}, "visits"),
    "bars.png": lambda file: draw_charts([BARS], file),
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


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path, exchange, monkeypatch):
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    put_in_place(tmp_path / "new", tmp_path / "old")
    assert [path.name for path in tmp_path.rglob("*")] == ["old", "new"]
    (tmp_path / "next").mkdir()
    put_in_place(tmp_path / "next", tmp_path / "fresh")
    assert (tmp_path / "fresh").is_dir()


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_that_cannot_be_replaced_is_not_lost(tmp_path, exchange, monkeypatch):
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "weights").write_text("trained")
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "gone meanwhile", tmp_path / "old")
    assert (tmp_path / "old" / "weights").read_text() == "trained"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no call that exchanges two names")
def test_a_folder_is_never_gone_while_it_is_replaced(tmp_path, monkeypatch):
    """Somebody looks all the time. With one core nobody may look between two renames: there are none."""
    script = "import os, sys\nwhile True:\n    os.stat(sys.argv[1])"
    with atomic_folder(tmp_path / "graph"):
        pass
    monkeypatch.setattr(os, "rename", lambda *names: pytest.fail("renamed, and not exchanged"))
    looking = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "graph")], stderr=subprocess.DEVNULL)
    try:
        for number in range(300):
            with atomic_folder(tmp_path / "graph") as part:
                (part / "number").write_text(str(number))
        assert looking.poll() is None
    finally:
        looking.kill()
        looking.wait()
    assert os.listdir(tmp_path) == ["graph"]
    assert (tmp_path / "graph" / "number").read_text() == "299"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which file a descriptor is")
def test_all_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    """What a power cut leaves: names of files whose content was never asked to the disk."""
    done = []
    for name in ("fsync", "replace", "rename"):
        real = getattr(os, name)

        def call(*args, name=name, real=real):
            path = os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else str(args[-1])
            done.append((name, os.path.relpath(path, tmp_path)))
            return real(*args)

        monkeypatch.setattr(os, name, call)
    with atomic_write(tmp_path / "a.json") as part:
        part.write_text("x")
    assert done == [("fsync", part.name), ("replace", "a.json"), ("fsync", ".")]
    done.clear()
    with atomic_folder(tmp_path / "f") as part:
        (part / "below").mkdir()
        (part / "below" / "b").write_text("x")
    assert sorted(done[:3]) == [
        ("fsync", part.name),
        ("fsync", f"{part.name}/below"),
        ("fsync", f"{part.name}/below/b"),
    ]
    assert done[3:] == [("rename", "f"), ("fsync", ".")]
    done.clear()
    with new_folder(tmp_path / "n") as part:
        (part / "b").write_text("x")
    assert sorted(done[:2]) == [("fsync", part.name), ("fsync", f"{part.name}/b")]
    assert done[2:] == [("rename", "n"), ("fsync", ".")]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="other systems have no call that takes room")
def test_what_is_written_through_a_memory_map_has_its_room_first(prepared, tmp_path, monkeypatch):
    """On a full disk it would be the end of the process; a file of holes has fewer blocks than its size."""
    short, really = [], Completer.vectors

    def look(file):
        facts = file.stat()
        short.extend([file.name] if facts.st_blocks * 512 < facts.st_size else [])

    def vectors(completer, *rows):
        look(tmp_path / "entities.npy") if (tmp_path / "entities.npy").exists() else None
        return really(completer, *rows)

    files.reserve(tmp_path / "a", 1 << 20)
    look(tmp_path / "a")
    with Rows(tmp_path, "key", 10_000, 32) as rows:
        look(rows.file)
    mapped_triples(tmp_path / "triples", 100_000)
    look(tmp_path / "triples")
    monkeypatch.setattr(Completer, "vectors", vectors)
    write_npy(RunFolder.load(prepared), tmp_path, "cpu")
    assert {file.name for file in tmp_path.iterdir()} >= {"a", "triples", "entities.npy"}
    assert short == []


def test_a_name_that_was_taken_meanwhile_stays(tmp_path):
    def write():
        with new_folder(tmp_path / "n") as part:
            (part / "b").write_text("x")
            (tmp_path / "n").mkdir()
            (tmp_path / "n" / "theirs").write_text("y")

    with pytest.raises(OSError, match="not empty"):
        write()
    assert [path.name for path in tmp_path.rglob("*")] == ["n", "theirs"]


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # a test may run as root, who may write anywhere
    with pytest.raises(SatkgcError, match="this folder cannot be written; choose another place"):
        check_writable(tmp_path / "x.tsv")
