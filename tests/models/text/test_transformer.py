"""Attention on a padded table equals that of each text alone, written out; compiled layers do what plain ones do."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

from satkgc.models import EncoderConfig, Towers
from satkgc.models.text import transformer
from satkgc.models.text.packed import Packed
from satkgc.models.text.towers import normalize
from satkgc.models.text.transformer import attend, plan_attention, scramble, threshold, transformer_layer
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
    plan = plan_attention(packed, model_with(bias), 0.0, torch.float32, "auto")
    qkv = torch.randn(len(packed.ids), 3 * HEADS * SIZE)
    attended = attend(qkv, plan, torch.tensor(0))
    starts = packed.starts.tolist()
    for first, last in pairwise(starts):
        q, k, v = qkv[first:last].view(-1, 3, HEADS, SIZE).permute(1, 2, 0, 3)
        scores = q @ k.transpose(1, 2) / SIZE**0.5
        if bias is not None:
            at = torch.arange(last - first)
            scores = scores + bias[(at[None, :] - at[:, None]).clamp(-10, 10) + 10].permute(2, 0, 1)
        expected = (scores.softmax(-1) @ v).transpose(0, 1).reshape(last - first, -1)
        assert torch.allclose(attended[first:last], expected, atol=1e-5)


def test_which_kernel(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert not transformer.has_fused_kernel(torch.device("cpu"))
    packed = Packed.of(random_batch(longest=9))
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "auto").fused
    monkeypatch.setattr(transformer, "has_fused_kernel", lambda device: True)
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "sdpa").fused
    monkeypatch.setattr(transformer, "LONGEST", 8)
    assert not plan_attention(packed, model_with(None), 0.0, torch.float32, "auto").fused


def test_compiled_layers_drop_the_same_with_and_without_gradients(families) -> None:  # type: ignore[no-untyped-def]
    torch.compiler.reset()
    counter = CompileCounter()  # records the graphs and runs them as they are
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), dropout=0.2, tied=True))
    towers.query._layer, towers.query.compile_when = torch.compile(transformer_layer, backend=counter), "on"
    batch = random_batch(types=False)
    plain = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), tied=True)).eval()
    assert torch.allclose(normalize(towers.eval().query(batch)), normalize(plain.query(batch)), atol=1e-6)
    torch.compiler.reset()
    towers.train()
    runs = []
    for seed, grad in ((1, True), (1, False), (2, False)):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(grad):
            runs.append(towers.query(batch).detach())
    assert torch.equal(runs[0], runs[1])
    assert (runs[0] - runs[2]).abs().max() > 1e-3
    graphs = counter.frame_count
    assert graphs <= 4, "evaluation, training, training without gradients; all layers share them"
    for texts in (4, 12, 7):
        towers.query(random_batch(texts=texts, types=False))
    assert counter.frame_count == graphs, "other sizes must not compile again"


def test_compiled_layers_keep_only_what_matrix_products_made(families) -> None:  # type: ignore[no-untyped-def]
    torch.compiler.reset()
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), dropout=0.2, tied=True)).train()
    backend = "aot_eager_decomp_partition"  # divides the graph as the real one does, and runs it as it is
    towers.query._layer, towers.query.compile_when = torch.compile(transformer_layer, backend=backend), "on"
    batch, config = random_batch(types=False), towers.query.model.config
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 2 and len(tensor) == len(batch.ids):
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        towers.query(batch)
    widths = sum(kept.values()) / (4 * config.hidden_size * len(batch.ids) * config.num_hidden_layers)
    # x, 3 of q, k, v, what attention gave and its projection, the inner layer before GELU, the projection of it.
    inner = config.intermediate_size / config.hidden_size
    assert widths < 7 + inner


def test_compiled_dropout_is_a_fair_coin() -> None:
    place = torch.arange(1 << 18, dtype=torch.int32)
    streams = [scramble(place, torch.tensor(seed, dtype=torch.int32)) for seed in (0, 1, 2**30)]
    for numbers in streams:
        assert np.histogram(numbers, 16, (-(2**31), 2**31))[0].std() < 4 * (len(place) / 16) ** 0.5
        for p in (0.1, 0.5):
            assert (numbers < threshold(p)).double().mean() == pytest.approx(p, abs=0.003)
    dropped = [numbers < threshold(0.1) for numbers in streams]
    together = torch.stack([*dropped, *(dropped[0].roll(places) for places in (1, 2, 256, 768))]).double()
    assert (torch.corrcoef(together) - torch.eye(7)).abs().max() < 0.01
