"""Hours of mixed load on the service: questions, searches, decisions, re-preparation, clients that go away.

    python bench/soak.py runs/demo --minutes 120 --json

A copy of the run is served on this machine by a process of its own. Every question of a fixed set must get the answer
that it got first, also while and after the run is prepared again beneath the service. At the end the file of decisions
must hold what was acknowledged, in the order of each client, and nothing else. Each minute memory, file descriptors and
threads of the service are noted; growth is the difference between the last tenth of the time and the second tenth (the
first is warming up). With --cores the rate falls where service, clients and preparations together take more.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from satkgc.kg import DECISIONS, KnowledgeGraph
from serve import resident_mib, wait_until_ready
from soak_load import PATIENCE, ROLES, Load


def processor_seconds(pid: int) -> float:
    """Of the service, of the clients and of the preparations that ended."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") + sum(use.ru_utime + use.ru_stime for use in ours)


def state(pid: int) -> dict[str, Any]:
    """Memory, file descriptors and threads of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return {
        "memory_mib": round(resident_mib(pid), 1),
        "anonymous_mib": round(int(re.findall(r"RssAnon:\s+(\d+)", status)[0]) / 1024, 1),
        "peak_mib": round(int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024, 1),
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(re.findall(r"Threads:\s+(\d+)", status)[0]),
    }


def prepare(run: Path, load: Load, log: Path) -> None:
    """Prepare the run again beneath the service."""
    command = ["nice", "-n", "19", sys.executable, "-m", "satkgc", "prepare", str(run), "--device", "cpu"]
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=out, timeout=6 * PATIENCE)
    load.counts["prepare"] += 1
    if done.returncode:
        load.fail(f"prepare: exit code {done.returncode}, see {log}")


def soak(run: Path, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Serve the run, put it under load, look at it each minute, stop it."""
    server_log = (folder / "server.log").open("wb")
    satkgc, table = [sys.executable, "-m", "satkgc"], str(folder / "missing.csv")
    subprocess.run([*satkgc, "propose", str(run), table, "--n", "500"], check=True, stdout=subprocess.DEVNULL)
    command = [*satkgc, "serve", str(run), "--port", "0", "--device", "cpu", "--proposals", table]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=server_log, text=True)
    minutes: list[dict[str, Any]] = []
    try:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None, "the service did not start"
        url = address.group().rstrip("/")
        wait_until_ready(url, server)
        began = time.time()
        until = began + 60 * given.minutes
        with urllib.request.urlopen(f"{url}/api/v1/proposals?limit=200") as answer:
            proposals = [{role: row[role] for role in ROLES} for row in json.load(answer)["proposals"]]
        kg = KnowledgeGraph.load(run / "graph")
        load = Load(url, kg, proposals, given.rate, given.clients, until)
        shortest, looked, used = load.pause, began, processor_seconds(server.pid)
        load.start()
        preparing: threading.Thread | None = None
        while time.time() < until and server.poll() is None:
            time.sleep(min(60, max(0, until - time.time())))
            minute = len(minutes) + 1
            spent, taken = processor_seconds(server.pid) - used, time.time() - looked
            looked, used = looked + taken, used + spent
            load.pause = max(shortest, load.pause * min(4, max(0.5, spent / taken / given.cores)))
            with load.lock:
                seconds, load.seconds = sorted(load.seconds), []
                stall, load.stall = load.stall, 0.0
                now = {
                    "minute": minute,
                    **state(server.pid),
                    "cores": round(spent / taken, 2),
                    "stall_s": round(stall, 1),
                    "requests": load.counts.total(),
                    "errors": len(load.errors),
                }
            if seconds:
                now |= {
                    f"p{p}_ms": round(1000 * seconds[min(len(seconds) - 1, len(seconds) * p // 100)], 1)
                    for p in (50, 99, 100)
                }
            minutes.append(now)
            print(json.dumps(now), file=sys.stderr, flush=True)
            if (
                minute % given.prepare_every == 1
                and until - time.time() > 300
                and not (preparing and preparing.is_alive())
            ):
                preparing = threading.Thread(target=prepare, args=[run, load, folder / "prepare.log"])
                preparing.start()
        load.join()
        if preparing:
            preparing.join()
        load.check_decisions(run / DECISIONS)
        after = state(server.pid) if server.poll() is None else {}
    finally:
        server.terminate()
        code = server.wait(60)
        server_log.close()
    printed = (folder / "server.log").read_text(errors="replace")
    tenth = max(1, len(minutes) // 10)
    early, late = minutes[tenth : 2 * tenth] or minutes[:1], minutes[-tenth:]
    growth = {
        key: round(statistics.mean(row[key] for row in late) - statistics.mean(row[key] for row in early), 1)
        for key in ("memory_mib", "anonymous_mib", "files", "threads")
    }
    return {
        "bench": "soak",
        "run": given.run.name,
        "cores": len(os.sched_getaffinity(0)),
        "minutes": round((time.time() - began) / 60, 1),
        "requests": dict(load.counts),
        "requests_in_all": load.counts.total(),
        "questions_repeated": len(load.first),
        "decisions_acknowledged": sum(map(len, load.acknowledged)),
        "errors": load.errors,
        "exit_code": code,
        "lines_on_stderr": printed.splitlines()[:20],
        "growth": growth,
        "without_clients": after,
        "each_minute": minutes,
    }


def main() -> None:
    """Parse, copy the run, soak, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--minutes", type=float, default=120, help="of load [120]")
    parser.add_argument("--rate", type=float, default=10, help="requests a second, at most [10]")
    parser.add_argument("--cores", type=float, default=os.cpu_count(), help="to use on average, at most [all]")
    parser.add_argument("--clients", type=int, default=12, help="at once [12]")
    parser.add_argument("--prepare-every", type=int, default=15, help="minutes between preparations beneath it [15]")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / given.run.name
        shutil.copytree(given.run, run, ignore=shutil.ignore_patterns("checkpoints"))
        result = soak(run, given, Path(folder))
    if given.json:
        print(json.dumps(result, indent=1))
    else:
        print(f"{result['requests_in_all']} requests in {result['minutes']} minutes, {len(result['errors'])} errors")
        print(f"growth {result['growth']}")
    sys.exit(1 if result["errors"] or result["exit_code"] else 0)


if __name__ == "__main__":
    main()
