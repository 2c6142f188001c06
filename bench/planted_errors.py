"""Planted errors that `satkgc check` finds: precision at k of the statements that it doubts most.

    python bench/planted_errors.py UMLS --recipe complex --seeds 1 2 3 --json > planted-errors.json

A share of the training triples has its head or its tail replaced by a random entity, such that the graph does not have
the triple. A model is trained on that graph and checks it. Validation and test triples stay as they are; what the graph
had wrong before counts as right. With --held-out the model checks triples that it was not trained on: train is dealt to
five parts, and each is judged by a model that was trained on the other four.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import satkgc
from satkgc.arrays import Bool, Int32
from satkgc.completion.checking import Verdicts, judge

PARTS = 5  # of train, with --held-out


def plant(kg: satkgc.KnowledgeGraph, share: float, seed: int) -> tuple[Int32, Bool]:
    """Training triples of which some are wrong, and which."""
    rng = np.random.default_rng(seed)
    known = {tuple(triple) for split in ("train", "valid", "test") for triple in kg.split(split).tolist()}
    train, wrong = kg.train.copy(), np.zeros(len(kg.train), bool)
    for row in rng.choice(len(train), round(share * len(train)), replace=False):
        while tuple(train[row].tolist()) in known:
            train[row] = kg.train[row]
            train[row, rng.choice([0, 2])] = rng.integers(kg.num_entities)
        known.add(tuple(train[row].tolist()))
        wrong[row] = True
    return train, wrong


def verdicts(kg: satkgc.KnowledgeGraph, train: Int32, judged: Int32, recipe: str) -> Verdicts:
    """What a model says of some triples after training on some."""
    graph = satkgc.KnowledgeGraph.from_arrays(kg.name, kg.entities, kg.relations, train, kg.valid, kg.test)
    with tempfile.TemporaryDirectory() as folder:
        run = satkgc.train(graph, recipe=recipe, out=Path(folder) / "run")
        return judge(run.completer()._engine, judged)


def measure(kg: satkgc.KnowledgeGraph, recipe: str, share: float, seed: int, held_out: bool) -> dict[str, Any]:
    """One draw of errors."""
    train, wrong = plant(kg, share, seed)
    began = time.process_time()
    if held_out:
        part = np.random.default_rng(seed).integers(PARTS, size=len(train))
        rows = [np.flatnonzero(part == i) for i in range(PARTS)]
        parts = [verdicts(kg, np.delete(train, own, 0), train[own], recipe) for own in rows]
        result, wrong = Verdicts.join(parts), wrong[np.concatenate(rows)]
    else:
        result = verdicts(kg, train, train, recipe)
    order = np.lexsort((result.belief, ~result.contradicted))
    place, count = rankdata(result.belief), int(wrong.sum())
    below = (place[~wrong].sum() - (~wrong).sum() * ((~wrong).sum() + 1) / 2) / ((~wrong).sum() * count)
    return {
        "seed": seed,
        "errors": count,
        "statements": len(train),
        "precision": {str(k): float(wrong[order[:k]].mean()) for k in (20, 50, 100, count)},
        "auc": float(below),
        "contradicted": int(result.contradicted.sum()),
        "contradicted and wrong": int(wrong[result.contradicted].sum()),
        "cpu seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--recipe", default="complex")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kg = satkgc.KnowledgeGraph.load(options.graph)
    draws = [measure(kg, options.recipe, options.share, seed, options.held_out) for seed in options.seeds]
    facts = {"graph": kg.name, "recipe": options.recipe, "share": options.share, "held_out": options.held_out}
    report = {**facts, "version": satkgc.__version__, "hardware": f"CPU, {platform.machine()}", "draws": draws}
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        for draw in draws:
            print(draw)


if __name__ == "__main__":
    main()
