"""How long graphs take to import and to open, and how much memory: at Wikidata5M's size, and WN18RR against pandas.

    python bench/load.py --json

The large graph is made by synthetic.py (kept in --data if given, so that a second run starts at once). Import and open
run in processes of their own, whose peak memory the system reports. A copy is opened for the first time with every file
read against its sum; what was imported here is known to be whole. The small graph is WN18RR where SATKGC_DATA names
a folder that holds it, else a synthetic graph of its size; the baseline reads the same triples and texts with pandas
into a networkx multigraph, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import synthetic

OPEN = """
import json, sys, time
started = time.perf_counter()
from satkgc import KnowledgeGraph
imported = time.perf_counter()
graph = KnowledgeGraph.load(sys.argv[1])
first = graph.train[0]
graph.adjacency.neighbours_of(first[0]), graph.known_all.tails(first[0], first[1]), graph.adjacency.degree[first[2]]
graph.entities.find(graph.entities.id(first[0])), graph.entities.description(first[2])
opened = time.perf_counter()
print(json.dumps({"python_import_s": imported - started, "open_s": opened - imported, "built": "numba" in sys.modules}))
"""


def measured(command: list[str], limit: float | None = None) -> tuple[str, dict[str, float]]:
    """What a command prints; its seconds, those of both cores together, and the peaks of its memory in GiB: with all
    pages that it had mapped, and its own alone, which the system refuses it beyond `limit`."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if limit is not None:
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (int(limit * 2**30),) * 2)
    assert process.stdout is not None
    ended, own = threading.Event(), [0]  # KiB

    def watch() -> None:
        while not ended.wait(0.2):
            with suppress(OSError):
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                own.extend(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    ended.set()
    watcher.join()
    if status:
        raise SystemExit(f"{command[:4]} failed")
    figures = {"s": time.perf_counter() - started, "cpu_s": usage.ru_utime + usage.ru_stime}
    return output, figures | {"peak_gib": usage.ru_maxrss / 2**20, "peak_own_gib": max(own) / 2**20}


def large(folder: Path, entities: int, relations: int, triples: int) -> dict[str, object]:
    """Import from Parquet and open."""
    if not (folder / "triples.parquet").exists():
        synthetic.write(folder, entities, relations, triples)
    out = folder / "graph"
    command = [sys.executable, "-m", "satkgc", "kg", "import", str(folder / "triples.parquet"), str(out), "--force"]
    _, imported = measured([*command, "--entities", str(folder / "entities.parquet")])
    opening = [sys.executable, "-c", OPEN, str(out)]
    output, opened = measured(opening)
    with tempfile.TemporaryDirectory() as cache:  # which knows nothing of it: as a copy from elsewhere
        copy_output, copy_opened = measured(["env", f"SATKGC_CACHE={cache}", *opening])
    size = sum(path.stat().st_size for path in out.iterdir())
    return {
        "entities": entities,
        "relations": relations,
        "triples": triples,
        "folder_gib": size / 2**30,
        "import": imported,
        "open": json.loads(output) | {f"process_{key}": value for key, value in opened.items()},
        "open_copy": json.loads(copy_output) | {f"process_{key}": value for key, value in copy_opened.items()},
    }


def best(function: Callable[[], object], times: int) -> float:
    """The least seconds of several calls."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def small(folder: Path) -> dict[str, object]:
    """Open WN18RR, or a graph of its size, and read the same with pandas and networkx."""
    import networkx
    import pandas

    from satkgc import KnowledgeGraph
    from satkgc.kg import write_tsv

    if os.environ.get("SATKGC_DATA"):
        graph, name = KnowledgeGraph.load("WN18RR"), "WN18RR"
    else:
        synthetic.write(folder / "small", 40_943, 11, 93_003)
        tables = {"entities": folder / "small" / "entities.parquet"}
        graph, name = KnowledgeGraph.load(folder / "small" / "triples.parquet", **tables), "synthetic, of WN18RR's size"
    graph.save(folder / "binary")
    write_tsv(graph, folder / "tsv")

    def baseline() -> None:
        options = {"sep": "\t", "header": None, "dtype": str, "quoting": 3, "keep_default_na": False}
        splits = [pandas.read_csv(folder / "tsv" / f"{split}.tsv", **options) for split in ("train", "valid", "test")]
        texts = pandas.read_csv(folder / "tsv" / "entities.tsv", **options)
        multigraph = networkx.from_pandas_edgelist(
            splits[0], 0, 2, edge_attr=1, create_using=networkx.MultiDiGraph, edge_key=1
        )
        multigraph.add_nodes_from(texts[0])

    baseline_s = best(baseline, 3)
    open_s = best(lambda: KnowledgeGraph.load(folder / "binary"), 7)
    return {
        "graph": name,
        "open_s": open_s,
        "baseline": "pandas + networkx",
        "baseline_s": baseline_s,
        "ratio": baseline_s / open_s,
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=4_600_000)
    parser.add_argument("--relations", type=int, default=822)
    parser.add_argument("--triples", type=int, default=20_600_000)
    parser.add_argument("--data", type=Path, help="keep the synthetic graph here")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        result = {
            "cores": os.cpu_count(),
            "large": large(given.data or Path(scratch) / "large", given.entities, given.relations, given.triples),
            "small": small(Path(scratch)),
        }
    if given.json:
        print(json.dumps(result, indent=2))
        return
    big, little = result["large"], result["small"]
    imported, opened, copy = big["import"], big["open"], big["open_copy"]
    print(f"import: {imported['s']:.1f} s ({imported['cpu_s']:.0f} s of the cores), ", end="")
    print(f"{imported['peak_gib']:.2f} GiB (at most 90 s, 6 GiB)")
    print(
        f"open:   {opened['process_s']:.2f} s with Python's start, {opened['open_s'] * 1000:.0f} ms without, ", end=""
    )
    print(f"{opened['process_peak_gib']:.2f} GiB (at most 2 s, 0.5 GiB); compiled code needed: {opened['built']}")
    print(f"copy:   {copy['process_s']:.2f} s the first time ({copy['process_cpu_s']:.1f} s of the cores)")
    print(f"{little['graph']}: {little['open_s'] * 1000:.1f} ms, {little['baseline']} ", end="")
    print(f"{little['baseline_s'] * 1000:.0f} ms: {little['ratio']:.0f} × faster (at least 20 ×)")


if __name__ == "__main__":
    main()
