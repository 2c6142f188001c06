"""Milvus behind the index: what the contract of test_index does not say of a database, a server and their faults."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import replace

import numpy as np
import pytest

from satkgc.completion import Completer, NewEntity
from satkgc.completion.index import ExactIndex, MilvusIndex, check_index
from satkgc.completion.index.exact import CPU
from satkgc.errors import SatkgcError
from satkgc.manifest import sha256

pytest.importorskip("milvus_lite")
pytest_plugins = ["world"]
SECRET = "root:do-not-keep-me"


@pytest.fixture(scope="module")
def vectors():
    rows = np.random.default_rng(7).normal(size=(300, 16))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def build(folder, vectors, uri=None):
    folder.mkdir(exist_ok=True)
    np.save(folder / "vectors.npy", vectors)
    return MilvusIndex.build(folder, folder / "vectors.npy", lambda: vectors[:20], CPU, uri)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Milvus Lite as a server of its own on loopback: it speaks the protocol of a cluster."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    process, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("server") / "data.db"))
    yield f"http://127.0.0.1:{port}"
    process.stop(grace=0)
    database.close()


def files(folder):
    return {path.relative_to(folder): sha256(path) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("few", [7, 60])  # named in pieces of seven, and found among the nearest
def test_many_allowed_entities_are_searched_as_few_are(tmp_path, vectors, monkeypatch, few):
    monkeypatch.setattr("satkgc.completion.index.milvus.FEW", few)
    index, exact = build(tmp_path, vectors), ExactIndex(vectors)
    index.collection = replace(index.collection, probes=index.collection.lists)  # it misses none
    allow = np.arange(1, 300, 4 if few == 7 else 2, dtype=np.int32)
    exclude = [allow[i : i + 5] for i in range(12)]
    for k in (3, len(allow) + 4):
        mine, theirs = (one.search(vectors[:12], k, allow, exclude) for one in (index, exact))
        np.testing.assert_array_equal(mine[1], theirs[1])
        np.testing.assert_allclose(mine[0], theirs[0], atol=1e-6)


def test_a_server_keeps_the_vectors_and_no_token_is_kept(tmp_path, vectors, server, monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", SECRET)
    index = build(tmp_path, vectors, server)
    assert not (tmp_path / "milvus.db").exists()
    assert json.loads((tmp_path / "milvus.json").read_text())["uri"] == server
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())
    np.testing.assert_array_equal(index.search(vectors[:9], 1)[1][:, 0], np.arange(9))
    monkeypatch.setattr(index.client, "drop_collection", lambda _: 1 / 0)
    monkeypatch.setattr(type(index.client), "insert", lambda *_: 1 / 0)  # what is there whole is not brought again
    assert build(tmp_path, vectors, server).facts == index.facts


def test_a_run_that_names_a_server_is_opened_where_the_user_names_it_too(tmp_path, vectors, server, monkeypatch):
    build(tmp_path, vectors, server)
    spoken: list[str] = []
    monkeypatch.setattr("satkgc.completion.index.milvus._client", lambda place: spoken.append(place) or 1 / 0)
    for elsewhere in ({}, {"MILVUS_URI": "http://localhost:1"}):
        with monkeypatch.context() as environment:
            environment.setattr("os.environ", elsewhere)
            with pytest.raises(
                SatkgcError, match=f"the vectors of this run are on the server '{server}'; if you trust"
            ):
                MilvusIndex.open(tmp_path, CPU)
    assert not spoken
    monkeypatch.setenv("MILVUS_URI", server)
    with pytest.raises(ZeroDivisionError):
        MilvusIndex.open(tmp_path, CPU)
    assert spoken == [server]


def test_a_collection_without_the_models_vectors_is_refused(tmp_path, vectors, server, monkeypatch):
    monkeypatch.setenv("MILVUS_URI", server)
    index = build(tmp_path, vectors[::-1].copy(), server)
    name = index.collection.name
    index.client.upsert(name, [{"id": 0, "vector": vectors[5]}])
    with pytest.raises(SatkgcError, match=rf"{server}: the collection {name} holds vectors that this run's model did"):
        MilvusIndex.open(tmp_path, CPU)
    index.client.delete(name, ids=[3])
    with pytest.raises(SatkgcError, match=f"the collection {name} has 299 vectors, and the graph 300 entities"):
        MilvusIndex.open(tmp_path, CPU)
    assert len(build(tmp_path, vectors[::-1].copy(), server).fetch(np.array([3], np.int32)))  # it is brought anew
    index.client.drop_collection(name)
    with pytest.raises(SatkgcError, match=f"Milvus has no collection {name}; make it anew with `satkgc prepare`"):
        MilvusIndex.open(tmp_path, CPU)
    with pytest.raises(SatkgcError, match=r"Milvus refuses \(.*\); is the server there"):
        index.search(vectors[:1], 1)


def test_what_cannot_be_is_refused_before_anything_is_encoded(monkeypatch, capfd):
    monkeypatch.setattr("satkgc.completion.index.milvus.TIMEOUT", 0.5)
    monkeypatch.setenv("MILVUS_TOKEN", SECRET)
    with pytest.raises(SatkgcError) as error:
        check_index("milvus", "http://127.0.0.1:9")
    assert str(error.value).startswith("http://127.0.0.1:9: Milvus refuses (")
    assert SECRET not in str(error.value) + "".join(capfd.readouterr())
    with pytest.raises(SatkgcError, match="a password in the address would be kept in the run; set the environment"):
        check_index("milvus", f"http://{SECRET}@localhost:19530")
    with pytest.raises(SatkgcError, match=r"no address of a Milvus server: 'vectors\.db'"):
        check_index("milvus", "vectors.db")
    with pytest.raises(SatkgcError, match="the index 'exact' is no server's; --uri goes with --index milvus"):
        check_index("exact", "http://localhost:19530")
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(SatkgcError, match=r"not installed; pip install 'satkgc\[milvus\]', or use another index"):
        check_index("milvus")


def test_milvus_behind_the_same_completer(run_copy, completer):
    facts = Completer.prepare(run_copy, index="milvus")
    assert facts["recall@10"] > 0.95
    before = files(run_copy)
    first, second = Completer.load(run_copy), Completer.load(run_copy)  # Milvus Lite alone would let one in
    for h in range(0, 90, 30):
        mine, exact = first.tails(f"Q{h}", "near", k=10), completer.tails(f"Q{h}", "near", k=10)
        assert [a.score for a in mine] == pytest.approx([a.score for a in exact], abs=1e-4)
    first.add(NewEntity("Zanzibar", "an island"))
    assert len(first._engine.retriever) == len(second._engine.retriever) + 1
    assert files(run_copy) == before
    database = run_copy / "index" / "milvus.db"
    data = next(database.rglob("*.parquet"))
    data.write_bytes(data.read_bytes()[:-100])
    with pytest.raises(SatkgcError, match=r"the index is damaged \(milvus\.db/.*parquet was altered or cut short\)"):
        Completer.load(run_copy)


def test_a_full_disk_is_one_line(run_copy):
    before = files(run_copy / "index")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_500, limits[1]))  # the vectors fit, the database does not
    try:
        with pytest.raises(SatkgcError, match="the disk is full; the run is as it was"):
            Completer.prepare(run_copy, index="milvus")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(run_copy / "index") == before
    Completer.prepare(run_copy, index="milvus")
    Completer.load(run_copy)
