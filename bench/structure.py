"""How fast models of structure alone train: embeddings through the real training loop, and against PyKEEN.

    python bench/structure.py --json                     # all that this machine can measure
    python bench/structure.py --part pykeen --graph FB15k-237 --json
    python bench/structure.py --part path_step --out results/bench/x.json     # figures, and how they were made
    python bench/structure.py --tiny                     # any machine, seconds

Parts:

    epoch    with a GPU: ComplEx with 1,000 complex numbers on FB15k-237, recipe `complex` as it is. Seconds an epoch,
             which shows every triple and its inverse; drawing and the log are in it, validation and saving are not
    pykeen   on the CPU, in this process and with the same threads: our loop and PyKEEN's with the same model,
             dimension, batch, optimizer and loss, inverse triples in both. `softmax` is ComplEx over all entities: a
             sample of ours is a triple, one of PyKEEN's a pair (h, r) with all its tails. `ratio` compares samples,
             which cost the same, `ratio_triples` the triples that they cover. `self_adversarial` is RotatE with sampled
             negatives, where both count triples. The two take turns; each counts with its best turn.

Parts of the path model, path_step, path_growth, path_recall and path_explain, are in path_model.py, which says what
they are.

A part is a function that takes the options and returns figures; `PARTS` names them.
"""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from path_model import path_explain, path_growth, path_recall, path_step
from satkgc import KnowledgeGraph
from satkgc.training import train_or_stop

QUIET = {"training.validations": 0, "training.checkpoint_minutes": 1e6, "training.select": "last"}


def main() -> None:
    """Run the parts asked for and print them, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated; all by default")
    parser.add_argument("--graph", default="FB15k-237")
    parser.add_argument("--epochs", type=int, default=5, help="of the part epoch; the first warms up")
    parser.add_argument("--dim", type=int, default=100, help="complex numbers, against PyKEEN")
    parser.add_argument("--batch-size", type=int, default=512, help="samples, against PyKEEN")
    parser.add_argument("--negatives", type=int, default=64, help="of each sample, against PyKEEN")
    parser.add_argument("--steps", type=int, default=20, help="of a turn, against PyKEEN")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--path-batch", type=int, default=64, help="questions of a step of the path model")
    parser.add_argument("--path-dim", type=int, default=32)
    parser.add_argument("--path-layers", type=int, default=6)
    parser.add_argument("--path-steps", type=int, default=20)
    parser.add_argument("--most-triples", type=int, default=2 * 10**7, help="of the largest synthetic graph")
    parser.add_argument("--tiny", action="store_true", help="wordnet-sample, a few steps")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the JSON to this file, with command and commit")
    options = parser.parse_args()
    if options.tiny:
        options.graph, options.dim, options.steps, options.turns = "wordnet-sample", 8, 4, 1
        options.batch_size, options.negatives = 64, 8
        options.path_batch, options.path_dim, options.path_layers, options.path_steps = 8, 8, 2, 3
        options.most_triples = 10**5
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    figures: dict[str, Any] = {"gpu": gpu, "torch": torch.__version__, "threads": torch.get_num_threads()}
    for name in options.part or PARTS:
        figures[name] = PARTS[name](options)
    print(json.dumps(figures, indent=None if options.json else 2))
    if options.out:
        command = shlex.join(["python", "bench/structure.py", *sys.argv[1:]])
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        options.out.write_text(json.dumps({"command": command, "commit": commit, **figures}, indent=1) + "\n")


def epoch(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds an epoch of recipe complex on the GPU."""
    if not torch.cuda.is_available():
        return {"skipped": "no GPU"}
    kg = KnowledgeGraph.load(options.graph)
    torch.cuda.reset_peak_memory_stats()
    overrides = {**QUIET, "training.epochs": options.epochs, "model.dim": 1000}
    run, _ = _train(kg, "complex", overrides)
    steps_per_epoch = run["config"].sampling.steps_per_epoch(len(kg.train))
    rates = [record["triples_per_second"] for record in run["log"] if record["step"] > steps_per_epoch]
    return {
        "graph": kg.name,
        "triples": len(kg.train),
        "dim": 1000,
        "batch": run["config"].sampling.batch_size,
        "steps_per_epoch": steps_per_epoch,
        "triples_per_s": float(np.mean(rates)),
        "epoch_s": len(kg.train) / float(np.mean(rates)),
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
        "data_wait": float(np.mean([record["data_wait"] for record in run["log"][1:]])),
    }


def pykeen(options: argparse.Namespace) -> dict[str, Any]:
    """Samples a second of both, for a softmax over all entities and for sampled negatives."""
    kg = KnowledgeGraph.load(options.graph)
    figures: dict[str, Any] = {"graph": kg.name, "dim": options.dim, "batch": options.batch_size}
    for loss, interaction in (("softmax", "complex"), ("self-adversarial", "rotate")):
        ours, theirs, triples = [], [], 1.0
        for _ in range(options.turns):
            ours.append(_our_rate(kg, interaction, loss, options))
            rate, triples = _pykeen_rate(kg, interaction, loss, options)
            theirs.append(rate)
        figures[loss.replace("-", "_")] = {
            "model": interaction,
            "samples_per_s": max(ours),
            "pykeen_samples_per_s": max(theirs),
            "ratio": max(ours) / max(theirs),
            "pykeen_triples_of_a_sample": triples,
            "ratio_triples": max(ours) / (max(theirs) * triples),
        }
    return figures


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "epoch": epoch,
    "pykeen": pykeen,
    "path_step": path_step,
    "path_growth": path_growth,
    "path_recall": path_recall,
    "path_explain": path_explain,
}


def _train(kg: KnowledgeGraph, recipe: str, overrides: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """A run of the real loop in a folder that is thrown away: its settings and its log, and the seconds of it all."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run, _ = train_or_stop(kg, recipe, Path(folder) / "run", overrides=overrides)
        return {"config": run.config, "log": run.log()}, time.perf_counter() - began


def _our_rate(kg: KnowledgeGraph, interaction: str, loss: str, options: argparse.Namespace) -> float:
    """Samples a second, a triple and its inverse being two, without the first steps."""
    overrides = {
        **QUIET,
        "training.device": "cpu",
        "training.steps": options.steps + 2,
        "training.log_steps": 2,
        "sampling.batch_size": options.batch_size,
        "model.dim": options.dim,
        "model.loss": loss,
        "model.negatives": options.negatives,
        "model.distance": "l2",
        "model.n3": 0.0,
        "model.relation_loss": 0.0,
    }
    run, _ = _train(kg, interaction, overrides)
    rates = np.array([record["triples_per_second"] for record in run["log"]][1:])
    return 2 * len(rates) / float((1 / rates).sum())


def _pykeen_rate(kg: KnowledgeGraph, interaction: str, loss: str, options: argparse.Namespace) -> tuple[float, float]:
    """Samples a second, and how many triples one of them covers."""
    from pykeen.losses import CrossEntropyLoss, NSSALoss
    from pykeen.models import ComplEx, RotatE
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop, TrainingCallback
    from pykeen.triples import CoreTriplesFactory

    logging.getLogger("pykeen").setLevel(logging.ERROR)
    batch, softmax = options.batch_size, loss == "softmax"
    rng = np.random.default_rng(0)
    order = rng.permutation(len(kg.train))
    if not softmax:  # those of as many steps; the softmax needs all triples of a pair
        order = order[: batch // 2 * (options.steps + 4)]
    factory = CoreTriplesFactory(
        torch.from_numpy(kg.train[order].astype(np.int64)),
        num_entities=kg.num_entities,
        num_relations=kg.num_relations,
        create_inverse_triples=True,
    )
    torch.manual_seed(0)
    shared = {"triples_factory": factory, "embedding_dim": options.dim, "regularizer": None}
    model = ComplEx(loss=CrossEntropyLoss(), **shared) if softmax else RotatE(loss=NSSALoss(margin=9.0), **shared)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    make = LCWATrainingLoop if softmax else SLCWATrainingLoop
    negatives = {} if softmax else {"negative_sampler_kwargs": {"num_negs_per_pos": options.negatives}}
    loop = make(model=model, triples_factory=factory, optimizer=optimizer, **negatives)
    times: list[float] = []

    class Clock(TrainingCallback):
        def post_batch(self, epoch: int, batch: Any, **_: Any) -> None:
            times.append(time.perf_counter())
            if len(times) > options.steps + 2:
                raise _Enough

    with suppress(_Enough):
        loop.train(factory, num_epochs=100, batch_size=batch, use_tqdm=False, callbacks=Clock, drop_last=True)
    pairs = torch.unique(factory._add_inverse_triples_if_necessary(factory.mapped_triples)[:, :2], dim=0)
    covers = 2 * len(order) / len(pairs) if softmax else 1.0
    return batch * (len(times) - 2) / (times[-1] - times[1]), covers


class _Enough(Exception):
    """PyKEEN has done its steps."""


if __name__ == "__main__":
    main()
