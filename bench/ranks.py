"""Throughput of training by several processes on this machine, and that they have the same losses.

    python bench/ranks.py --json                 # 1 and 2 processes, one core each, in turn
    python bench/ranks.py --ranks 1 2 4 8 --threads 0 --graph WN18RR --batch 1024      # GPUs: one each

Runs alternate, so that what else the machine does meets all of them; the best round of each counts. Every process has
`--threads` threads (0: as torch chooses); with dropout off, runs of any number of processes have the same losses.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from satkgc.training.log import read_log


def train(ranks: int, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """One run: triples a second of its second half, and all losses."""
    settings = {
        "model.encoder.backbone": options.backbone,
        "model.encoder.dropout": 0.0,
        "model.encoder.chunk_tokens": options.chunk_tokens,
        "sampling.batch_size": options.batch,
        "training.steps": options.steps,
        "training.validations": 0,
        "training.log_steps": 1,
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command += ["-m", "satkgc", "train", options.graph, "--recipe", "satkgc-adjusted", "--out", str(out)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    threads = {"OMP_NUM_THREADS": str(options.threads)} if options.threads else {}
    subprocess.run(command, check=True, env=os.environ | threads, capture_output=True)
    records = [record for record in read_log(out / "log.jsonl") if "loss" in record]
    rates = [record["triples_per_second"] for record in records[len(records) // 2 :]]
    return {"triples_per_s": statistics.median(rates), "losses": [record["loss"] for record in records]}


def main() -> None:
    """Parse, train in turn, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--graph", default="wordnet-sample")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--chunk-tokens", type=int, default=512)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON alone, which is what is printed in any case")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    runs: dict[int, list[dict[str, Any]]] = {ranks: [] for ranks in options.ranks}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for ranks in options.ranks:
                runs[ranks].append(train(ranks, options, Path(folder) / f"{ranks}-{turn}"))
                print(f"{ranks}: {runs[ranks][-1]['triples_per_s']:.2f} triples/s", file=sys.stderr, flush=True)
    best = {ranks: max(run["triples_per_s"] for run in those) for ranks, those in runs.items()}
    alone = runs[options.ranks[0]][0]["losses"]
    losses = [run["losses"] for those in runs.values() for run in those]
    apart = max(abs(loss - own) / own for some in losses for loss, own in zip(some, alone, strict=True))
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    result = {
        **{name: value for name, value in vars(options).items() if name != "json"},
        "triples_per_s": {ranks: [run["triples_per_s"] for run in those] for ranks, those in runs.items()},
        "against_first": {ranks: rate / best[options.ranks[0]] for ranks, rate in best.items()},
        "losses_apart_at_most": apart,
        "cores": os.cpu_count(),
        "load_before": before,
        "load_after": os.getloadavg()[0],
        "commit": commit,
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
