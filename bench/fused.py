"""What a question to a fused model costs, with and without its path expert.

    python bench/fused.py --graph FB15k-237 --json
    python bench/fused.py --graph wordnet-sample --questions 5 --out results/bench/fused.json

The experts are those of recipe `fused` for the graph, untrained: what they cost does not depend on what they have
learnt. Times are milliseconds of one question about all entities, the median of some, asked one by one; on a CPU
the processor's own, of all threads together. `evidence` is the three strongest paths of an answer.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from satkgc import KnowledgeGraph
from satkgc.models import MODELS, FusedConfig, FusedModel, Model, PathModel, Questions, VectorModel, strongest_paths
from satkgc.training import make_config


def main() -> None:
    """Measure all experts, all but paths, each alone, and an explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="FB15k-237")
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--backbone", default="minilm", help="of the text expert")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the JSON to this file, with command and commit")
    options = parser.parse_args()
    kg = KnowledgeGraph.load(options.graph)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    experts = _experts(kg, options.backbone, device)
    rows = kg.valid[np.random.default_rng(0).choice(len(kg.valid), options.questions + 1, replace=False)].tolist()
    mixtures = {"all": list(experts), "without_paths": [name for name in experts if name != "paths"]}
    mixtures |= {name: [name] for name in experts}
    figures: dict[str, Any] = {
        "graph": kg.name,
        "entities": kg.num_entities,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "experts": {name: _size(expert) for name, expert in experts.items()},
        "ms": {},
    }
    for name, chosen in mixtures.items():
        model = _mixture(kg, {part: experts[part] for part in chosen}, device)
        times = [_time(device, partial(_score, model, h, r)) for h, r, _ in rows]
        figures["ms"][name] = float(np.median(times[1:]))
    if isinstance(paths := experts.get("paths"), PathModel):
        times = [_time(device, partial(strongest_paths, paths, h, r, t, 3)) for h, r, t in rows[:4]]
        figures["ms"]["evidence"] = float(np.median(times[1:]))
    figures["ratio"] = figures["ms"]["all"] / figures["ms"]["without_paths"]
    print(json.dumps(figures, indent=None if options.json else 2))
    if options.out:
        command = shlex.join(["python", "bench/fused.py", *sys.argv[1:]])
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        options.out.write_text(json.dumps({"command": command, "commit": commit, **figures}, indent=1) + "\n")


def _experts(kg: KnowledgeGraph, backbone: str, device: torch.device) -> dict[str, Model]:
    overrides = {"experts.text.model.encoder.backbone": backbone}
    config = make_config("fused", benchmark=kg.benchmark, triples=len(kg.train), overrides=overrides)
    torch.manual_seed(0)
    return {name: MODELS[own.model.kind](kg, own.model).to(device).eval() for name, own in config.experts.items()}


def _mixture(kg: KnowledgeGraph, experts: dict[str, Model], device: torch.device) -> FusedModel:
    """With random vectors of entities: they would take minutes to encode."""
    vectors = {
        name: torch.nn.functional.normalize(torch.randn(kg.num_entities, expert.dim), dim=1)
        for name, expert in experts.items()
        if isinstance(expert, VectorModel)
    }
    return FusedModel(kg, FusedConfig(), experts, vectors).to(device)


def _score(model: FusedModel, head: int, relation: int) -> torch.Tensor:
    return model.score(Questions(np.array([head], np.int32), np.array([relation], np.int32))).cpu()


def _time(device: torch.device, work: Callable[[], Any]) -> float:
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    began = clock()
    work()
    return 1e3 * (clock() - began)


def _size(model: Model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


if __name__ == "__main__":
    main()
