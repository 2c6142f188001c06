"""The path model's parts of bench/structure.py: a training step against an unfused one, and how cost grows.

path_step     one training step (forward, backward, optimizer) on `--graph`: fused kernels, and the same layers with
              PyTorch's own gather and scatter_reduce at the same batch, in this process. Where the unfused step does
              not fit the memory, its layers are computed again in the backward pass, and `unfused` says so.
path_growth   on the CPU, seconds of a question asked of an untrained model, synthetic graphs of up to `--most-triples`:
              from the whole graph, and from a neighbourhood of 10,000 entities (`model.neighbourhood`), of which
              finding it by PageRank is a part. Seconds are the processor's, of all threads together, and so hardly
              depend on who else uses it; `peak_memory_gib` is the process's so far
path_explain  on `--graph`, on the CPU: processor seconds of the three strongest paths of an answer, with the compiled
              layers and with PyTorch's own gather and scatter_reduce, in this process
path_recall   on `--graph`: the share of validation answers that a neighbourhood of each size holds
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from satkgc import KnowledgeGraph
from satkgc.kg import Vocabulary
from satkgc.models import PathConfig, PathModel, Questions, strongest_paths
from satkgc.models.paths.neighbourhood import neighbourhood
from satkgc.sampling import SamplingConfig, make_sampler
from synthetic import triples

NEAR = 10_000  # entities


def path_step(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a training step, fused and unfused, what they need, and the bytes that the fused one moves."""
    kg = KnowledgeGraph.load(options.graph)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = PathModel(kg, PathConfig(dim=options.path_dim, layers=options.path_layers)).to(device)
    sampling = SamplingConfig(sampler="random", batch_size=options.path_batch)
    sampler = make_sampler(kg, sampling, 0, model.needs)
    batches = [model.collate(sampler.draw(step)) for step in range(options.path_steps + 2)]
    figures: dict[str, Any] = {"graph": kg.name, "questions": options.path_batch, "layers": options.path_layers}
    figures |= {"dim": options.path_dim, "device": device.type}
    fused, peak = _time_steps(model, batches)
    figures |= {"ms": fused, "peak_memory_gib": peak}
    gathered = _bytes(model, options.path_batch, 2 if device.type == "cuda" else 4)
    figures |= {"gathered_gb": gathered / 1e9, "gathered_tb_per_s": gathered / fused / 1e9}
    if device.type == "cuda":
        copied = _copy_rate()
        figures |= {"copy_tb_per_s": copied, "share_of_copy_rate": gathered / fused / 1e9 / copied}
    model.plain = True
    try:
        unfused, peak = _time_steps(model, batches[:4])
        how = "gather and scatter_reduce"
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        for layer in model.layers:
            layer.forward = _again(layer.forward)
        unfused, peak = _time_steps(model, batches[:4])
        how = "gather and scatter_reduce, layers computed again in the backward pass"
    figures |= {"unfused": how, "unfused_ms": unfused, "unfused_peak_memory_gib": peak, "ratio": unfused / fused}
    return figures


def path_growth(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a question by the size of the graph."""
    figures: dict[str, Any] = {"dim": options.path_dim, "layers": options.path_layers, "neighbourhood": NEAR}
    for size in (10**5, 10**6, 10**7, 2 * 10**7):
        if size > options.most_triples:
            break
        entities, relations = size * 2 // 9, 100  # Wikidata5M's triples for each entity
        kg = KnowledgeGraph.from_arrays(
            "synthetic", _numbered("e", entities), _numbered("r", relations), triples(entities, relations, size)
        )
        model = PathModel(kg, PathConfig(dim=options.path_dim, layers=options.path_layers)).eval()
        began = time.process_time()
        edges = len(model.graph.source)
        built = time.process_time() - began
        whole = _ask(model, 1)
        model.config = model.config.replace(neighbourhood=NEAR)
        adjacency, times = model.kg.fact_adjacency, []
        for entity in range(5):
            began = time.process_time()
            neighbourhood(adjacency, entity, NEAR)
            times.append(time.process_time() - began)
        near = _ask(model, 5)
        figures[f"{size:.0e}"] = {
            "triples": size,
            "edges": edges,
            "build_s": built,
            "whole_s": whole,
            "neighbourhood_s": near,
            "pagerank_s": min(times),
            "ratio": whole / near,
            "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    return figures


def path_explain(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of an explanation, compiled and unfused, and whether they name the same paths."""
    kg = KnowledgeGraph.load(options.graph)
    torch.manual_seed(0)
    model = PathModel(kg, PathConfig(dim=options.path_dim, layers=options.path_layers)).eval()
    seconds, paths = {}, {}
    for plain in (False, True):
        model.plain, times, found = plain, [], []
        for head, relation, tail in kg.valid[:4].tolist():
            began = time.process_time()
            found.append([path.edges for path in strongest_paths(model, head, relation, tail, 3)])
            times.append(time.process_time() - began)
        seconds[plain], paths[plain] = float(np.mean(times[1:])), found
    return {
        "graph": kg.name,
        "dim": options.path_dim,
        "layers": options.path_layers,
        "seconds": seconds[False],
        "unfused_seconds": seconds[True],
        "ratio": seconds[True] / seconds[False],
        "same_paths": paths[False] == paths[True],
    }


def path_recall(options: argparse.Namespace) -> dict[str, Any]:
    """The share of held-out answers among the nearest entities, both directions."""
    kg = KnowledgeGraph.load(options.graph)
    random = np.random.default_rng(0)
    held_out = kg.valid[np.sort(random.choice(len(kg.valid), min(500, len(kg.valid)), replace=False))]
    pairs = np.concatenate([held_out[:, [0, 2]], held_out[:, [2, 0]]]).tolist()
    return {
        "graph": kg.name,
        "entities": kg.num_entities,
        "recall": {
            size: float(np.mean([answer in neighbourhood(kg.adjacency, entity, size) for entity, answer in pairs]))
            for size in (100, 300, 1_000, 3_000, 10_000)
            if size < kg.num_entities
        },
    }


def _numbered(kind: str, size: int) -> Vocabulary:
    ids = [f"{kind}{i}" for i in range(size)]
    return Vocabulary.build(kind, ids, ids, [""] * size)


def _ask(model: PathModel, times: int) -> float:
    """Seconds of a question, the fastest of some, after one to warm up."""
    questions = [Questions(np.array([i], np.int32), np.array([i], np.int32)) for i in range(times + 1)]
    seconds = []
    for question in questions:
        began = time.process_time()
        model.score(question)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def _again(forward: Any) -> Any:
    def run(*arguments: Any) -> Tensor:
        return checkpoint(forward, *arguments, use_reentrant=False)

    return run


def _time_steps(model: PathModel, batches: list[Any]) -> tuple[float, float]:
    """Milliseconds a step, on a CPU the processor's own, without the first two; the peak memory in GiB (of a GPU)."""
    cuda = model.device.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    wait = torch.cuda.synchronize if cuda else lambda: None
    clock = time.perf_counter if cuda else time.process_time
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    for number, batch in enumerate(batches):
        if number == 2:
            wait()
            began = clock()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=cuda):
            loss, _ = model.loss(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    wait()
    seconds = (clock() - began) / (len(batches) - 2)
    return 1e3 * seconds, torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0


def _bytes(model: PathModel, batch: int, size: int) -> int:
    """What the kernels of all layers read and write in a step, each row of a gather counted."""
    graph, layers = model.training_graph, len(model.layers)
    edges, nodes = len(graph.source), graph.num_nodes
    place = graph.place_dtype.itemsize
    forward = edges * 2 * size + nodes * (4 * size + 2 * place)
    backward = 2 * edges * (3 * size + 2 * place) + nodes * 6 * size
    update = nodes * (6 * size + 8 * size)
    return layers * batch * model.config.dim * (forward + backward + update)


def _copy_rate() -> float:
    """TB/s of copying 4 GiB on the GPU, read and written."""
    source = torch.empty(2**30, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    for _ in range(3):
        target.copy_(source)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(10):
        target.copy_(source)
    torch.cuda.synchronize()
    return 2 * 10 * source.numel() * 4 / (time.perf_counter() - began) / 1e12
