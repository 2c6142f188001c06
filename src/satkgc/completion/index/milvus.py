"""A vector database behind the index: Milvus, embedded in the run folder (Milvus Lite) or a server, by one client."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np
import torch

from satkgc.arrays import Float32, Int32, Int64
from satkgc.completion.index.approximate import RECALL, fewest_probes, search_without, share_of
from satkgc.completion.index.exact import ExactIndex
from satkgc.completion.index.results import empty_results
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.progress import progress_bar

FILE, DATABASE = "milvus.json", "milvus.db"
TOKEN = "MILVUS_TOKEN"  # the environment variable; a token is never kept or shown
SERVER = "MILVUS_URI"  # the environment variable: the one server that a run may send questions and the token to
TIMEOUT = 30.0  # seconds for a server to answer that it is there
MOST = 16_384  # answers and queries of one search, and rows of one request: Milvus refuses more
QUERIES = 1_024  # in one request
MESSAGE = 8 << 20  # bytes of vectors in one request
FEW = 10_000  # allowed entities that are named in one request
SEGMENT = {True: 100_000, False: 1_000_000}  # vectors that share an index: embedded, on a server
SPOTS = 8  # vectors that are compared when a collection is opened


@dataclass(frozen=True)
class Collection:
    """What `open` has to know, and has to find, of the vectors in the database."""

    uri: str | None  # None: embedded, in the folder
    fingerprint: str  # of all vectors, which the model made
    entities: int
    dim: int
    spots: str  # the sum of some vectors that are looked at
    lists: int
    probes: int = 1
    recall: float = 0.0  # recall@10 against exact search, on the sample it was built with

    @property
    def name(self) -> str:
        """By the vectors: those of another model have another."""
        return f"satkgc_{self.fingerprint[:24]}"


class MilvusIndex:
    """IVF-Flat in Milvus: vectors grouped around centroids, of which the nearest few groups are read for a query.

    What is added stays in this process, and the collection as it was made: many processes may read it.
    """

    excludes: ClassVar[bool] = True

    def __init__(self, client: Any, collection: Collection) -> None:
        self.client, self.collection = client, collection
        self._added = ExactIndex(np.empty((0, collection.dim), np.float32))

    @classmethod
    def build(
        cls,
        folder: Path,
        vectors: Path,
        sample: Callable[[], Float32],
        device: torch.device,
        uri: str | None = None,
    ) -> MilvusIndex:
        """Bring the vectors into the folder's own database, or to a server; one that has them all keeps them."""
        check_server(uri)
        rows = np.load(vectors, mmap_mode="c", allow_pickle=False)
        count, dim = rows.shape
        share = min(count, SEGMENT[uri is None])
        lists = int(np.clip(4 * np.sqrt(share), 1, max(1, share // 39)))  # faiss asks for 39 points a centroid
        collection = Collection(uri, _fingerprint(rows), count, dim, _sum(rows[_spots(count)]), lists)
        with _connect(folder / DATABASE if uri is None else uri) as client:
            index = cls(client, collection)
            with _one_line(uri):
                index._upload(rows)
            collection = index._tune(sample(), ExactIndex(rows))
        with atomic_write(folder / FILE) as part:
            part.write_text(json.dumps(asdict(collection), indent=2) + "\n")
        return cls._open(folder, collection)

    @classmethod
    def open(cls, folder: Path, device: torch.device) -> MilvusIndex:
        """Open what `build` made, after a look at whether the database still holds it.

        The folder may be a stranger's: a server that it names is spoken to only where the user has named it too.
        """
        collection = Collection(**json.loads((folder / FILE).read_text()))
        if collection.uri not in (None, os.environ.get(SERVER)):
            what = f"the vectors of this run are on the server {collection.uri!r}"
            remedy = f"if you trust it with your questions, set the environment variable {SERVER} to it"
            raise SatkgcError(what, where=folder / FILE, remedy=remedy)
        return cls._open(folder, collection)

    @classmethod
    def _open(cls, folder: Path, collection: Collection) -> MilvusIndex:
        """Milvus Lite lets one process in. Each gets a folder of its own of links to the files, which never change."""
        _pymilvus()
        if collection.uri is not None:
            index = cls(_client(collection.uri), collection)
        else:
            own = Path(tempfile.mkdtemp(prefix="satkgc-milvus-"))
            _link(folder / DATABASE, own / DATABASE)
            index = cls(client := _client(own / DATABASE), collection)
            weakref.finalize(index, _release, client, own / DATABASE, own)
        with _one_line(collection.uri):
            index._check(folder)
        return index

    @property
    def facts(self) -> dict[str, float]:
        """How much of the ten nearest it finds."""
        return {"recall@10": self.collection.recall}

    def __len__(self) -> int:
        return self.collection.entities + len(self._added)

    def add(self, ids: Int32, vectors: Float32) -> None:
        """Take in vectors under new ids, in memory."""
        self._added.add(ids, vectors)

    def fetch(self, ids: Int32) -> Float32:
        """The vectors of some ids, in their order.  # (n, dim)"""
        ids = np.asarray(ids, np.int32)
        rows = np.empty((len(ids), self.collection.dim), np.float32)
        stored = (ids >= 0) & (ids < self.collection.entities)
        rows[~stored] = self._added.fetch(ids[~stored])
        wanted, place = np.unique(ids[stored], return_inverse=True)
        rows[stored] = self._get(wanted)[place]
        return rows

    def search(
        self,
        queries: Float32,
        k: int,
        allow: Int32 | None = None,
        exclude: Sequence[Int32] | None = None,
    ) -> tuple[Float32, Int32]:
        """See `Index.search`; it may miss some of the nearest, as often as `recall` says, but none of few allowed."""

        def probe(rows: Int64, k: int, out: Int32 | None) -> tuple[Float32, Int32]:
            return self._probe(queries[rows], k, allow, out)

        found = search_without(probe, len(queries), k, exclude)
        return _merge(found, self._added.search(queries, k, allow, exclude), k) if len(self._added) else found

    def _probe(self, queries: Float32, k: int, allow: Int32 | None, exclude: Int32 | None) -> tuple[Float32, Int32]:
        probes, lists, entities = self.collection.probes, self.collection.lists, self.collection.entities
        refused = [] if exclude is None else [f"id not in {exclude.tolist()}"]
        if allow is None:
            return self._near(queries, k, probes, refused)
        allow = allow[(allow >= 0) & (allow < entities)]
        best = empty_results(len(queries), k)
        rows = np.arange(len(queries))
        if len(allow) > FEW:  # a large share of all: enough of the nearest are allowed
            most = min(MOST, entities, 4 * k * (1 + entities // len(allow)))
            scores, ids = self._near(queries, most, probes, refused)
            scores[~np.isin(ids, allow)] = -np.inf
            best = _merge((scores, ids), best, k)
            rows = np.flatnonzero(best[1][:, -1] < 0)
            best[0][rows], best[1][rows] = -np.inf, -1
        for start in range(0, len(allow) if len(rows) else 0, FEW):
            only = f"id in {allow[start : start + FEW].tolist()}"
            more = self._near(queries[rows], k, lists, [only, *refused])
            best[0][rows], best[1][rows] = _merge((best[0][rows], best[1][rows]), more, k)
        return best

    def _near(self, queries: Float32, k: int, probes: int, conditions: Sequence[str] = ()) -> tuple[Float32, Int32]:
        """What Milvus finds, reading so many groups of each segment; under conditions, among what meets them."""
        if k > MOST:
            raise SatkgcError(f"{k:,} answers at once", remedy=f"Milvus gives {MOST:,}: ask for fewer")
        scores, ids = empty_results(len(queries), k)
        for start in range(0, len(queries), QUERIES):
            with _one_line(self.collection.uri):
                rows = self.client.search(
                    self.collection.name,
                    data=list(np.ascontiguousarray(queries[start : start + QUERIES], np.float32)),
                    limit=k,
                    filter=" and ".join(conditions),
                    output_fields=["id"],  # or Milvus Lite sends the vectors too
                    search_params={"metric_type": "IP", "params": {"nprobe": probes}},
                )
            for row, hits in enumerate(rows, start):
                scores[row, : len(hits)] = [hit["distance"] for hit in hits]
                ids[row, : len(hits)] = [hit["id"] for hit in hits]
        return scores, ids

    def _get(self, ids: Int32) -> Float32:
        """Of ascending ids that are in the collection."""
        step = max(1, min(MOST, MESSAGE // (4 * self.collection.dim)))
        rows: dict[int, Any] = {}
        for start in range(0, len(ids), step):
            with _one_line(self.collection.uri):
                part = self.client.get(
                    self.collection.name, ids=ids[start : start + step].tolist(), output_fields=["id", "vector"]
                )
            rows |= {row["id"]: row["vector"] for row in part}
        return np.array([rows[i] for i in ids.tolist()], np.float32).reshape(-1, self.collection.dim)

    def _upload(self, rows: Float32) -> None:
        """Make the collection, unless it is there and whole."""
        client, name, dim = self.client, self.collection.name, self.collection.dim
        if client.has_collection(name):
            if self._count() == len(rows):
                client.load_collection(name)
                return
            client.drop_collection(name)  # an earlier upload was stopped
        from pymilvus import DataType

        schema = client.create_schema(auto_id=False, description=f"satkgc {self.collection.fingerprint}")
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dim)
        client.create_collection(name, schema=schema)
        step = max(1, MESSAGE // (4 * dim))
        with progress_bar() as progress:
            task = progress.add_task("bringing vectors to Milvus", total=len(rows))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                client.insert(name, [{"id": start + i, "vector": row} for i, row in enumerate(part)])
                progress.advance(task, len(part))
        client.flush(name)
        index = client.prepare_index_params()
        groups = {"nlist": self.collection.lists}
        both = {**groups, "params": groups}  # a server reads either, Milvus Lite the second
        index.add_index("vector", index_type="IVF_FLAT", metric_type="IP", params=both)
        client.create_index(name, index, sync=self.collection.uri is not None)  # embedded, it is done when this returns
        client.load_collection(name)

    def _tune(self, queries: Float32, exact: ExactIndex) -> Collection:
        _, truth = exact.search(queries, 10)

        def recall(probes: int) -> float:
            return share_of(truth, self._near(queries, 10, probes)[1])

        probes, best = fewest_probes(recall, RECALL, self.collection.lists)
        return replace(self.collection, probes=probes, recall=best)

    def _check(self, folder: Path) -> None:
        """Refuse a database without the vectors that this run's model made."""
        name, entities = self.collection.name, self.collection.entities
        problem = None
        if not self.client.has_collection(name):
            problem = f"Milvus has no collection {name}"
        else:
            self.client.load_collection(name)
            if (count := self._count()) != entities:
                problem = f"the collection {name} has {count:,} vectors, and the graph {entities:,} entities"
            elif _sum(self._get(_spots(entities))) != self.collection.spots:
                problem = f"the collection {name} holds vectors that this run's model did not make"
        if problem is not None:
            raise SatkgcError(problem, where=self.collection.uri or folder, remedy="make it anew with `satkgc prepare`")

    def _count(self) -> int:
        name, what = self.collection.name, "count(*)"
        return int(self.client.query(name, filter="", output_fields=[what], consistency_level="Strong")[0][what])


def check_server(uri: str | None) -> None:
    """Refuse an address that is none, or where nobody answers, before anything is encoded."""
    _pymilvus()
    if uri is None:
        return
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SatkgcError(f"no address of a Milvus server: {uri!r}", remedy="write it as http://host:19530")
    if parts.username is not None or parts.password is not None:
        remedy = f"set the environment variable {TOKEN} to user:password or a token"
        raise SatkgcError("a password in the address would be kept in the run", remedy=remedy)
    with _connect(uri) as client, _one_line(uri):
        client.list_collections()


@contextmanager
def _connect(place: Path | str) -> Iterator[Any]:
    client = _client(place)
    try:
        yield client
    finally:
        _release(client, place)


def _client(place: Path | str) -> Any:
    uri = None if isinstance(place, Path) else place
    options: dict[str, Any] = {"token": os.environ.get(TOKEN, "")}
    if uri is None:  # Milvus Lite takes its client's pings during a long call for an attack
        options = {"grpc_options": {"grpc.keepalive_time_ms": 2**31 - 1}}
    with _one_line(uri):
        return _pymilvus().MilvusClient(str(place), timeout=TIMEOUT, **options)


def _release(client: Any, place: Path | str, folder: Path | None = None) -> None:
    """Close a connection; of an embedded database the server too, which pymilvus keeps until the process ends."""
    client.close()
    if isinstance(place, Path):
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(str(place))
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _link(database: Path, own: Path) -> None:
    for path in database.rglob("*"):
        if path.is_dir():
            (own / path.relative_to(database)).mkdir(parents=True, exist_ok=True)
    for path in database.rglob("*"):
        if path.is_file() and path.name != "LOCK":
            (own / path.relative_to(database)).symlink_to(path.absolute())


@contextmanager
def _one_line(uri: str | None) -> Iterator[None]:
    """What Milvus says goes wrong, without its traceback; a full disk as the system says it."""
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except MilvusException as error:
        text = " ".join(str(error.message).split())
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            if f"[Errno {number}]" in text:
                raise OSError(number, os.strerror(number)) from error
        remedy = f"is the server there, and {TOKEN} right?" if uri else "make it anew with `satkgc prepare`"
        raise SatkgcError(f"Milvus refuses ({text[:300]})", where=uri, remedy=remedy) from error


def _merge(one: tuple[Float32, Int32], other: tuple[Float32, Int32], k: int) -> tuple[Float32, Int32]:
    """The k best of two results for the same queries."""
    scores, ids = (np.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
    return scores, np.where(scores == -np.inf, np.int32(-1), ids)


def _spots(count: int) -> Int32:
    return np.unique(np.linspace(0, count - 1, SPOTS).astype(np.int32))


def _sum(rows: Float32) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows, np.float32).data).hexdigest()


def _fingerprint(rows: Float32) -> str:
    digest = hashlib.sha256(json.dumps(rows.shape).encode())
    for start in range(0, len(rows), 1 << 16):
        digest.update(np.ascontiguousarray(rows[start : start + (1 << 16)]).data)
    return digest.hexdigest()


def _pymilvus() -> Any:
    try:
        import milvus_lite  # noqa: F401
        import pymilvus
    except ImportError as missing:
        remedy = "pip install 'satkgc[milvus]', or use another index"
        raise SatkgcError("pymilvus and milvus-lite are not installed", remedy=remedy) from missing
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it writes tracebacks of what is told in one line here
    return pymilvus
