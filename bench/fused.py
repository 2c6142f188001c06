"""What a question to a fused model costs, with and without its path expert.

    python bench/fused.py --graph FB15k-237 --json
    python bench/fused.py --graph wordnet-sample --questions 5 --out results/bench/fused.json
    python bench/fused.py --synthetic 20000 100000 300000 --questions 5 --json

The experts are those of recipe `fused` for the graph, untrained: what they cost does not depend on what they have
learnt. Times are milliseconds of one question about all entities, the median of some, asked one by one; on a CPU
the processor's own, of all threads together. `evidence` is the three strongest paths of an answer.

With --synthetic, a made-up graph of so many entities and five times as many triples: `ms` has the whole scores of a
question against a search of its candidates, and `recall` how many of the whole scores' first answers are candidates.
The text expert is a stand-in with random vectors: what it takes to read a question is in neither time. Untrained
experts are noise that agrees on nothing: `recall` says nothing about trained ones.
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
from satkgc.arrays import Float32, Int32
from satkgc.completion.candidates import CandidateRetriever
from satkgc.completion.retriever import FusedRetriever
from satkgc.kg import Vocabulary
from satkgc.models import MODELS, FusedConfig, FusedModel, Model, PathModel, Questions, VectorModel, strongest_paths
from satkgc.settings import Settings
from satkgc.training import make_config
from synthetic import triples


def main() -> None:
    """Measure all experts, all but paths, each alone, and an explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="FB15k-237")
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--backbone", default="minilm", help="of the text expert")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the JSON to this file, with command and commit")
    parser.add_argument("--synthetic", type=int, nargs="+", metavar="ENTITIES", help="candidates against whole scores")
    options = parser.parse_args()
    if options.synthetic:
        _report({"synthetic": [_candidates(size, options.questions) for size in options.synthetic]}, options)
        return
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
    _report(figures, options)


def _report(figures: dict[str, Any], options: argparse.Namespace) -> None:
    print(json.dumps(figures, indent=None if options.json else 2))
    if options.out:
        command = shlex.join(["python", "bench/fused.py", *sys.argv[1:]])
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        options.out.write_text(json.dumps({"command": command, "commit": commit, **figures}, indent=1) + "\n")


def _candidates(entities: int, questions: int) -> dict[str, Any]:
    """Latency and recall of candidates on a made-up graph, by the experts of `fused`; embeddings have 100 features."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = triples(entities, 50, 5 * entities)
    names = [_names(kind, letter, count) for kind, letter, count in (("entity", "Q", entities), ("relation", "P", 50))]
    kg = KnowledgeGraph.from_arrays("synthetic", *names, rows[questions + 1 :], rows[: questions + 1])
    overrides = {"experts.text.recipe": "none", "experts.complex.model.dim": 100}
    config = make_config("fused", benchmark=None, triples=len(kg.train), overrides=overrides)
    torch.manual_seed(0)
    experts: dict[str, Model] = {"text": StandIn(kg)}
    experts |= {name: MODELS[own.model.kind](kg, own.model) for name, own in config.experts.items()}
    model = _mixture(kg, {name: expert.to(device).eval() for name, expert in experts.items()}, device)
    retriever = CandidateRetriever(model)
    figures: dict[str, Any] = {
        "entities": entities,
        "triples": len(rows),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "listed": retriever.listed,
        "near": retriever.near,
    }
    times: dict[str, list[float]] = {"whole": [], "candidates": []}
    sizes, first, ten, same = [], [], [], []
    for h, r, _ in kg.valid.tolist():
        asked = retriever.encode(Questions(np.array([h], np.int32), np.array([r], np.int32)))
        found: dict[str, Any] = {}

        def search(kind: type[FusedRetriever], name: str, asked: Any = asked, found: Any = found) -> None:
            found[name] = kind.search(retriever, asked, 10)[1][0]

        times["whole"].append(_time(device, partial(search, FusedRetriever, "whole")))
        times["candidates"].append(_time(device, partial(search, CandidateRetriever, "candidates")))
        (listed,) = retriever.shortlists(asked.questions)
        sizes.append(len(listed.ids))
        there = np.isin(found["whole"], listed.ids)
        first.append(there[0])
        ten.append(there.mean())
        same.append(found["whole"][0] == found["candidates"][0])
    figures["ms"] = {name: float(np.median(own[1:])) for name, own in times.items()}
    figures["ratio"] = figures["ms"]["whole"] / figures["ms"]["candidates"]
    figures["candidates"] = float(np.mean(sizes))
    figures["recall"] = {name: float(np.mean(v)) for name, v in (("first", first), ("first_ten", ten), ("same", same))}
    return figures


class StandIn(VectorModel):
    """Random vectors of questions, as wide as those of a small language model; the mixture has those of entities."""

    reads_text = True
    dim = 384

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg, Settings())
        self.relations = torch.nn.Parameter(torch.randn(2 * kg.num_relations, self.dim))

    def loss(self, batch: Any) -> Any:
        """There is none."""
        raise NotImplementedError

    def encode_questions(self, questions: Questions, *, progress: bool = False) -> Float32:
        """Of entity and relation, by a seed."""
        pairs = zip(questions.entities.tolist(), questions.relations.tolist(), strict=True)
        rows = np.stack([np.random.default_rng(pair).normal(size=self.dim) for pair in pairs])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def encode_entities(self, entities: Int32, new: Any = (), *, progress: bool = False) -> Float32:
        """They are given."""
        raise NotImplementedError


def _names(kind: str, letter: str, count: int) -> Vocabulary:
    ids = [f"{letter}{i}" for i in range(count)]
    return Vocabulary.build(kind, ids, ids, [""] * count)


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
