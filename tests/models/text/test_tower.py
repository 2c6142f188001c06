"""The packed forward computes what the library's padded one computes: vectors, gradients and all."""

from __future__ import annotations

import os

import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.models import EncoderConfig, Towers
from satkgc.models.text.packed import Packed
from satkgc.models.text.tower import pool_packed, pool_padded
from satkgc.models.text.towers import normalize
from tiny import FAMILIES, random_batch


def outcome(towers: Towers, batch, autocast: bool = False):  # type: ignore[no-untyped-def]
    """Vectors, and the gradients of every parameter for some loss."""
    towers.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        vectors = normalize(towers.query(batch))
    weights = torch.linspace(0, 9, vectors.numel()).sin().view(vectors.shape)
    (vectors * weights).sum().backward()
    return vectors.detach(), {n: p.grad.clone() for n, p in towers.named_parameters() if p.grad is not None}


def assert_close(result, expected, tolerance: float) -> None:  # type: ignore[no-untyped-def]
    """Within a tolerance of the largest gradient of the model; key biases have none but rounding."""
    assert (result[0] - expected[0]).abs().max() < tolerance
    assert result[1].keys() == expected[1].keys()
    largest = max(grad.abs().max() for grad in expected[1].values())
    for name, grad in expected[1].items():
        assert (result[1][name] - grad).abs().max() < tolerance * largest, name


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_librarys_forward(families, family: str, pooling: str) -> None:  # type: ignore[no-untyped-def]
    config = EncoderConfig(backbone=str(families[family]), pooling=pooling, tied=True)  # type: ignore[arg-type]
    packed = Towers.create(config).eval()
    padded = Towers.create(config.replace(forward="padded")).eval()
    assert packed.query.packed == (family != "deberta-v2"), "which families need no padding"
    assert not padded.query.packed
    # RoBERTa has one segment, and MPNet none.
    batch = random_batch(types=family in ("bert", "deberta-v2"))
    assert_close(outcome(packed, batch), outcome(padded, batch), 2e-6)


def test_position_bias_gets_its_gradient(families) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), tied=True)).eval()
    _, grads = outcome(towers, random_batch(types=False))
    name = "query.model.encoder.relative_attention_bias.weight"
    assert grads[name].abs().max() > 1e-4
    bias = dict(towers.named_parameters())[name]
    batch, at, step = random_batch(types=False), (17, 1), 1e-2
    weights = torch.linspace(0, 9, len(batch) * towers.dim).sin().view(len(batch), -1)
    ends = []
    with torch.no_grad():
        for sign in (1, -1):  # the derivative measured, not derived
            bias[at] += sign * step
            ends.append((normalize(towers.query(batch)) * weights).sum().double())
            bias[at] -= sign * step
    assert float(ends[0] - ends[1]) / (2 * step) == pytest.approx(float(grads[name][at]), rel=0.05)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_bfloat16_stays_near(families, family: str) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families[family]), tied=True)).eval()
    batch = random_batch(types=False)
    exact, rounded = outcome(towers, batch), outcome(towers, batch, autocast=True)
    assert rounded[0].dtype == torch.float32
    assert 1e-6 < (exact[0] - rounded[0]).abs().max() < 0.03
    assert all(grad.dtype == torch.float32 for grad in rounded[1].values())
    assert_close(rounded, exact, 0.1)


def test_a_text_does_not_see_its_neighbours(families) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]))).eval()
    batch = random_batch(types=False)
    alone = torch.cat([towers.entity(batch.select([row])) for row in range(len(batch))])
    assert torch.allclose(alone, towers.entity(batch), atol=1e-6)


def test_made_up_tokens_change_nothing(families) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families["bert"]), tied=True)).eval()
    batch = random_batch()
    rounded = Packed.of(batch, round_tokens=128, round_width=8)
    assert len(rounded.ids) % 128 == 0
    assert rounded.width % 8 == 0
    assert rounded.starts.diff().max() <= batch.lengths.max()
    assert_close(outcome(towers, rounded), outcome(towers, batch), 1e-6)


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_dropout_depends_on_the_random_state_alone(families, family: str) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families[family]), dropout=0.2)).train()
    batch = random_batch()
    runs = []
    for seed, grad in ((1, True), (1, False), (2, False)):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(grad):
            runs.append(towers.query(batch).detach())
    assert torch.equal(runs[0], runs[1])
    assert (runs[0] - runs[2]).abs().max() > 1e-3
    towers.eval()
    assert torch.equal(towers.query(batch), towers.query(batch))


def test_dropout_overrides_the_backbones(families) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families["bert"]), dropout=0.0)).train()
    batch = random_batch()
    assert torch.equal(towers.query(batch), towers.query(batch))


@pytest.mark.parametrize("forward", ["packed", "padded"])
@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_too_long_a_text_is_refused(families, family: str, forward: str) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families[family]), forward=forward))  # type: ignore[arg-type]
    towers.query(random_batch(longest=70, types=False))  # 72 positions, two before the first
    with pytest.raises(SatkgcError, match=r"set model\.text\.max_tokens to 70"):
        towers.query(random_batch(longest=71, types=False))


@pytest.mark.skipif(not os.path.isdir(os.environ.get("SATKGC_MPNET", "")), reason="SATKGC_MPNET names no folder")
def test_the_real_mpnet() -> None:
    config = EncoderConfig(backbone=os.environ["SATKGC_MPNET"], tied=True)
    batch = random_batch(texts=4, longest=30, types=False, vocabulary=20_000)
    packed, padded = Towers.create(config).eval(), Towers.create(config.replace(forward="padded")).eval()
    assert_close(outcome(packed, batch), outcome(padded, batch), 2e-5)


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
        expected.append({"mean": own.mean(0), "cls": own[0], "max": own.max(0).values}[pooling])
    pooled = pool_packed(hidden, packed, pooling)  # type: ignore[arg-type]
    assert torch.allclose(pooled, torch.stack(expected), atol=1e-6)
    assert torch.allclose(pool_padded(padded, inside, pooling), pooled, atol=1e-6)  # type: ignore[arg-type]
    pooled.sum().backward()
    assert hidden.grad is not None
    assert not hidden.grad[packed.tokens :].any(), "made-up tokens have no gradient"
    assert hidden.grad[: packed.tokens].any()
