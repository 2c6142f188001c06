"""How long a training step takes, what it waits for, and what share of the GPU's matrix rate that is.

    python bench/train_step.py --json --backbone FOLDER --graph WN18RR --graph FB15k-237      # one GPU
    python bench/train_step.py --tiny                                                         # any machine, seconds
    python bench/train_step.py --backbone FOLDER --graph WN18RR --profile --sweep             # where the time goes

Every variant trains on the batches that the recipe's sampler draws, texts and masks prepared on other threads:

    baseline   three padded passes a step (query, tail, head) of the library's eager forward, as the authors' program
               has it. The whole batch does not fit one GPU that way, so it goes in shares of --share samples, their
               gradients added up, where the authors have several GPUs.
    packed, packed-sdpa, sdpa, compiled
               two passes over real tokens, equal texts once. Attention by the fused kernel (packed, compiled) or by
               torch's own on padded texts (…sdpa); layer by layer (packed…) or compiled (sdpa, compiled). Without a GPU
               the kernel is torch's own and nothing is compiled.
    polynomial-gelu
               compiled, with a polynomial in the place of torch's error function: within 3e-5 of it, and cheaper
    chunked    compiled, with gradient caching in chunks of --chunk-tokens tokens
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from satkgc.kg import KnowledgeGraph
from satkgc.models import ContrastiveLoss, EncoderConfig, LossConfig, StepContext, TextModel, load_tokenizer
from satkgc.models.text import transformer
from satkgc.models.text.towers import normalize
from satkgc.processes import Processes
from satkgc.sampling import Batch, Stream, make_sampler
from satkgc.text import Texts
from satkgc.training import Config, make_config
from satkgc.training.state import clip, make_optimizer

PEAK = 790e12  # bfloat16 operations a second that large matrix products reach on an H200
VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {"forward": "padded", "compile": "off"},
    "packed": {"compile": "off"},
    "packed-sdpa": {"attention": "sdpa", "compile": "off"},
    "sdpa": {"attention": "sdpa"},
    "compiled": {},
    "polynomial-gelu": {},
    "chunked": {},
}


def main() -> None:
    """Measure the variants asked for on each graph and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", help="a graph's name or folder; may be repeated")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--random", action="store_true", help="random weights in the backbone's shape: as fast")
    parser.add_argument("--recipe", default="satkgc")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--batch-size", type=int, help="instead of the graph's own")
    parser.add_argument("--chunk-tokens", type=int, default=40_960)
    parser.add_argument("--share", type=int, default=256, help="samples of a baseline pass")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true", help="wordnet-sample, a random two-layer MPNet, two steps")
    parser.add_argument("--profile", action="store_true", help="kernel times of the compiled variant, to stderr")
    parser.add_argument("--sweep", action="store_true", help="matrix products and attention kernels alone, to stderr")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, Any] = {"device": _device(options.device), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        if options.tiny:
            options.graph, options.steps, options.warmup, options.share = ["wordnet-sample"], 2, 1, 16
            options.batch_size, options.chunk_tokens = options.batch_size or 32, 256
        figures["backbone"] = Path(options.backbone).name
        if options.tiny or options.random:
            options.backbone = random_backbone(options.backbone, options.tiny, folder)
            figures["backbone"] = "random two-layer MPNet" if options.tiny else f"random {figures['backbone']}"
        figures["graphs"] = {}
        for graph in options.graph or ["WN18RR", "FB15k-237"]:
            results = measure(graph, options)
            figures["graphs"][results.pop("graph")] = results
    if options.sweep:
        from train_kernels import sweep

        figures["sweep"] = sweep(torch.device(options.device))
    print(json.dumps(figures, indent=None if options.json else 2))


def measure(graph: str, options: argparse.Namespace) -> dict[str, Any]:
    """All variants on one graph, ratios against the baseline timed beside them."""
    kg = KnowledgeGraph.load(graph)
    overrides: dict[str, Any] = {"model.encoder.backbone": options.backbone}
    if options.batch_size:
        overrides["sampling.batch_size"] = options.batch_size
    config = make_config(options.recipe, benchmark=kg.benchmark or kg.name, overrides=overrides)
    began = time.perf_counter()
    texts = Texts(kg, load_tokenizer(options.backbone, config.model.encoder), config.model.text)
    results: dict[str, Any] = {
        "graph": kg.name,
        "batch": config.sampling.batch_size,
        "tokenising_s": round(time.perf_counter() - began, 2),
        "variants": {},
    }
    for name in options.variants.split(","):
        try:
            with polynomial_gelu() if name == "polynomial-gelu" else nullcontext():
                variant = Variant(name, kg, texts, config, options)
                results["variants"][name] = variant.time(options)
                if options.profile and name == "compiled":
                    results["kernels"] = variant.profile()
        except torch.OutOfMemoryError as error:
            results["variants"][name] = {"out_of_memory": str(error).splitlines()[0]}
        variant = None  # type: ignore[assignment]
        torch.compiler.reset()
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
        print(f"{kg.name} {name}: {json.dumps(results['variants'][name])}", file=sys.stderr)
    base = results["variants"].get("baseline", {}).get("s_per_step")
    for figures in results["variants"].values():
        if base and "s_per_step" in figures:
            figures["times_baseline"] = round(base / figures["s_per_step"], 2)
    return results


class Variant:
    """A model, its optimizer and a stream of prepared batches, set up one way."""

    def __init__(
        self, name: str, kg: KnowledgeGraph, texts: Texts, config: Config, options: argparse.Namespace
    ) -> None:
        self.name, self.kg, self.texts, self.config = name, kg, texts, config
        self.device = torch.device(options.device)
        self.share, self.workers = options.share, options.workers
        torch.manual_seed(0)
        chunk = {"chunk_tokens": options.chunk_tokens} if name == "chunked" else {}
        encoder = config.model.encoder.replace(**VARIANTS[name], **chunk)
        model = TextModel(kg, config.model.replace(encoder=encoder), texts=texts)
        self.model = model.to(self.device).train()
        self.towers = self.model.towers
        self.optimizer = make_optimizer(self.model, config.training)
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        precision = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.context = StepContext(0, precision, Processes(device=self.device))
        self.model.prepare_training(self.context)
        self.share_loss = ContrastiveLoss(LossConfig(self_negatives=False), kg).to(self.device)

    def step(self, item: Any) -> None:
        """One whole training step."""
        if self.name == "baseline":
            self.backward_in_shares(item)
        else:
            self.model.backward(item, self.context)
        clip(self.trained, self.config.training.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def prepare(self, batch: Batch) -> Any:
        """What a step takes, made on another thread."""
        if self.name != "baseline":
            return self.model.collate(batch)
        heads, relations, tails = batch.heads, batch.relations, batch.tails
        shares = []
        for at in range(0, len(heads), self.share):
            part = slice(at, at + self.share)
            passes = (
                self.texts.queries(heads[part], relations[part], exclude=tails[part]),
                self.texts.entities(tails[part], exclude=heads[part]),
                self.texts.entities(heads[part], exclude=tails[part]),
            )
            shares.append([self.towers.pack(tokens) for tokens in passes])
        return shares

    def backward_in_shares(self, shares: Iterable[Any]) -> None:
        """Three passes and a loss for each share of the batch, which needs no masks to take as long."""
        none = torch.empty(0, dtype=torch.int64, device=self.device)
        for queries, tails, heads in shares:
            with self.context.autocast():
                vectors = self.towers.query(queries), self.towers.entity(tails), self.towers.entity(heads)
            q, t, h = map(normalize, vectors)
            ids = torch.zeros(len(q), dtype=torch.int64, device=self.device)
            batch: Any = types.SimpleNamespace(heads=ids, tails=ids, hops=None, masked_rows=none, masked_columns=none)
            loss, _ = self.share_loss(q, t, batch)
            (loss + (q * h).sum(1).exp().mean()).backward()  # the head is one more negative

    def time(self, options: argparse.Namespace) -> dict[str, Any]:
        """Seconds a step, the share of them spent waiting for data, peak memory and the matrix rate."""
        steps = max(1, options.steps // 3) if self.name == "baseline" else options.steps
        stream = self.stream(options.warmup + steps)
        with stream:
            began = time.perf_counter()
            for _ in range(options.warmup):
                self.step(next(stream))
            self.wait()
            start, waited = time.perf_counter(), stream.waited
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            work = 0.0
            for item in stream:
                work += self.operations(item)
                self.step(item)
            self.wait()
            total = time.perf_counter() - start
            waited = stream.waited - waited
        rate = work / total
        tokens = self.tokens(item)
        return {
            "s_per_step": round(total / steps, 4),
            "start_s": round(start - began, 1),
            "data_wait_share": round(waited / total, 4),
            "peak_gb": round(self.peak(), 2),
            "tokens": sum(tokens),
            "mean_query_tokens": round(tokens[0] / self.texts_in(item)[0], 1),
            "mean_entity_tokens": round(tokens[1] / self.texts_in(item)[1], 1),
            "tflops": round(rate / 1e12, 1),
            "share_of_peak": round(rate / PEAK, 4),
        }

    def profile(self, steps: int = 3) -> dict[str, Any]:
        """Where the GPU's time goes, by kind of kernel; the longest kernels go to stderr."""
        from torch.profiler import ProfilerActivity, profile

        with self.stream(steps + 1) as stream:
            self.step(next(stream))
            self.wait()
            gpu = self.device.type == "cuda"
            with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * gpu) as profiler:
                for item in stream:
                    self.step(item)
                self.wait()
        averages = profiler.key_averages()
        print(averages.table(sort_by="self_device_time_total", row_limit=30, max_name_column_width=90), file=sys.stderr)
        kinds: dict[str, float] = {}
        for event in averages:
            if event.device_type != torch.autograd.DeviceType.CPU:
                kind = _kind(event.key)
                kinds[kind] = kinds.get(kind, 0.0) + event.self_device_time_total / 1e3 / steps
        ordered = sorted(kinds.items(), key=lambda pair: -pair[1])
        return {"ms_per_step": {kind: round(ms, 2) for kind, ms in ordered}}

    def stream(self, steps: int) -> Stream[Any]:
        """Prepared batches of the recipe's sampler."""
        sampler = make_sampler(self.kg, self.config.sampling, 0, self.model.needs)
        return Stream(sampler, 0, steps, self.prepare, workers=self.workers, depth=4)

    def wait(self) -> None:
        """Until the GPU has done everything."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def peak(self) -> float:
        """Gigabytes: of the GPU, or of the process."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated() / 1e9
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    def passes(self, item: Any) -> Iterator[tuple[int, Any]]:
        """The (tower, texts) pairs of a prepared batch."""
        if self.name == "baseline":
            yield from ((tower, share[n]) for share in item for n, tower in ((0, 0), (1, 1), (2, 1)))
        else:
            yield from ((int(not chunk.queries), chunk.packed) for chunk in item.chunks[0])

    def tokens(self, item: Any) -> list[int]:
        """Real tokens of queries and of entities."""
        return [sum(p.tokens for tower, p in self.passes(item) if tower == which) for which in (0, 1)]

    def texts_in(self, item: Any) -> list[int]:
        """Texts of queries and of entities."""
        return [sum(len(p) for tower, p in self.passes(item) if tower == which) for which in (0, 1)]

    def operations(self, item: Any) -> float:
        """Multiplications and additions that forward and backward need for the real tokens; recomputing adds none."""
        c = self.towers.query.model.config
        total = 0.0
        for _, p in self.passes(item):
            lengths = p.starts[: len(p) + 1].diff().double()
            linear = 2 * (4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size) * float(lengths.sum())
            attention = 4 * c.hidden_size * float((lengths**2).sum())
            total += 3 * c.num_hidden_layers * (linear + attention)
        return total


def random_backbone(backbone: str, tiny: bool, folder: str) -> str:
    """A folder with random weights in a backbone's shape, or a two-layer MPNet's, and the backbone's tokenizer."""
    from transformers import AutoConfig, AutoModel, MPNetConfig

    load_tokenizer(backbone, EncoderConfig()).save_pretrained(folder)
    shape = MPNetConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
    config = shape if tiny else AutoConfig.from_pretrained(backbone)
    AutoModel.from_config(config).save_pretrained(folder)
    return folder


def polynomial_gelu() -> AbstractContextManager[Any]:
    """Inside, the transformer's GELU is the polynomial's."""
    functions = types.ModuleType("functional")
    vars(functions).update(vars(torch.nn.functional))
    functions.gelu = PolynomialGelu.apply  # type: ignore[attr-defined]
    return mock.patch.object(transformer, "functional", functions)


class PolynomialGelu(torch.autograd.Function):
    """x Φ(x), whose gradient is Φ(x) + x φ(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """x Φ(x)."""
        ctx.save_for_backward(x)
        return (x.float() * _normal(x.float())[1]).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Its slope."""
        (x,) = ctx.saved_tensors
        density, below = _normal(x.float())
        return (grad.float() * (below + x.float() * density)).to(x.dtype)


def _normal(x: Tensor) -> tuple[Tensor, Tensor]:
    """φ and Φ. Φ is the sigmoid of an odd polynomial, fitted so that x Φ is within 3e-5 of GELU and its gradient within
    1.2e-4; in powers of two and roots, for which GPUs have instructions."""
    square = (x * x).clamp(max=36.0)
    root = torch.rsqrt(1 + torch.exp2(x * ((1.01426909e-3 * square - 0.106775763) * square - 2.30112130)))
    below = root * root
    slope = (-3.51518882e-3 * square + 0.222033958) * square + 1.59501574  # of the polynomial, in powers of e
    return below * (1 - below) * slope, below


KINDS: list[tuple[str, Callable[[str], bool]]] = [
    ("attention kernel", lambda name: name in ("_forward", "_backward") or "fmha" in name or "attention" in name),
    ("matrix products", lambda name: any(s in name for s in ("gemm", "cutlass", "nvjet", "xmma", "splitK"))),
    ("optimizer and clip", lambda name: "multi_tensor" in name or "FusedAdam" in name or "adamw" in name.lower()),
    ("compiled elementwise", lambda name: name.startswith("triton_")),
    ("embeddings", lambda name: "embedding" in name.lower() or "segment" in name or "Sort" in name),
    ("copies", lambda name: "Memcpy" in name or "Memset" in name),
]


def _kind(name: str) -> str:
    return next((kind for kind, matches in KINDS if matches(name)), "other")


def _device(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    main()
