"""The whole way of a graph of Wikidata5M's size, from its import to answers: time, memory and rates of each part.

    python bench/pipeline.py --folder F --json                       # all parts that F has no figures of
    python bench/pipeline.py --folder F --part train encode --json   # these, anew
    python bench/pipeline.py --tiny --json                           # any machine, a minute

The graph is synthetic and seeded (synthetic.py): Wikidata5M cannot be had everywhere. Its texts are made-up words,
which tokenizers cut small: nearly all are as long as the recipe lets a text be. Parts follow one another and find in
the folder what those before have left; figures of each are written to F/pipeline.json when it is done, so that a call
that was stopped goes on. Each is a process of its own, whose processor time and peak memory the system reports. Weights
are those of a few steps: no part takes longer or less for it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import synthetic
from load import measured
from satkgc import KnowledgeGraph
from satkgc.completion import Completer
from satkgc.completion.prepare import index_kind, prepare
from satkgc.evaluation import evaluate
from satkgc.models import TextModel, load_tokenizer
from satkgc.processes import find_device
from satkgc.text import Texts, Tokens
from satkgc.training import RunFolder, make_config, train_or_stop
from satkgc.training.validation import Validation

BENCHMARK = "Wikidata5M-transductive"  # whose settings the recipe has
AUTHORS_HOURS = 19.0  # two epochs on six A6000, from the paper
PIECE = 65_536  # entities encoded at a time
Figures = dict[str, Any]


class Clock:
    """Seconds by the clock and of the processors since it was made; a busy machine's are those of the processors."""

    def __init__(self) -> None:
        self.began = time.perf_counter(), time.process_time()

    def figures(self, prefix: str = "") -> Figures:
        """Both."""
        wall, processors = self.began
        return {f"{prefix}s": time.perf_counter() - wall, f"{prefix}cpu_s": time.process_time() - processors}


def make(options: argparse.Namespace) -> Figures:
    """The sources."""
    source = options.folder / "source"
    synthetic.write(source, options.entities, options.relations, options.triples, description=tuple(options.words))
    return {"gib": size_gib(source)}


def import_graph(options: argparse.Namespace) -> Figures:
    """`satkgc kg import`."""
    source, graph = options.folder / "source", options.folder / "graph"
    command = ["kg", "import", str(source / "triples.parquet"), str(graph), "--force"]
    memory = [] if options.memory is None else ["--memory", str(options.memory)]
    satkgc(*command, "--entities", str(source / "entities.parquet"), *memory)
    return {"gib": size_gib(graph)}


def inspect(options: argparse.Namespace) -> Figures:
    """`satkgc kg inspect`."""
    satkgc("kg", "inspect", str(options.folder / "graph"), "--json")
    return {}


def train(options: argparse.Namespace) -> Figures:
    """Some steps of the recipe, with its batch and its sampler."""
    kg, run = KnowledgeGraph.load(options.folder / "graph"), options.folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    overrides: dict[str, Any] = {"model.encoder.backbone": options.backbone, "training.device": options.device}
    overrides |= {"training.steps": options.steps, "training.validations": 0, "training.log_steps": 5}
    if options.batch is not None:
        overrides["sampling.batch_size"] = options.batch
    config = make_config(options.recipe, benchmark=BENCHMARK, overrides=overrides)
    ends, clock, begun = [], Clock(), {}

    def note(step: int, model: TextModel, batch: Any, metrics: Any) -> None:
        if step == 1:
            begun.update(clock.figures("before_first_step_"))
            model.texts.tokens.save(options.folder / "tokens.safetensors")
        if model.device.type == "cuda":
            torch.cuda.synchronize(model.device)
        ends.append((time.perf_counter(), time.process_time()))

    train_or_stop(kg, out=run, config=config, callbacks=[note])
    steady = np.median(np.diff(ends[len(ends) // 2 :], axis=0), axis=0)
    records = [r for r in RunFolder.load(run).log() if "loss" in r][-max(1, options.steps // 10) :]
    whole = make_config(options.recipe, benchmark=BENCHMARK).total_steps(options.whole_triples)
    return {
        "steps": options.steps,
        "batch_size": config.sampling.batch_size,
        **begun,
        "step_s": steady[0],
        "step_cpu_s": steady[1],
        "waiting_for_data": statistics.mean(record["data_wait"] for record in records),
        "steps_of_two_epochs": whole,
        "hours_of_two_epochs": whole * steady[0] / 3600,
        "hours_of_the_authors": AUTHORS_HOURS,
        **gpu_memory(),
    }


def validate(options: argparse.Namespace) -> Figures:
    """What one validation during training takes: candidates drawn once on a graph of this size."""
    run, model = open_run(options)
    config = run.config.evaluation.replace(sampled=options.candidates or 0)
    clock = Clock()
    validation = Validation(model, config, options.validation, run.config.training.seed)
    amri = validation()["both"]["amri"]
    return {**clock.figures(), "triples": options.validation, "among": validation.candidates, "amri": amri}


def encode(options: argparse.Namespace) -> Figures:
    """Vectors of all entities, or of --encode of them and drawn ones for the rest."""
    _, model = open_run(options)
    count = min(options.encode or model.kg.num_entities, model.kg.num_entities)
    shape = (model.kg.num_entities, model.dim)
    vectors = np.lib.format.open_memmap(options.folder / "vectors.npy", "w+", np.float32, shape)
    model.encode_entities(np.arange(256, dtype=np.int32))  # what is compiled and chosen once
    seconds, processors, tokens, flops = 0.0, 0.0, 0, 0.0
    for start in range(0, count, PIECE):
        entities = np.arange(start, min(start + PIECE, count), dtype=np.int32)
        lengths = model.entity_tokens(entities).lengths
        clock = Clock()
        vectors[start : start + len(entities)] = model.encode_entities(entities)
        took = clock.figures()
        seconds, processors = seconds + took["s"], processors + took["cpu_s"]
        tokens += int(lengths.sum())
        flops += operations(model, lengths)
        print(f"encoded {start + len(entities):,} of {count:,}", file=sys.stderr, flush=True)
    rng = np.random.default_rng(0)
    for start in range(count, len(vectors), PIECE):
        drawn = rng.standard_normal((min(PIECE, len(vectors) - start), model.dim), np.float32)
        vectors[start : start + PIECE] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    vectors.flush()
    peak = matrix_rate(model.device)
    return {
        "entities": count,
        "s": seconds,
        "cpu_s": processors,
        "s_of_all": seconds * len(vectors) / count,
        "mean_tokens": tokens / count,
        "tokens_per_s": tokens / seconds,
        "tokens_per_cpu_s": tokens / processors,
        "share_of_peak": flops / (seconds if model.device.type == "cuda" else processors) / peak,
        "peak_tflops": peak / 1e12,
        **gpu_memory(),
    }


def rank(options: argparse.Namespace) -> Figures:
    """--questions test questions among all entities, filtered, exactly."""
    _, model = open_run(options, kept_vectors=True)
    count = min(options.questions // 2, len(model.kg.test))
    rows = np.sort(np.random.default_rng(0).choice(len(model.kg.test), count, replace=False))
    clock = Clock()
    report = evaluate(model, model.kg, "test", rows=rows)
    times = {f"{name}_s": seconds for name, seconds in report.seconds.items()}
    return {"questions": 2 * count, **clock.figures(), **times, **gpu_memory()}


def prepare_run(options: argparse.Namespace) -> Figures:
    """Index, search over names and probabilities, from the vectors of `encode`."""
    run, model = open_run(options, kept_vectors=True)
    shutil.rmtree(run.folder / "index", ignore_errors=True)
    clock = Clock()
    engine = prepare(run.folder, model, options.index)
    assert engine.retriever.vectors is not None
    facts = engine.retriever.vectors.index.facts
    return {"index": options.index, **clock.figures(), "gib": size_gib(run.folder / "index"), **facts}


def ask(options: argparse.Namespace) -> Figures:
    """Opening the run, then single questions one after the other."""
    clock = Clock()
    completer = Completer.load(options.folder / "run", options.device)
    opened = clock.figures("open_")
    kg, times = completer.kg, []
    for head, relation, _ in kg.train[np.random.default_rng(1).choice(len(kg.train), options.asked + 5)].tolist():
        clock = Clock()
        completer.tails(kg.entities.id(head), kg.relations.id(relation), k=10)
        times.append([1000 * seconds for seconds in clock.figures().values()])
    median, late = np.quantile(times[5:], [0.5, 0.95], axis=0)
    figures = {"median_ms": median[0], "median_cpu_ms": median[1], "p95_ms": late[0], "p95_cpu_ms": late[1]}
    return {"index": index_kind(options.folder / "run"), **opened, **figures}


def propose(options: argparse.Namespace) -> Figures:
    """The missing triples of relations that make about --proposed questions, and what all relations would take."""
    completer = Completer.load(options.folder / "run", options.device)
    kg = completer.kg
    sizes = np.zeros(kg.num_relations, np.int64)  # questions of each relation: of its heads and of its tails
    for column in (0, 2):
        pairs = np.unique(kg.train[:, 1].astype(np.int64) * kg.num_entities + kg.train[:, column])
        sizes += np.bincount(pairs // kg.num_entities, minlength=kg.num_relations)
    chosen = np.argsort(np.abs(sizes - options.proposed))[:1]  # the relation that has about so many
    (out := options.folder / "proposals.tsv").unlink(missing_ok=True)
    clock = Clock()
    count = completer.propose(out, 1000, [kg.relations.id(int(r)) for r in chosen], second_answers=True)
    took, asked = clock.figures(), int(sizes[chosen].sum())
    return {
        "questions": asked,
        **took,
        "proposals": count,
        "questions_per_s": asked / took["s"],
        "questions_of_all_relations": int(sizes.sum()),
        "hours_of_all_relations": sizes.sum() / asked * took["s"] / 3600,
    }


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "make": make,
    "import": import_graph,
    "inspect": inspect,
    "train": train,
    "validate": validate,
    "encode": encode,
    "rank": rank,
    "prepare": prepare_run,
    "ask": ask,
    "propose": propose,
}


def open_run(options: argparse.Namespace, kept_vectors: bool = False) -> tuple[RunFolder, TextModel]:
    """The trained run with the tokens that `train` kept, and the vectors that `encode` kept."""
    run = RunFolder.load(options.folder / "run")
    tokenizer = load_tokenizer(str(run.folder / "model" / "tokenizer"), run.config.model.encoder)
    tokens = Tokens.open(options.folder / "tokens.safetensors")
    model: Any = run.model(options.device, texts=Texts(run.kg, tokenizer, run.config.model.text, tokens))
    if kept_vectors:
        vectors = np.load(options.folder / "vectors.npy", mmap_mode="r")
        model.encode_entities = lambda entities, new=(), *, progress=False: np.array(vectors[entities])
    return run, model


def operations(model: TextModel, lengths: np.ndarray) -> float:
    """Multiplications and additions of a forward pass over texts of these lengths."""
    encoder = model.towers.entity.model.encoder
    weights = sum(parameter.numel() for parameter in encoder.parameters())
    layers = len(encoder.layer)
    return float(2 * weights * lengths.sum() + 4 * layers * model.dim * (lengths.astype(np.float64) ** 2).sum())


def matrix_rate(device: torch.device) -> float:
    """Operations a second of a large matrix product, as the encoder's are."""
    gpu = device.type == "cuda"
    size = 8192 if gpu else 1536
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16 if gpu else torch.float32) for _ in range(2))
    best = 0.0
    for _ in range(8):
        began = time.perf_counter()
        a @ b
        if gpu:
            torch.cuda.synchronize(device)
        best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best


def gpu_memory() -> Figures:
    """The most that tensors took, where there is a GPU."""
    return {"gpu_gib": torch.cuda.max_memory_allocated() / 2**30} if torch.cuda.is_available() else {}


def size_gib(folder: Path) -> float:
    """Of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**30


def satkgc(*arguments: str) -> None:
    """A command as a person would run it, in the place of this process."""
    with Path(os.devnull).open("w") as nothing:
        subprocess.run([sys.executable, "-m", "satkgc", *arguments], check=True, stdout=nothing)


def main() -> None:
    """Parse, run the parts that are wanted, print what the folder has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--folder", type=Path, help="where everything is kept; without it, a temporary one")
    add("--part", nargs="+", choices=list(PARTS), help="these anew; without it all that have no figures yet")
    add("--tiny", action="store_true", help="a thousandth of the size")
    add("--entities", type=int, default=4_594_485)
    add("--relations", type=int, default=822)
    add("--triples", type=int, default=20_624_575)
    add("--words", type=int, nargs=2, default=(20, 60), help="of a description, at least and at most [20 60]")
    add("--memory", type=float, help="GiB for an import by way of the disk; without it as satkgc decides")
    add("--recipe", default="satkgc-adjusted")
    add("--backbone", default="minilm", help="minilm, or the folder of a language model")
    add("--device", default="auto")
    add("--steps", type=int, default=60, help="of training")
    add("--batch", type=int, help="samples of a step; without it the recipe's")
    add("--validation", type=int, default=1000, help="triples of a validation")
    add("--candidates", type=int, help="of a validation; without it as in training")
    add("--encode", type=int, help="entities to encode; without it all")
    add("--questions", type=int, default=10_000, help="ranked among all entities")
    add("--index", default="exact", choices=["exact", "faiss"])
    add("--asked", type=int, default=100, help="single questions")
    add("--proposed", type=int, default=5_000, help="questions asked for proposals, at most, about")
    add("--json", action="store_true", help="print JSON alone, which is what is printed in any case")
    add("--inside", choices=list(PARTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.whole_triples = 20_614_279
    if options.tiny:
        small = {"entities": 600, "triples": 3_000, "relations": 8, "steps": 4, "batch": 16, "validation": 20}
        small |= {"encode": 200, "questions": 100, "asked": 20, "proposed": 200}
        for name, value in small.items():
            setattr(options, name, value)
    if options.inside:
        print(json.dumps(PARTS[options.inside](options), default=float))
        return
    with tempfile.TemporaryDirectory() as scratch:
        options.folder = options.folder or Path(scratch)
        print(json.dumps(run_parts(options), indent=1))


def run_parts(options: argparse.Namespace) -> Figures:
    """Each in a process of its own; what they found is kept after every one."""
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "pipeline.json"
    result: Figures = json.loads(file.read_text()) if file.exists() else {"parts": {}}
    sizes = ("entities", "relations", "triples", "words", "recipe", "backbone", "device")
    result |= {name: getattr(options, name) for name in sizes} | {"cores": os.cpu_count()}
    if find_device(options.device).type == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    result["commit"] = git.stdout.strip() or result.get("commit", "")
    for part in options.part or [part for part in PARTS if part not in result["parts"]]:
        print(f"{part} …", file=sys.stderr, flush=True)
        before = os.getloadavg()[0]
        arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
        command = [sys.executable, __file__, *arguments, "--folder", str(options.folder), "--inside", part]
        output, process = measured(command)
        result["parts"][part] = json.loads(output.splitlines()[-1]) | {"process": process | {"load_before": before}}
        file.write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result["parts"][part]), file=sys.stderr, flush=True)
    result["peak_gib"] = max(part["process"]["peak_gib"] for part in result["parts"].values())
    return result


if __name__ == "__main__":
    main()
