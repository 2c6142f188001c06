"""A graph that is larger than memory: how long its import takes and how much memory, then inspection and batches of it.

    python bench/large.py --json --entities 20000000 --triples 100000000 --memory 4 --forms parquet

The graph is made by synthetic.py and imported from Parquet, CSV or N-Triples (`--forms parquet csv nt`). With `--texts`
Parquet comes with names and descriptions of its entities (8 to 32 words), else names are made from the ids. Every stage
runs in a process of its own, whose processor time and peak memory, mapped pages included, the system reports.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq

import synthetic
from load import measured

BATCHES = """
import json, sys, statistics, time, resource
from satkgc import KnowledgeGraph
from satkgc.sampling import Needs, SamplingConfig, make_sampler
kg = KnowledgeGraph.load(sys.argv[1])
result = {}
for hops in (True, False):
    began = time.process_time()
    sampler = make_sampler(kg, SamplingConfig(), 0, Needs(hops=hops))
    sampler.draw(0)
    made, times = time.process_time() - began, []
    for step in range(1, 31):
        began = time.thread_time()
        sampler.draw(step)
        times.append(1000 * (time.thread_time() - began))
    key = "with_hops" if hops else "without_hops"
    result[key] = {"setup_cpu_s": made, "batch_ms": statistics.median(times), "batch_ms_worst": max(times)}
print(json.dumps(result))
"""


def convert(source: Path, form: str) -> Path:
    """The triples of a Parquet file as CSV, TSV or N-Triples."""
    target = source.with_name(f"triples.{form}")
    with target.open("wb") as file:
        if form in ("csv", "tsv"):
            file.write(b",".join([b"head", b"relation", b"tail"]) + b"\n")
        for batch in pq.ParquetFile(source).iter_batches(1 << 17):
            if form == "csv":
                options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
                pyarrow.csv.write_csv(batch, file, options)
                continue
            for head, relation, tail in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                line = f"<http://e.org/{head}> <http://e.org/p/{relation}> <http://e.org/{tail}> .\n"
                file.write(line.encode())
    return target


def imported(source: Path, out: Path, memory: float, listing: Path | None, limit: float | None) -> dict[str, Any]:
    """Import into an empty folder."""
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "satkgc", "kg", "import", str(source), str(out), "--memory", str(memory)]
    _, figures = measured([*command, *(["--entities", str(listing)] if listing else [])], limit)
    size = sum(path.stat().st_size for path in out.iterdir())
    return {
        "source_gib": (source.stat().st_size + (listing.stat().st_size if listing else 0)) / 2**30,
        "memory_option_gib": memory,
        **figures,
        "graph_gib": size / 2**30,
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=20_000_000)
    parser.add_argument("--relations", type=int, default=1000)
    parser.add_argument("--triples", type=int, default=100_000_000)
    parser.add_argument("--memory", type=float, default=4.0, help="what import is given, in GiB")
    parser.add_argument("--limit", type=float, help="GiB of memory of its own that the system allows each process")
    parser.add_argument("--forms", nargs="+", default=["parquet"], choices=["parquet", "csv", "nt"])
    parser.add_argument("--texts", action="store_true", help="import Parquet with texts of its entities")
    parser.add_argument("--data", type=Path, help="keep the synthetic graph here")
    parser.add_argument("--keep", action="store_true", help="keep the imported graph there too")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    given = parser.parse_args()
    result: dict[str, Any] = {
        key: getattr(given, key) for key in ("entities", "relations", "triples", "texts", "limit")
    }
    result |= {"cores": os.cpu_count(), "load_before": os.getloadavg()[1], "import": {}}
    with tempfile.TemporaryDirectory() as scratch:
        data = given.data or Path(scratch)
        if not (data / "triples.parquet").exists():
            synthetic.write(data, given.entities, given.relations, given.triples)
        out = data / "imported" / "graph"
        for form in reversed(given.forms):
            shutil.rmtree(out.parent, ignore_errors=True)
            source = data / "triples.parquet" if form == "parquet" else convert(data / "triples.parquet", form)
            listing = data / "entities.parquet" if form == "parquet" and given.texts else None
            result["import"][form] = imported(source, out, given.memory, listing, given.limit)
            print(json.dumps(result["import"]), file=sys.stderr, flush=True)
            if form != "parquet":
                source.unlink()
        _, result["inspect"] = measured(
            [sys.executable, "-m", "satkgc", "kg", "inspect", str(out), "--json"], given.limit
        )
        print(json.dumps(result["inspect"]), file=sys.stderr, flush=True)
        batches, figures = measured([sys.executable, "-c", BATCHES, str(out)], given.limit)
        result["batches"] = json.loads(batches) | {"process": figures}
        if not given.keep:
            shutil.rmtree(out.parent)
    result["load_after"] = os.getloadavg()[1]
    result["commit"] = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    if given.json:
        print(json.dumps(result, indent=1))
        return
    for form, figures in result["import"].items():
        minutes, processors = figures["s"] / 60, figures["cpu_s"] / 60
        print(f"import {form}: {minutes:.1f} min ({processors:.1f} of processors), {figures['peak_gib']:.2f} GiB")
    print(f"inspect: {result['inspect']['s'] / 60:.1f} min, {result['inspect']['peak_gib']:.2f} GiB")
    print(f"a batch: {result['batches']['with_hops']['batch_ms']:.1f} ms with hops (at most 50)")


if __name__ == "__main__":
    main()
