"""Attention on a padded table equals attention of each text alone, written out."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from satkgc.models.text import attention
from satkgc.models.text.attention import attend, plan_attention
from satkgc.models.text.packed import Packed

sys.path.insert(0, str(Path(__file__).parent))
from tiny import random_batch

HEADS, SIZE = 3, 4


def model_with(bias: torch.Tensor | None):  # type: ignore[no-untyped-def]
    """As much of a model as attention looks at; a bias is given by its bucket of relative position."""
    kind = "bert" if bias is None else "mpnet"
    encoder = SimpleNamespace(
        relative_attention_bias=None if bias is None else torch.nn.Embedding.from_pretrained(bias, freeze=False),
        relative_position_bucket=lambda distance, num_buckets: distance.clamp(-10, 10) + 10,
    )
    return SimpleNamespace(config=SimpleNamespace(model_type=kind, num_attention_heads=HEADS), encoder=encoder)


@pytest.mark.parametrize("biased", [True, False])
def test_each_text_attends_to_itself(biased: bool) -> None:
    torch.manual_seed(0)
    packed = Packed.of(random_batch(texts=5, longest=9), round_tokens=16, round_width=8)
    bias = torch.randn(32, HEADS) if biased else None
    how = plan_attention(packed, model_with(bias), 0.0, torch.float32, "auto")
    qkv = torch.randn(len(packed.ids), 3 * HEADS * SIZE)
    found = attend(qkv, how, torch.tensor(0))
    starts = packed.starts.tolist()
    for first, last in pairwise(starts):
        q, k, v = qkv[first:last].view(-1, 3, HEADS, SIZE).permute(1, 2, 0, 3)
        scores = q @ k.transpose(1, 2) / SIZE**0.5
        if bias is not None:
            at = torch.arange(last - first)
            scores = scores + bias[(at[None, :] - at[:, None]).clamp(-10, 10) + 10].permute(2, 0, 1)
        expected = (scores.softmax(-1) @ v).transpose(0, 1).reshape(last - first, -1)
        assert torch.allclose(found[first:last], expected, atol=1e-5)


def test_which_kernel(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert not attention.fused_here(torch.device("cpu"))
    packed = Packed.of(random_batch(longest=9))
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "auto").fused
    monkeypatch.setattr(attention, "fused_here", lambda device: True)
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "sdpa").fused
    monkeypatch.setattr(attention, "LONGEST", 8)
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "auto").fused
