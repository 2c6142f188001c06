"""The fused kernel against attention written out in float64; without a GPU, in Triton's interpreter."""

from __future__ import annotations

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton", reason="the fused kernel needs Triton")

from satkgc.models.text.fused_attention import packed_attention, tile
from satkgc.models.text.transformer import scramble, threshold

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = [5, 1, 9, 16, 3, 30]


def written_out(qkv, bias, seed, heads: int, side: int, dropout: float):  # type: ignore[no-untyped-def]
    """Text after text: softmax(q kᵀ / √d + bias) v, with the kernel's own dropout mask."""
    size, outputs, start = qkv.shape[1] // 3 // heads, [], 0
    for text, length in enumerate(LENGTHS):
        q, k, v = qkv[start : start + length].view(length, 3, heads, size).permute(1, 2, 0, 3)
        scores = q @ k.transpose(1, 2) * size**-0.5
        if bias is not None:
            scores = scores + bias[:, :length, :length]
        weights = scores.softmax(-1)
        if dropout:
            at = torch.arange(length, device=qkv.device)
            first = (text * heads + torch.arange(heads, device=qkv.device)) * side**2
            place = first[:, None, None] + at[:, None] * side + at
            weights = weights * (scramble(place.int(), seed) >= threshold(dropout)) / (1 - dropout)
        outputs.append((weights @ v).transpose(0, 1).reshape(length, heads * size))
        start += length
    return torch.cat(outputs)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"), [("float32", 32, 1e-5), ("float16", 24, 1e-2), ("bfloat16", 64, 5e-2)]
)
def test_equals_attention_written_out(dtype: str, size: int, tolerance: float, biased: bool, dropout: float) -> None:
    if dtype == "bfloat16" and DEVICE == "cpu":
        pytest.skip("the interpreter has no bfloat16 products")
    torch.manual_seed(0)
    heads, side = 2, tile(max(LENGTHS))
    starts = torch.tensor([0, *LENGTHS]).cumsum(0).int().to(DEVICE)
    qkv = torch.randn(sum(LENGTHS), 3 * heads * size, device=DEVICE, dtype=getattr(torch, dtype)).requires_grad_()
    bias = torch.randn(heads, side, side, device=DEVICE).requires_grad_() if biased else None
    seed = torch.tensor(12345, dtype=torch.int32, device=DEVICE)
    out = packed_attention(qkv, starts, bias, seed, heads, side, dropout)
    grad = torch.randn_like(out)
    out.backward(grad)
    exact = qkv.detach().double().requires_grad_()
    exact_bias = None if bias is None else bias.detach().double().requires_grad_()
    expected = written_out(exact, exact_bias, seed, heads, side, dropout)
    expected.backward(grad.double())
    assert (out - expected).abs().max() < tolerance
    assert (qkv.grad - exact.grad).abs().max() < tolerance * 10
    if bias is not None and exact_bias is not None:
        assert (bias.grad - exact_bias.grad).abs().max() < tolerance * 10
        assert bias.grad.abs().max() > 0.1
