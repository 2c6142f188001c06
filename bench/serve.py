"""Load on the service from another process: answers a second, latency, errors, memory; with and without micro-batching.

python bench/serve.py runs/demo --json          # needs wrk, from Debian: apt install wrk
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from satkgc.kg import KnowledgeGraph

LUA = Path(__file__).with_name("serve.lua")


def main() -> None:
    """Measure the service as it is and without micro-batching, print both and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--seconds", type=int, default=60, help="of load on the service as it is [60]")
    parser.add_argument("--baseline-seconds", type=int, default=20, help="of load without micro-batching [20]")
    parser.add_argument("--connections", type=int, default=16, help="concurrent clients [16]")
    parser.add_argument("--device", default="auto", help="where the model runs: auto, cpu, cuda, cuda:1 [auto]")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("bench/serve.py needs wrk: apt install wrk")
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.jsonl"
        questions = write_questions(args.run, bodies)
        options = ["--device", args.device]
        batched = measure(args.run, bodies, args.seconds, args.connections, *options)
        single = measure(args.run, bodies, args.baseline_seconds, args.connections, *options, "--no-batching")
    result = {
        "bench": "serve",
        "run": args.run.name,
        "device": args.device,
        "cores": len(os.sched_getaffinity(0)),
        "connections": args.connections,
        "distinct_questions": questions,
        "batched": batched,
        "one_by_one": single,
        "ratio": round(batched["answers_per_second"] / single["answers_per_second"], 2),
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for name in ("batched", "one_by_one"):
        print(f"{name:>10}: " + ", ".join(f"{key} {value}" for key, value in result[name].items()))
    print(f"micro-batching answers {result['ratio']} times as many questions as one by one")


def write_questions(run: Path, bodies: Path, count: int = 50_000) -> int:
    """Distinct questions in random order, more than the load asks: no answer is ever a repetition."""
    kg = KnowledgeGraph.load(run / "graph")
    rng = np.random.default_rng(0)
    total = kg.num_entities * kg.num_relations * 2
    chosen = rng.choice(total, min(count, total), replace=False)
    entity, directed = np.divmod(chosen, kg.num_relations * 2)
    with bodies.open("w", encoding="utf-8") as out:
        for e, d in zip(entity, directed, strict=True):
            side, relation = ("head", d) if d < kg.num_relations else ("tail", d - kg.num_relations)
            out.write(json.dumps({side: kg.entities.id(e), "relation": kg.relations.id(relation), "k": 10}) + "\n")
    return len(chosen)


def measure(run: Path, bodies: Path, seconds: int, connections: int, *options: str) -> dict[str, float]:
    """Start the service in its own process, warm it up, and put it under load."""
    command = [sys.executable, "-m", "satkgc", "serve", str(run), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None, "the service did not start"
            url = address.group().rstrip("/")
            wait_until_ready(url, server)
            load(url, bodies, 20, connections)  # the first batches of each size allocate and choose kernels
            before = resident_mib(server.pid)
            counts = load(url, bodies, seconds, connections)
            after = resident_mib(server.pid)
        finally:
            server.terminate()
            server.wait(60)
    return {
        "answers_per_second": round(counts["requests"] / counts["seconds"], 1),
        "p50_ms": counts["p50_ms"],
        "p99_ms": counts["p99_ms"],
        "max_ms": counts["max_ms"],
        "errors": counts["errors"],
        "seconds": round(counts["seconds"], 1),
        "memory_mib": round(after, 1),
        "memory_growth_mib": round(after - before, 1),
    }


def load(url: str, bodies: Path, seconds: int, connections: int) -> dict[str, float]:
    """One run of wrk with one thread; what its script printed last."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", LUA, url, "--", bodies]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def wait_until_ready(url: str, server: subprocess.Popen[str], seconds: int = 300) -> None:
    """Poll /health: the port is open before the model is loaded."""
    for _ in range(seconds * 5):
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:  # 503 while it loads
            assert server.poll() is None, "the service ended while loading"
            time.sleep(0.2)
    raise TimeoutError("the service did not become ready")


def resident_mib(pid: int) -> float:
    """Memory of a process in RAM."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
