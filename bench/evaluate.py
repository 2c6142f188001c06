"""How long evaluation takes: WN18RR from texts to ranks, and ranks among millions of memory-mapped vectors.

    python bench/evaluate.py --json                          # both, with MiniLM; needs about 8 GB of disk for a while
    python bench/evaluate.py --part graph --backbone FOLDER  # WN18RR (or --graph NAME) with another backbone
    python bench/evaluate.py --part large --entities 4600000 --queries 2000

The baseline ranks as the method's first program did: a whole row of scores a query, sorted, and the answer looked up.
It is timed in the same process on the same vectors, on fewer queries, and compared by queries per second.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from satkgc.evaluation import Slices, evaluate, rank_queries
from satkgc.kg import KnowledgeGraph
from satkgc.models import EncoderConfig, Questions, TextModel, TextModelConfig
from satkgc.processes import find_device

DIM = 384


def main() -> None:
    """Run the parts asked for and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("graph", "large", "all"), default="all")
    parser.add_argument("--graph", default="WN18RR", help="a graph of the catalogue, or a path")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--entities", type=int, default=4_600_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--memory-mib", type=int, default=64, help="for a tile of scores")
    parser.add_argument("--folder", type=Path, help="where the temporary vectors go")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    device = find_device(options.device)
    figures: dict[str, object] = {"device": _device_name(device), "threads": torch.get_num_threads()}
    if options.part != "graph":  # first, because the peak of memory only ever rises
        figures["large"] = large(options.entities, options.queries, options.memory_mib, options.folder)
    if options.part != "large":
        figures["graph"] = graph(options.graph, options.backbone, device)
    print(json.dumps(figures, indent=None if options.json else 2))


def graph(name: str, backbone: str, device: torch.device) -> dict[str, object]:
    """Evaluate a graph's test triples with an untrained backbone; the second run counts, the first warms up."""
    kg = KnowledgeGraph.load(name)
    model = TextModel(kg, TextModelConfig(encoder=EncoderConfig(backbone=backbone))).to(device).eval()
    kg.known_all.head_ptr  # noqa: B018  built here, as part of loading
    rounds = []
    for _ in range(2):
        start = time.perf_counter()
        report = evaluate(model, kg)
        rounds.append(time.perf_counter() - start)
    queries = model.encode_questions(Questions(kg.test[:256, 0], kg.test[:256, 1]))
    entities = model.encode_entities(np.arange(kg.num_entities, dtype=np.int32))
    vectors = (torch.from_numpy(part).to(device) for part in (entities, queries))
    naive = _naive(*vectors, kg.test[:256, 2], [kg.known_all.tails(h, r) for h, r, _ in kg.test[:256]])
    ours = 2 * len(kg.test) / report.seconds["ranking"]
    return {
        "graph": kg.name,
        "backbone": backbone.rsplit("/", 1)[-1],
        "seconds": rounds[1],
        "first_seconds": rounds[0],
        "phases": report.seconds,
        "mrr": report.metrics()["both"]["mrr"],
        "ranked_per_second": ours,
        "baseline_ranked_per_second": naive,
        "ratio": ours / naive,
    }


def large(entities: int, queries: int, memory_mib: int, folder: Path | None) -> dict[str, object]:
    """Rank random queries against random memory-mapped vectors, and say the most memory the process ever had."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        file = Path(temporary) / "entities.f32"
        with file.open("wb") as stream:
            for start in range(0, entities, 100_000):
                _unit(rng, min(100_000, entities - start)).tofile(stream)
        vectors = np.memmap(file, np.float32, "r", shape=(entities, DIM))
        questions, answers = _unit(rng, queries), rng.integers(0, entities, queries).astype(np.int32)
        known = np.sort(rng.integers(0, entities, (queries, 20)).astype(np.int32), axis=1)
        ends = np.arange(1, queries + 1) * 20
        before = _peak_mib()
        start = time.perf_counter()
        ranks = rank_queries(questions, vectors, answers, Slices(known.ravel(), ends - 20, ends), memory_mib=memory_mib)
        seconds = time.perf_counter() - start
        peak = _peak_mib()
        naive = _naive(vectors, torch.from_numpy(questions[:8]), answers[:8], list(known[:8]))
    return {
        "entities": entities,
        "queries": queries,
        "dim": DIM,
        "seconds": seconds,
        "peak_rss_mib": peak,
        "peak_rss_mib_before": before,
        "mean_rank": float(ranks.rank().mean()),
        "ranked_per_second": queries / seconds,
        "baseline_ranked_per_second": naive,
        "ratio": queries / seconds / naive,
    }


def _naive(entities: torch.Tensor | np.memmap, queries: torch.Tensor, answers: np.ndarray, known: list) -> float:
    """Queries ranked per second by sorting each query's scores of all entities, known answers put last."""
    start = time.perf_counter()
    scores = torch.empty(len(answers), len(entities), device=queries.device)
    for first in range(0, len(entities), 100_000):
        block = entities[first : first + 100_000]
        block = torch.from_numpy(np.array(block)) if isinstance(block, np.ndarray) else block
        scores[:, first : first + 100_000] = queries @ block.T
    for row, answer, others in zip(scores, answers.tolist(), known, strict=True):
        own = row[answer].item()
        row[torch.from_numpy(others.astype(np.int64))] = -1
        row[answer] = own
        (torch.argsort(row, descending=True) == answer).nonzero().item()
    return len(answers) / (time.perf_counter() - start)


def _unit(rng: np.random.Generator, count: int) -> np.ndarray:
    vectors = rng.standard_normal((count, DIM), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()
