"""Exact search against faiss on a million vectors, and Milvus Lite: recall, time for a query, time to build.

    OMP_NUM_THREADS=2 python bench/index.py --json
    OMP_NUM_THREADS=2 python bench/index.py --json --milvus    # embedded Milvus, with processor time
    python bench/index.py --device cuda        # exact search on vectors that are resident on the GPU; faiss on the CPU

The vectors are made, not real, but made like those of a text encoder: entities crowd around topics of very different
size (Zipf), topics around fields, and what is left is noise in fewer directions than there are dimensions. A query is
what a trained query tower gives: some entity's vector, moved by as much noise again. The sample that faiss is tuned
on and the queries that are timed are different ones.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


def made_up(count: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Entity vectors (count, dim) and 2,000 queries, all of length 1."""
    rng = np.random.default_rng(seed)
    spectrum = (1 / np.sqrt(1 + np.arange(dim) / 20)).astype(np.float32)  # most of the variance in few directions
    fields = rng.normal(size=(200, dim)).astype(np.float32) * spectrum
    topics = max(10, count // 50)
    centres = fields[rng.integers(0, 200, topics)] + rng.normal(size=(topics, dim)).astype(np.float32) * spectrum
    weights = 1 / (np.arange(topics) + 10.0)
    topic = rng.choice(topics, count, p=weights / weights.sum())
    vectors = np.empty((count, dim), np.float32)
    for start in range(0, count, 1 << 16):
        part = slice(start, start + (1 << 16))
        noise = rng.normal(size=(len(topic[part]), dim)).astype(np.float32) * spectrum
        vectors[part] = _unit(centres[topic[part]] + 0.8 * noise)
    near = vectors[rng.integers(0, count, 2000)]
    queries = _unit(near + 0.6 * _unit(rng.normal(size=near.shape).astype(np.float32) * spectrum))
    return vectors, queries


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def timed(search: Any, queries: np.ndarray, batch: int, seconds: float) -> float:
    """Milliseconds a query, asked so many at a time; the first round warms up."""
    search(queries[:batch], 10)
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        at = done % (len(queries) - batch + 1)
        search(queries[at : at + batch], 10)
        done += batch
    return 1000 * (time.perf_counter() - start) / done


@contextmanager
def both_clocks(result: dict[str, Any], name: str) -> Iterator[None]:
    """Seconds on the wall and of the processor: where others share the machine, the second is the one to compare."""
    wall, own = time.perf_counter(), time.process_time()
    yield
    result[f"{name}_seconds"] = round(time.perf_counter() - wall, 1)
    result[f"{name}_processor_seconds"] = round(time.process_time() - own, 1)


def recall_of(truth: np.ndarray, found: np.ndarray) -> float:
    """The share of the ten nearest that were found."""
    return round(float(np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(truth, found, strict=True)])), 4)


def measure_milvus(count: int, dim: int, rounds: int) -> dict[str, Any]:
    """Embedded Milvus, built as `satkgc prepare --index milvus` does, and exact search beside it."""
    from satkgc.completion.index import ExactIndex, MilvusIndex
    from satkgc.completion.index.exact import CPU

    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, queries = made_up(count, dim, 0)
        np.save(folder / "vectors.npy", rows)
        del rows  # from here on they are read by memory map
        tuning, queries = queries[:1000], queries[1000:]
        with both_clocks(result, "build"):
            index = MilvusIndex.build(folder, folder / "vectors.npy", lambda: tuning, CPU)
        files = [path for path in (folder / "milvus.db").rglob("*") if path.is_file()]
        result["disk_bytes"] = sum(path.stat().st_size for path in files)
        result |= {"lists": index.collection.lists, "probes": index.collection.probes}
        result["segments"] = sum(path.suffix == ".parquet" for path in files)
        exact = ExactIndex(np.load(folder / "vectors.npy", mmap_mode="c"))
        result["recall@10"] = recall_of(exact.search(queries, 10)[1], index.search(queries, 10)[1])
        allow = np.arange(0, count, max(1, count // 5000), dtype=np.int32)
        for kind, one in (("exact", exact), ("milvus", index)):
            timings: dict[str, float] = {}
            for batch in (1, 256):
                one.search(queries[:batch], 10)
                wall, own = time.perf_counter(), time.process_time()
                for start in range(rounds):
                    one.search(queries[start : start + batch], 10)
                wall, own = time.perf_counter() - wall, time.process_time() - own
                timings[f"batch_{batch}_ms"] = round(1000 * wall / (rounds * batch), 3)
                timings[f"batch_{batch}_processor_ms"] = round(1000 * own / (rounds * batch), 3)
            own = time.process_time()
            one.search(queries[:1], 10, allow)
            timings["allow_5000_processor_ms"] = round(1000 * (time.process_time() - own), 1)
            result[kind] = timings
    result["peak_memory_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 1)
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--device", default="cpu", help="of the exact search")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each timing runs")
    parser.add_argument("--milvus", action="store_true", help="embedded Milvus and exact search")
    parser.add_argument("--rounds", type=int, default=20, help="searches of each with --milvus")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    import faiss
    import torch

    from satkgc.completion.index import ExactIndex, FaissIndex
    from satkgc.processes import find_device

    cores = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    torch.set_num_threads(cores)
    faiss.omp_set_num_threads(cores)
    if options.milvus:
        about = {"entities": options.entities, "dim": options.dim, "cores": cores}
        print(json.dumps(about | measure_milvus(options.entities, options.dim, options.rounds)))
        return
    rows, queries = made_up(options.entities, options.dim, 0)
    exact = ExactIndex(rows, find_device(options.device))
    tuning, queries = queries[:1000], queries[1000:]
    start = time.perf_counter()
    lists = FaissIndex.train(ExactIndex(rows), tuning)
    built = time.perf_counter() - start
    _, truth = exact.search(queries, 10)
    _, found = lists.search(queries, 10)
    result: dict[str, Any] = {
        "entities": options.entities,
        "dim": options.dim,
        "cores": cores,
        "device": options.device,
        "nearest_cosine": round(float(np.median(exact.search(queries[:200], 1)[0])), 3),
        "lists": lists.lists.nlist,
        "probes": lists.lists.nprobe,
        "build_seconds": round(built, 1),
        "recall@10": recall_of(truth, found),
        "recall@10_when_built": round(lists.recall, 4),
    }
    for batch in (1, 256):
        slow = timed(exact.search, queries, batch, options.seconds)
        fast = timed(lists.search, queries, batch, options.seconds)
        result[f"batch_{batch}"] = {
            "exact_ms": round(slow, 3),
            "faiss_ms": round(fast, 3),
            "exact_over_faiss": round(slow / fast, 1),
        }
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
