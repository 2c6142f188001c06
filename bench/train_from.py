"""Training on against training anew: `train --from` on a graph that grew, for a third of the steps, at the same rate.

    python bench/train_from.py wordnet-sample UMLS --seeds 0 1 --json
    python bench/train_from.py wordnet-sample --seeds 0 1 --rate 0.3 --json      # a rate that suits short training

ComplEx is trained on nine tenths of the training triples at the recipe's rate. Then all of them are there: `--from`
goes on for a third of the steps, as it does by itself (three times the rate, with a warm-up); training anew takes all
steps, at the recipe's rate and at that of `--from`. Validation triples are the same for all, and all are ranked, with
the weights that were best at one of the validations. The seed also chooses the tenth.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import satkgc
from satkgc.kg import KnowledgeGraph

STEPS = 750
SETTINGS = {"model.dim": 100, "sampling.batch_size": 512, "training.device": "cpu", "training.validations": 5}


def main() -> None:
    """Four runs for each graph and seed; a line of JSON for each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["wordnet-sample"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--steps", type=int, default=STEPS, help="of training anew")
    parser.add_argument("--rate", type=float, help="of training anew, and of the run that is gone on from")
    parser.add_argument("--json", action="store_true", help="what is printed in any case")
    options = parser.parse_args()
    for graph in options.graphs:
        for seed in options.seeds:
            print(json.dumps(compare(KnowledgeGraph.load(graph), seed, options.steps, options.rate)), flush=True)


def compare(kg: KnowledgeGraph, seed: int, steps: int, rate: float | None) -> dict[str, Any]:
    """Validation MRR of each way."""
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.choice(len(kg.train), round(0.9 * len(kg.train)), replace=False))
    splits = (kg.train[kept], kg.valid, kg.test)
    part = KnowledgeGraph.from_arrays(f"{kg.name} nine tenths", kg.entities, kg.relations, *splits)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def trained(title: str, graph: KnowledgeGraph, settings: dict[str, Any], **more: Any) -> dict[str, Any]:
            run = satkgc.train(graph, out=folder / title, overrides=settings, **more)
            metrics = json.loads((run.folder / "metrics.json").read_text())
            rate = run.config.training.learning_rate
            return {"steps": metrics["steps"], "rate": rate, "mrr": round(metrics["valid"]["both"]["mrr"], 4)}

        given = SETTINGS | {"training.seed": seed, "training.steps": steps}
        given |= {} if rate is None else {"training.learning_rate": rate}
        before = trained("before", part, given | {"training.steps": round(0.9 * steps)}, recipe="complex")
        on = trained("on", kg, {}, from_run=folder / "before")
        anew = trained("anew", kg, given, recipe="complex")
        fast = trained("fast", kg, given | {"training.learning_rate": on["rate"]}, recipe="complex")
        ways = {"on nine tenths": before, "--from": on, "anew": anew, "anew at the rate of --from": fast}
        return {"graph": kg.name, "seed": seed} | ways


if __name__ == "__main__":
    main()
