"""From `satkgc update` to the first answer about what is new: time and memory, on a graph of WN18RR's size.

    python bench/update.py --encode --json       # WN18RR less a hundredth of its training triples, which are then new
    python bench/update.py --json                # the same, sooner: old entities' vectors are drawn instead of read
    python bench/update.py --run RUN --new new.csv --texts new-texts.csv --json     # a run of one's own, updated beside
    python bench/update.py --tiny                # wordnet-sample, any machine

The run is of the recipe `quick`, trained for five steps: what an update costs does not depend on it. Half of the new
triples are those of entities that are new too. Both commands run as a person would run them, each a process of its own.
`seconds` are of the clock, `cpu_seconds` of all threads.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.nn import functional

from satkgc.completion import Completer
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models.text.frozen import FrozenModel
from satkgc.training import train_or_stop


def main() -> None:
    """Make a run and what is new to it, unless they are given; measure both commands and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--new", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--encode", action="store_true", help="the encoder reads all entities of the run, for minutes")
    parser.add_argument("--json", action="store_true", help="what is printed in any case")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.run is None:
            part = held_back(KnowledgeGraph.load("wordnet-sample" if options.tiny else "WN18RR"), folder)
            options.run, options.new, options.texts = folder / "run", folder / "new.csv", folder / "texts.csv"
            make_run(part, options.run, options.encode)
        print(json.dumps(measure(options.run, options.new, options.texts, folder / "updated"), indent=1))


def held_back(kg: KnowledgeGraph, folder: Path, share: float = 0.01) -> KnowledgeGraph:
    """The graph without a share of its training triples, which go to new.csv, with new entities in texts.csv."""
    rng, wanted = np.random.default_rng(0), round(share * len(kg.train))
    gone, out = np.zeros(kg.num_entities, bool), np.zeros(len(kg.train), bool)
    held_out = np.unique(np.concatenate([kg.valid, kg.test])[:, ::2])
    for entity in rng.permutation(np.setdiff1d(np.arange(kg.num_entities), held_out)):
        rows = kg.adjacency.triples_at(int(entity))
        if len(rows) <= 5:
            gone[entity], out[rows] = True, True
        if out.sum() >= wanted // 2:
            break
    out[rng.choice(np.flatnonzero(~out), max(0, wanted - int(out.sum())), replace=False)] = True
    entities, relations = kg.entities, kg.relations
    statements = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in kg.train[out].tolist()]
    write(folder / "new.csv", ("head", "relation", "tail"), statements)
    texts = [(entities.id(e), entities.name(e), entities.description(e)) for e in np.flatnonzero(gone).tolist()]
    write(folder / "texts.csv", ("id", "name", "description"), texts)
    place, kept = (np.cumsum(~gone) - 1).astype(np.int32), pa.array(np.flatnonzero(~gone))
    splits = [
        np.stack([place[triples[:, 0]], triples[:, 1], place[triples[:, 2]]], 1)
        for triples in (kg.train[~out], kg.valid[:200], kg.test[:200])
    ]
    columns = (column.take(kept) for column in (entities.ids, entities.names, entities.descriptions))
    return KnowledgeGraph.from_arrays(
        f"{kg.name} less a hundredth", Vocabulary.build("entity", *columns), relations, *splits
    )


def write(file: Path, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])


def make_run(kg: KnowledgeGraph, folder: Path, encode: bool) -> None:
    """A run that can answer, not one that answers well."""

    def drawn(model: FrozenModel) -> torch.Tensor:
        if model._vectors is None:
            torch.manual_seed(0)
            model._vectors = functional.normalize(torch.randn(model.kg.num_entities, model.towers.dim), dim=1)
        return model._vectors

    read = FrozenModel.vectors
    if not encode:
        FrozenModel.vectors = property(drawn)  # type: ignore[method-assign, assignment]
    short = {"training.device": "cpu"}
    for name in ("text", "complex"):
        short |= {f"experts.{name}.training.steps": 5, f"experts.{name}.training.validations": 1}  # type: ignore[dict-item]
    train_or_stop(kg, "quick", out=folder, overrides=short)
    Completer.load(folder)
    FrozenModel.vectors = read  # type: ignore[method-assign]


def measure(run: Path, new: Path, texts: Path, out: Path) -> dict[str, Any]:
    """Both commands, and what the first says."""
    with texts.open(newline="", encoding="utf-8") as stream:
        first = next(csv.DictReader(stream))["id"]
    with new.open(newline="", encoding="utf-8") as stream:
        relation = next(csv.DictReader(stream))["relation"]
    update, said = command("update", run, new, "--entities", texts, "--out", out, "--device", "cpu")
    complete, answers = command("complete", out, "--head", first, "--relation", relation, "--device", "cpu")
    return {
        "bench": "update",
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 1),
        "said": said.splitlines(),
        "update": update,
        "complete": complete | {"answers": len(answers.splitlines())},
    }


def command(*arguments: object) -> tuple[dict[str, float], str]:
    """Seconds of the clock and of processors, the peak of memory over all so far, and what was printed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    line = [sys.executable, "-m", "satkgc", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "peak_rss_mib": after.ru_maxrss >> 10}
    return figures, done.stderr + done.stdout


if __name__ == "__main__":
    main()
