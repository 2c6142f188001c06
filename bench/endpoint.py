"""A graph from a SPARQL endpoint that drops every twentieth request; the import is killed half-way and run again.

    python bench/endpoint.py --json                # 100,000 statements, 1,000 a page
    python bench/endpoint.py --tiny                # 2,000, 20 a page

The server is Oxigraph behind HTTP (`tests/sparql_server.py`): of every twenty requests one is cut, by turns before the
answer and in the middle of it. The command is run as a person would run it, and ended by SIGKILL when half of the pages
were asked for. Then the graph is compared with what is served: `missing` and `twice` are to be 0.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from satkgc.kg import KnowledgeGraph

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from sparql_server import Served, endpoint, store


def main() -> None:
    """Serve, import twice, compare and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", action="store_true", help="what is printed in any case")
    count, page = (2_000, 20) if parser.parse_args().tiny else (100_000, 1_000)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # where pages are kept
        print(json.dumps(measure(count, page, Path(folder) / "graph"), indent=1))


def measure(count: int, page: int, out: Path) -> dict[str, Any]:
    """Both imports, and how the graph differs from what is served."""
    running: list[subprocess.Popen[str]] = []

    def kill(served: Served) -> None:
        if len(served.pages()) == count // page // 2:
            os.kill(running[0].pid, signal.SIGKILL)
            served.meanwhile = lambda _: None

    with endpoint(Served(store(count), drop_every=20, meanwhile=kill)) as served:
        options = [served.source, str(out), "--page-size", str(page), "--pause", "0", "--split", "none"]
        line = [sys.executable, "-m", "satkgc", "kg", "import", *options]
        start = time.perf_counter()
        running.append(subprocess.Popen(line, stderr=subprocess.PIPE, text=True))
        running[0].communicate()
        killed_at, before = time.perf_counter() - start, len(served.requests)
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
    kg = KnowledgeGraph.load(out)
    name = [identifier.rsplit("/", 1)[-1] for identifier in kg.entities.ids.to_pylist()]
    there = [(int(name[h]), int(name[t])) for h, _, t in kg.train.tolist()]
    links = count - count // 10
    wanted = {(i, (i + 1) % links) for i in range(links)}
    labels = sum(kg.entities.name(e) == f"thing {name[e]}" for e in range(kg.num_entities))
    return {
        "bench": "endpoint",
        "statements": count,
        "rows a page": page,
        "requests": {"first import": before, "second import": len(served.requests) - before, "dropped": served.dropped},
        "first import": {"exit code": running[0].returncode, "seconds": round(killed_at, 1)},
        "second import": {"exit code": done.returncode, "seconds": round(seconds - killed_at, 1)},
        "said by the second": [
            piece for piece in done.stderr.splitlines() if "here already" in piece or "duplicate" in piece
        ],
        "links": {"served": links, "missing": len(wanted - set(there)), "twice": len(there) - len(set(there))},
        "labels": {"served": count // 10, "missing": count // 10 - labels},
        "load_average": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
