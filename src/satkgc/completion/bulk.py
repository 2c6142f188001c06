"""Bulk inference on Ray Data: workers that open the run, one a GPU or a core, and write a Parquet file for each shard.

A shard is what the local engine does in one go, so that its numbers are the same. A finished shard is never done again;
a worker that dies costs the shard it was at.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from satkgc.arrays import Float32
from satkgc.completion.prepare import WORK, load_model, open_prepared
from satkgc.completion.proposals import BestTriples, Limits, ask_batch
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, is_full
from satkgc.models import VectorModel
from satkgc.processes import find_device
from satkgc.training import RunFolder

ENGINES = ("local", "ray")
TRIES = 3  # more for a shard whose worker died
STORE = (
    128 << 20
)  # bytes of Ray's object store where it runs on this machine alone: only numbers of shards pass through
Work = Callable[[int], pa.Table]  # does a shard


def check_engine(engine: str) -> None:
    """Refuse one that there is not, before anything is done."""
    if engine not in ENGINES:
        raise SatkgcError(f"no engine {engine!r}", remedy=f"choose one of {', '.join(ENGINES)}")
    if engine == "ray":
        _ray()


class EntityWorker:
    """Encodes a chunk of entities."""

    def __init__(self, run: Path, device: str, chunks: Sequence[range]) -> None:
        model = load_model(RunFolder.load(run), device, WORK)  # whose tokens `prepare` has just written there
        assert isinstance(model, VectorModel)
        self.model, self.chunks = model, {chunk.start: chunk for chunk in chunks}

    def __call__(self, first: int) -> pa.Table:
        ids = np.array(self.chunks[first], np.int32)
        vectors = pa.FixedSizeListArray.from_arrays(self.model.encode_entities(ids).reshape(-1), self.model.dim)
        return pa.table({"entity": ids, "vector": vectors})


class ProposalWorker:
    """Asks a batch of questions."""

    def __init__(self, run: Path, device: str, limits: Limits, batches: Sequence[tuple[int, int]]) -> None:
        self.engine = open_prepared(run, load_model(RunFolder.load(run), device))
        self.limits, self.batches = limits, batches

    def __call__(self, number: int) -> pa.Table:
        best = ask_batch(self.engine, *self.batches[number], self.limits)
        columns = dict(zip(("head", "relation", "tail"), best.triples.T.copy(), strict=True))
        return pa.table({**columns, "score": best.scores, "value": best.values})


def encode_on_ray(run: Path, device: str) -> Callable[[Path, str, Sequence[range]], Iterator[tuple[int, Float32]]]:
    """How `prepare` has its entities encoded."""

    def encode(folder: Path, key: str, chunks: Sequence[range]) -> Iterator[tuple[int, Float32]]:
        if folder.is_dir():
            for path in folder.iterdir():
                if not path.name.startswith(key):  # of another model or graph
                    path.unlink()
        worker = partial(EntityWorker, run.absolute(), device, chunks)
        for first, table in on_ray(worker, [chunk.start for chunk in chunks], folder, key, device):
            flat = table.column("vector").combine_chunks().flatten().to_numpy()
            yield first, flat.reshape(table.num_rows, -1)

    return encode


def ask_on_ray(run: Path, device: str) -> Callable[..., Iterator[BestTriples]]:
    """How `propose` has its questions asked."""

    def ask(limits: Limits, batches: Sequence[tuple[int, int]], folder: Path, key: str) -> Iterator[BestTriples]:
        if folder.is_dir() and any(not path.name.startswith((key, ".")) for path in folder.iterdir()):
            remedy = "repeat those settings to finish it, or remove the folder"
            raise SatkgcError("an unfinished proposal with other settings is here", where=folder, remedy=remedy)
        worker = partial(ProposalWorker, run.absolute(), device, limits, batches)
        for _, table in on_ray(worker, range(len(batches)), folder, key, device):
            triples = np.stack([table[name].to_numpy() for name in ("head", "relation", "tail")], 1)
            yield BestTriples(triples, table["score"].to_numpy(), table["value"].to_numpy())

    return ask


def on_ray(
    worker: Callable[[], Work], shards: Sequence[int], folder: Path, key: str, device: str
) -> Iterator[tuple[int, pa.Table]]:
    """Every shard with its table, in any order: first those whose files are there."""
    folder = folder.absolute()
    folder.mkdir(exist_ok=True)
    todo = []
    for shard in shards:
        table = _read(_file(folder, key, shard))
        if table is None:
            todo.append(shard)
        else:
            yield shard, table
    if not todo:
        return
    ray, kind = _ray(), "GPU" if find_device(device).type == "cuda" else "CPU"
    with _cluster(ray):
        count = max(1, min(len(todo), int(ray.cluster_resources().get(kind, 0))))
        rows = ray.data.from_items(todo, override_num_blocks=min(len(todo), 10_000)).map_batches(
            _Actor,
            fn_constructor_args=(worker, folder, key),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=count),
            max_task_retries=TRIES,
            **({"num_gpus": 1} if kind == "GPU" else {"num_cpus": 1}),
        )
        try:
            for row in rows.iter_rows():
                _raise(row)
                table = _read(_file(folder, key, row["shard"]))
                if table is None:
                    what = f"shard {row['shard']} was written elsewhere"
                    raise SatkgcError(what, where=folder, remedy="use a folder that all machines have at this path")
                yield row["shard"], table
        except (ray.exceptions.RayError, ray.data.exceptions.RayDataUserCodeException) as error:
            what = f"Ray gave up ({_last_line(error)})"
            raise SatkgcError(
                what, where=folder, remedy="run the same command again: finished shards are kept"
            ) from error


class _Actor:
    """Lives on a GPU or a core; what goes wrong travels as words."""

    def __init__(self, worker: Callable[[], Work], folder: Path, key: str) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
        self.folder, self.key, self.error = folder, key, ""
        try:
            self.work = worker()
        except SatkgcError as error:
            self.error = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        shard, error, number = int(batch["item"][0]), self.error, 0
        try:
            if not error:
                with atomic_write(_file(self.folder, self.key, shard)) as part:
                    pq.write_table(self.work(shard), part, write_page_checksum=True)
        except SatkgcError as problem:
            error = str(problem)
        except OSError as problem:
            error, number = str(problem), problem.errno or (errno.ENOSPC if is_full(problem) else errno.EIO)
        return {"shard": [shard], "error": [error], "errno": [number]}


def _raise(row: dict[str, Any]) -> None:
    if row["errno"]:
        raise OSError(row["errno"], os.strerror(row["errno"]))
    if row["error"]:
        raise SatkgcError(row["error"])


def _file(folder: Path, key: str, shard: int) -> Path:
    return folder / f"{key}-{shard:010d}.parquet"


def _read(file: Path) -> pa.Table | None:
    """None for one that is not there, or damaged: it is done again."""
    try:
        return pq.read_table(file, page_checksum_verification=True)
    except (OSError, pa.ArrowInvalid):
        return None


@contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """The one that this process has joined, the cluster that RAY_ADDRESS names, or this machine."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "local")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        quiet |= {"include_dashboard": False, "object_store_memory": STORE}
        quiet["num_cpus"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError) as error:
        raise SatkgcError(f"no Ray cluster answers at {address} ({_last_line(error)})") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # there is one already
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what goes wrong is told in one line
    try:
        yield
    finally:
        ray.shutdown()


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:300]


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or it reports to its makers
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError as missing:
        raise SatkgcError("Ray is not installed", remedy="pip install 'satkgc[ray]', or --engine local") from missing
    return ray
