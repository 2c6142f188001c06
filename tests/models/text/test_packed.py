"""Where each token of a packed batch belongs, and pooling over it, by brute force."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.models.text.packed import Packed
from satkgc.models.text.pooling import pool_packed, pool_padded

sys.path.insert(0, str(Path(__file__).parent))
from tiny import random_batch

from satkgc.text import TokenBatch


def batch_of(lengths: list[int], types: bool) -> TokenBatch:
    """Sequences of these lengths; token ids count up from one."""
    ptr = np.cumsum([0, *lengths])
    ids = np.arange(1, ptr[-1] + 1, dtype=np.int32)
    return TokenBatch(ids, ptr, (ids % 2).astype(np.uint8) if types else None)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 9), max_size=8), st.booleans(), st.sampled_from([1, 16, 64]), st.sampled_from([1, 8]))
def test_every_token_has_its_place(lengths: list[int], types: bool, tokens: int, width: int) -> None:
    batch = batch_of(lengths, types)
    packed = Packed.of(batch, round_tokens=tokens, round_width=width)
    assert len(packed) == len(lengths)
    assert packed.tokens == sum(lengths)
    assert len(packed.ids) % tokens == 0
    assert len(packed.ids) < packed.tokens + tokens
    assert packed.width % width == 0
    assert max([1, *lengths]) <= packed.width < max([1, *lengths]) + width
    starts = packed.starts.tolist()
    assert starts[: len(lengths) + 1] == batch.ptr.tolist()
    assert starts[-1] == len(packed.ids)
    assert sorted(set(starts)) == starts, "no text is empty, made-up ones included"
    table = np.zeros(((len(starts) - 1), packed.width), np.int64)
    table.reshape(-1)[packed.slots.numpy()] = np.arange(len(packed.ids)) + 1
    for row in range(len(starts) - 1):
        expected = np.arange(starts[row], starts[row + 1]) + 1
        assert table[row, : len(expected)].tolist() == expected.tolist()
        assert not table[row, len(expected) :].any()
        assert packed.positions[starts[row] : starts[row + 1]].tolist() == list(range(len(expected)))
    assert packed.ids[: packed.tokens].tolist() == batch.ids.tolist()
    assert (packed.types is None) != types
    if packed.types is not None and batch.type_ids is not None:
        assert packed.types[: packed.tokens].tolist() == batch.type_ids.tolist()


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pooling(pooling: str) -> None:
    batch = random_batch(texts=6, longest=7)
    packed = Packed.of(batch, round_tokens=32)
    hidden = torch.randn(len(packed.ids), 5, generator=torch.manual_seed(0)).requires_grad_()
    padded = torch.full((len(batch), packed.width, 5), 99.0)  # what stands outside must not count
    inside = torch.zeros(padded.shape[:2], dtype=torch.bool)
    expected = []
    for row in range(len(batch)):
        own = hidden[batch.ptr[row] : batch.ptr[row + 1]].detach()
        padded[row, : len(own)], inside[row, : len(own)] = own, True
        one = {"mean": own.mean(0), "cls": own[0], "max": own.max(0).values}[pooling]
        expected.append(one / one.norm())
    found = pool_packed(hidden, packed, pooling)  # type: ignore[arg-type]
    assert torch.allclose(found, torch.stack(expected), atol=1e-6)
    assert torch.allclose(pool_padded(padded, inside, pooling), found, atol=1e-6)  # type: ignore[arg-type]
    found.sum().backward()
    assert hidden.grad is not None
    assert not hidden.grad[packed.tokens :].any(), "made-up tokens have no gradient"
    assert hidden.grad[: packed.tokens].any()


def test_moving_keeps_everything() -> None:
    packed = Packed.of(random_batch(), round_tokens=64)
    moved = packed.to("meta")
    assert moved.ids.device.type == "meta"
    assert moved.types is not None
    assert moved.types.device.type == "meta"
    assert (moved.count, moved.width, moved.tokens) == (packed.count, packed.width, packed.tokens)
    assert [tensor.shape for tensor in (moved.ids, moved.starts)] == [packed.ids.shape, packed.starts.shape]
