"""Shards on Ray: the same numbers as here, nothing twice, and what a dead worker or a full disk costs."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from satkgc.completion import Completer, bulk
from satkgc.completion.bulk import EntityWorker, on_ray
from satkgc.completion.prepare import load_model
from satkgc.errors import SatkgcError
from satkgc.training import RunFolder

pytest_plugins = ["world"]
SHARDS = range(0, 90, 9)


class Mortal:
    """Encodes nine entities a shard and notes each beginning; killed at one shard, and without disk at the last, once
    all others are there."""

    def __init__(self, run: Path, notes: Path) -> None:
        self.work = EntityWorker(run, "cpu", [range(start, start + 9) for start in SHARDS])
        self.notes = notes

    def __call__(self, shard: int) -> pa.Table:
        with self.notes.open("a") as file:
            file.write(f"{shard}\n")
        if shard == 18 and self.notes.read_text().split().count("18") == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if shard == SHARDS[-1]:
            others = [self.notes.parent / "shards" / f"key-{other:010d}.parquet" for other in SHARDS[:-1]]
            for _ in range(1200):
                if all(path.exists() for path in others):
                    break
                time.sleep(0.1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))  # the system refuses more
        return self.work(shard)


@pytest.fixture(scope="module")
def cluster():
    """Ray on this machine, started once, whose workers find this module."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        with bulk._cluster(bulk._ray()):
            yield


def test_the_result_is_the_local_one(cluster, run_copy, completer, tmp_path, monkeypatch):
    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 30})
    monkeypatch.setattr("satkgc.completion.proposals.BATCH", 16)
    model = completer._engine.model
    local = [model.encode_entities(np.arange(start, start + 30, dtype=np.int32)) for start in (0, 30, 60)]
    monkeypatch.setattr(type(model), "encode_entities", lambda *_: 1 / 0)  # here; workers are other processes
    Completer.prepare(run_copy, "cpu", engine="ray")
    monkeypatch.undo()
    np.testing.assert_array_equal(np.load(run_copy / "index" / "entities.npy"), np.concatenate(local))
    assert not list(run_copy.rglob("*.parquet"))
    monkeypatch.setattr("satkgc.completion.proposals.BATCH", 16)
    again = Completer.load(run_copy, "cpu")
    for name, engine in (("local.tsv", "local"), ("ray.tsv", "ray")):
        again.propose(tmp_path / name, n=60, relations=["near", "knows"], engine=engine)
    assert (tmp_path / "ray.tsv").read_bytes() == (tmp_path / "local.tsv").read_bytes()
    assert not (tmp_path / "ray.tsv.shards").exists()


def test_a_dead_worker_costs_its_shard_and_a_full_disk_is_told(cluster, prepared, tmp_path):
    folder, notes = tmp_path / "shards", tmp_path / "notes"
    worker = partial(Mortal, prepared, notes)
    with pytest.raises(OSError, match="File too large"):
        list(on_ray(worker, SHARDS, folder, "key", "cpu"))
    began = list(map(int, notes.read_text().split()))
    assert sorted(began) == sorted([*SHARDS, 18])  # the one it was at, and no other, is begun again
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"key-{shard:010d}.parquet" for shard in SHARDS[:-1]]
    # A second start takes what is whole, and has the rest done: the last, and one that was damaged since.
    content = (folder / names[0]).read_bytes()
    (folder / names[0]).write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    tables = dict(islice(on_ray(worker, SHARDS, folder, "key", "cpu"), 8))
    assert list(tables) == list(SHARDS[1:-1])
    model = load_model(RunFolder.load(prepared), "cpu")
    for shard, table in tables.items():
        ids = np.arange(shard, shard + 9, dtype=np.int32)
        assert table["entity"].to_pylist() == ids.tolist()
        np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), model.encode_entities(ids))


def test_what_cannot_be_is_refused(completer, tmp_path, monkeypatch):
    with pytest.raises(SatkgcError, match="no engine 'spark'; choose one of local, ray"):
        completer.propose(tmp_path / "out.tsv", engine="spark")
    monkeypatch.setattr(bulk, "on_ray", lambda *_: 1 / 0)
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "other-0000000000.parquet").touch()
    with pytest.raises(SatkgcError, match="shards: an unfinished proposal with other settings is here; repeat those"):
        list(bulk.ask_on_ray(tmp_path, "cpu")(None, [(0, 0)], tmp_path / "shards", "key"))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SatkgcError, match=r"Ray is not installed; pip install 'satkgc\[ray\]', or --engine local"):
        completer.propose(tmp_path / "out.tsv", engine="ray")
