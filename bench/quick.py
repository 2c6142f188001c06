"""From `satkgc train` to the first answer on a laptop's graph: time, memory and quality of the recipe `quick`.

    python bench/quick.py --json                         # WN18RR's densest 2,400 entities, 5,000 triples among them
    python bench/quick.py --recipe quick --recipe satkgc-adjusted --device cuda --folder runs/bench --json
    python bench/quick.py --tiny                         # wordnet-sample's densest 300 entities, any machine

Both commands run as a person would run them, each a process of its own: `train` with the recipe, then `complete` with
one question. `seconds` are of the clock, `cpu_seconds` of all threads, `peak_rss_mib` the larger of the two processes.
Then the test triples are ranked, which is not in the time. A twentieth each is held out for validation and test.

The full recipe wants a GPU: `--device cuda` trains, asks and ranks there. With `--folder` the same command goes on
after a stop; times are then those of the last part alone. `--set training.precision=bfloat16` has a processor that can
do it train as a GPU would.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import satkgc
from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph, Vocabulary


def main() -> None:
    """Measure each recipe on one graph and print figures, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", action="append", help="may be repeated; quick by default")
    parser.add_argument("--graph", default="WN18RR")
    parser.add_argument("--entities", type=int, default=2_400)
    parser.add_argument("--triples", type=int, default=5_000)
    parser.add_argument("--seed", type=int, action="append", help="may be repeated; 0 by default")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as of `satkgc train`")
    parser.add_argument("--device", default="cpu", help="where to train, ask and rank; cpu by default")
    parser.add_argument("--folder", type=Path, help="where runs are kept, and go on after a stop")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        options.graph, options.entities, options.triples = "wordnet-sample", 300, 500
    kg = dense_part(KnowledgeGraph.load(options.graph), options.entities, options.triples)
    settings = [part for setting in options.set for part in ("--set", setting)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        kg.save(folder / "graph", overwrite=True)
        figures = {
            f"{recipe}, seed {seed}": measure(folder, kg, recipe, seed, options.device, settings)
            for recipe in options.recipe or ["quick"]
            for seed in options.seed or [0]
        }
    result = {
        "bench": "quick",
        "graph": f"{options.graph}: {kg!r}",
        "cores": len(os.sched_getaffinity(0)),
        "device": options.device,
        "settings": options.set,
        "recipes": figures,
    }
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for recipe, own in figures.items():
        print(recipe, *(f"{name} {value}" for name, value in own.items()), sep="\n  ")


def measure(
    folder: Path, kg: KnowledgeGraph, recipe: str, seed: int, device: str, settings: list[str]
) -> dict[str, Any]:
    """Train and ask once, each in a process of its own; then rank the test triples."""
    run = folder / f"{recipe}-{seed}"
    head, relation, _ = kg.test[0]
    question = ["--head", kg.entities.id(int(head)), "--relation", kg.relations.id(int(relation))]
    where = ["--out", str(run), "--device", device, "--seed", str(seed), "--resume"]
    train = timed("train", str(folder / "graph"), "--recipe", recipe, *where, *settings)
    answer = timed("complete", str(run), *question, "--device", device)
    parts = {"train": train, "answer": answer}
    trained = satkgc.Run.load(run)
    return {
        "seconds": round(sum(part["seconds"] for part in parts.values()), 1),
        "cpu_seconds": round(sum(part["cpu_seconds"] for part in parts.values()), 1),
        "peak_rss_mib": max(part["peak_rss_mib"] for part in parts.values()),
        "valid_mrr": round(trained.metrics["valid"]["both"]["mrr"], 4),
        "test_mrr": round(satkgc.evaluate(trained, "test", device=device).metrics()["both"]["mrr"], 4),
        "steps": trained.metrics.get("steps"),
        "commit": trained.about["commit"],
    }


def timed(*command: str) -> dict[str, float]:
    """Run `satkgc` and wait for it."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "satkgc", *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"satkgc {' '.join(command)} failed")
    return {"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_rss_mib": usage.ru_maxrss // 1024}


def dense_part(kg: KnowledgeGraph, entities: int, triples: int) -> KnowledgeGraph:
    """The entities that are left when the one with the fewest triples goes again and again, and triples among them."""
    everything = np.concatenate([kg.train, kg.valid, kg.test])
    everything = np.unique(everything[everything[:, 0] != everything[:, 2]], axis=0)
    kept = core(everything, kg.num_entities, entities)
    inside = everything[np.isin(everything[:, [0, 2]], kept).all(1)]
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(inside))[:triples]
    chosen = np.stack(
        [np.searchsorted(kept, inside[rows, 0]), inside[rows, 1], np.searchsorted(kept, inside[rows, 2])], 1
    )
    words = (kg.entities.ids, kg.entities.names, kg.entities.descriptions)
    vocabulary = Vocabulary.build("entity", *(column.take(kept) for column in words))
    held = len(chosen) // 20
    valid, test, train = np.split(chosen.astype(np.int32), [held, 2 * held])
    return KnowledgeGraph.from_arrays("dense", vocabulary, kg.relations, train, valid, test)


def core(triples: Int32, num_entities: int, size: int) -> Int32:
    """So many entities, ascending, the rest taken off by degree, a hundredth of what is too many at a time."""
    alive = np.ones(num_entities, bool)
    while (count := int(alive.sum())) > size:
        inside = triples[alive[triples[:, [0, 2]]].all(1)]
        degree = np.bincount(inside[:, [0, 2]].ravel(), minlength=num_entities).astype(float)
        degree[~alive] = np.inf
        alive[np.argsort(degree, kind="stable")[: max(1, min(count - size, (count - size) // 100 + 20))]] = False
    return np.flatnonzero(alive).astype(np.int32)


if __name__ == "__main__":
    main()
