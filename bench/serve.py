"""Load on the service from another process: answers a second, latency, errors, memory, by the number of clients.

    python bench/serve.py runs/demo --json          # needs wrk, from Debian: apt install wrk

Beside the service as it is: without micro-batching, and with answers that wait to fill a packet (without TCP_NODELAY).
The rounds alternate between the three, so that what else the machine does meets all of them.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from satkgc.kg import KnowledgeGraph

LUA = Path(__file__).with_name("serve.lua")


# The service with connections as the system makes them, as it was before it set TCP_NODELAY.
DELAYED = """
import socket, sys
real = socket.socket.setsockopt
socket.socket.setsockopt = lambda self, *args: None if args[1] == socket.TCP_NODELAY else real(self, *args)
from satkgc.cli import main
main()
"""
VARIANTS = {
    "as_it_is": (["-m", "satkgc"], []),
    "one_by_one": (["-m", "satkgc"], ["--no-batching"]),
    "delayed": (["-c", DELAYED], []),
}


def main() -> None:
    """Measure all variants at every number of clients, print them and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--seconds", type=int, default=20, help="of load in each round [20]")
    parser.add_argument("--connections", type=int, nargs="+", default=[8, 32, 128, 512], help="clients [8 32 128 512]")
    parser.add_argument("--device", default="auto", help="where the model runs: auto, cpu, cuda, cuda:1 [auto]")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("bench/serve.py needs wrk: apt install wrk")
    rounds: dict[int, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as services:
        bodies = Path(folder) / "bodies.jsonl"
        questions = write_questions(args.run, bodies)
        started = {
            name: services.enter_context(service(python, args.run, ["--device", args.device, *options]))
            for name, (python, options) in VARIANTS.items()
        }
        for url, _ in started.values():
            load(url, bodies, 15, 16)  # the first batches of each size allocate and choose kernels
        for connections in args.connections:
            rounds[connections] = {
                name: measure(url, process, bodies, args.seconds, connections)
                for name, (url, process) in started.items()
            }
    for row in rounds.values():
        for name in ("one_by_one", "delayed"):
            ratio = row["as_it_is"]["answers_per_second"] / row[name]["answers_per_second"]
            row[name]["as_it_is_answers_times_as_many"] = round(ratio, 2)
    result = {
        "bench": "serve",
        "run": args.run.name,
        "device": args.device,
        "cores": len(os.sched_getaffinity(0)),
        "seconds_each": args.seconds,
        "distinct_questions": questions,
        "clients": rounds,
    }
    if args.json:
        print(json.dumps(result, indent=2))
        return
    for connections, row in rounds.items():
        for name, figures in row.items():
            print(f"{connections:>4} clients, {name:>10}: " + ", ".join(f"{k} {v}" for k, v in figures.items()))


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


@contextmanager
def service(python: list[str], run: Path, options: list[str]) -> Iterator[tuple[str, int]]:
    """The service in its own process until the end of the block: its address and process."""
    command = [sys.executable, *python, "serve", str(run), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None, "the service did not start"
            url = address.group().rstrip("/")
            wait_until_ready(url, server)
            yield url, server.pid
        finally:
            server.terminate()
            server.wait(60)


def measure(url: str, process: int, bodies: Path, seconds: int, connections: int) -> dict[str, float]:
    """Put a service that runs under load."""
    before = resident_mib(process)
    counts = load(url, bodies, seconds, connections)
    after = resident_mib(process)
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
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", LUA, url, "--", bodies]
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
