"""Where each token of a packed batch belongs, by brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.models.text.packed import Packed
from satkgc.text import TokenBatch
from tiny import random_batch


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


def test_moving_keeps_everything() -> None:
    packed = Packed.of(random_batch(), round_tokens=64)
    moved = packed.to("meta")
    assert moved.ids.device.type == "meta"
    assert moved.types is not None
    assert moved.types.device.type == "meta"
    assert (moved.count, moved.width, moved.tokens) == (packed.count, packed.width, packed.tokens)
    assert [tensor.shape for tensor in (moved.ids, moved.starts)] == [packed.ids.shape, packed.starts.shape]
