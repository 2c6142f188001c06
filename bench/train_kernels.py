"""The parts of a training step alone on a GPU: how fast its matrix products are, and which attention settings win."""

from __future__ import annotations

import sys
from typing import Any

import torch


def sweep(device: torch.device, tokens: int = 131_072, dim: int = 768, heads: int = 12) -> dict[str, Any]:
    """Time them at the sizes of a large batch and print a table to stderr."""
    results = {"matrix_products": products(device, tokens, dim), "attention_ms": attention(device, tokens, dim, heads)}
    for name, figures in results.items():
        for key, value in figures.items():
            print(f"{name:18} {key:40} {value}", file=sys.stderr)
    return results


def products(device: torch.device, tokens: int, dim: int) -> dict[str, Any]:
    """A layer's four linear maps, forward and backward, in bfloat16: TFLOP/s of each and of all."""
    rates, total, work = {}, 0.0, 0.0
    for name, wide, narrow in (("qkv", 3 * dim, dim), ("out", dim, dim), ("up", 4 * dim, dim), ("down", dim, 4 * dim)):
        x = torch.randn(tokens, narrow, device=device, dtype=torch.bfloat16)
        w = torch.randn(wide, narrow, device=device, dtype=torch.bfloat16)
        g = torch.randn(tokens, wide, device=device, dtype=torch.bfloat16)
        each = {"y": (lambda x=x, w=w: x @ w.T), "dx": (lambda g=g, w=w: g @ w), "dw": (lambda g=g, x=x: g.T @ x)}
        for part, product in each.items():
            ms, operations = _time(product), 2.0 * tokens * wide * narrow
            rates[f"{name} {part} TFLOP/s"] = round(operations / ms / 1e9, 0)
            total, work = total + ms, work + operations
    return {**rates, "all TFLOP/s": round(work / total / 1e9, 0), "ms a layer": round(total, 3)}


def attention(device: torch.device, tokens: int, dim: int, heads: int) -> dict[str, Any]:
    """The fused kernel forward and backward, with bias and dropout, for several launch settings."""
    from satkgc.models.text import fused_attention as kernel

    lengths = torch.randint(30, 51, (tokens // 40,))
    starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)]).int().to(device)
    qkv = torch.randn(int(lengths.sum()), 3 * dim, device=device, dtype=torch.bfloat16)
    bias = torch.randn(heads, 64, 64, device=device)
    seed = torch.tensor(1, dtype=torch.int32, device=device)
    grad = torch.randn(len(qkv), dim, device=device, dtype=torch.bfloat16)
    settings = (starts, bias, seed, heads, 64, 0.1)
    before = kernel.WARPS, kernel.STAGES, kernel.PROGRAMS
    results = {}
    for warps in (4, 8):
        for stages in (1, 2, 3):
            for programs in (1056, 4224):
                kernel.WARPS, kernel.STAGES, kernel.PROGRAMS = warps, stages, programs
                forward = _time(lambda: kernel.packed_attention(qkv, *settings))
                backward = _time(lambda: kernel.packed_attention_backward(grad, qkv, *settings))
                results[f"warps {warps} stages {stages} programs {programs}"] = (round(forward, 3), round(backward, 3))
    kernel.WARPS, kernel.STAGES, kernel.PROGRAMS = before
    moved = 2 * qkv.numel() / 3 / 4.3e9  # bytes of one (T, dim) array over the memory's rate, in ms
    results["memory floor, forward and backward"] = (round(4 * moved, 3), round(7 * moved, 3))
    return results


def _time(run: Any, repeats: int = 10) -> float:
    """Milliseconds, the median of several runs after two to warm up."""
    times = []
    for i in range(repeats + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(start.elapsed_time(end))
    return sorted(times)[len(times) // 2]
