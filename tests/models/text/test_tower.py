"""The packed forward computes what the library's padded one computes: vectors, gradients and all."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.models.text import EncoderConfig, Towers

sys.path.insert(0, str(Path(__file__).parent))
from tiny import FAMILIES, random_batch, save_tiny


@pytest.fixture(scope="session")
def families(tiny_backbone, tmp_path_factory) -> dict[str, Path]:  # type: ignore[no-untyped-def]
    """Folders of a random model of each family."""
    root = tmp_path_factory.mktemp("families")
    return {family: save_tiny(family, tiny_backbone, root / family) for family in FAMILIES}


def outcome(towers: Towers, batch, autocast: bool = False):  # type: ignore[no-untyped-def]
    """Vectors, and the gradients of every parameter for some loss."""
    towers.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        vectors = towers.queries(batch)
    weights = torch.linspace(0, 9, vectors.numel()).sin().view(vectors.shape)
    (vectors * weights).sum().backward()
    return vectors.detach(), {n: p.grad.clone() for n, p in towers.named_parameters() if p.grad is not None}


def assert_close(found, expected, tolerance: float) -> None:  # type: ignore[no-untyped-def]
    """Within a tolerance of the largest gradient of the model; key biases have none but rounding."""
    assert (found[0] - expected[0]).abs().max() < tolerance
    assert found[1].keys() == expected[1].keys()
    largest = max(grad.abs().max() for grad in expected[1].values())
    for name, grad in expected[1].items():
        assert (found[1][name] - grad).abs().max() < tolerance * largest, name


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_librarys_forward(families, family: str, pooling: str) -> None:  # type: ignore[no-untyped-def]
    config = EncoderConfig(backbone=str(families[family]), pooling=pooling, tied=True)  # type: ignore[arg-type]
    packed = Towers.create(config).eval()
    padded = Towers.create(replace(config, forward="padded")).eval()
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
            ends.append((towers.queries(batch) * weights).sum().double())
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
    alone = torch.cat([towers.entities(batch.select([row])) for row in range(len(batch))])
    assert torch.allclose(alone, towers.entities(batch), atol=1e-6)


def test_made_up_tokens_change_nothing(families) -> None:  # type: ignore[no-untyped-def]
    from satkgc.models.text.packed import Packed

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
            runs.append(towers.queries(batch).detach())
    assert torch.equal(runs[0], runs[1])
    assert (runs[0] - runs[2]).abs().max() > 1e-3
    towers.eval()
    assert torch.equal(towers.queries(batch), towers.queries(batch))


def test_dropout_overrides_the_backbones(families) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families["bert"]), dropout=0.0)).train()
    batch = random_batch()
    assert torch.equal(towers.queries(batch), towers.queries(batch))


@pytest.mark.parametrize("forward", ["packed", "padded"])
@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_too_long_a_text_is_refused(families, family: str, forward: str) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(families[family]), forward=forward))  # type: ignore[arg-type]
    towers.queries(random_batch(longest=70, types=False))  # 72 positions, two before the first
    with pytest.raises(SatkgcError, match=r"text\.max_tokens to 70"):
        towers.queries(random_batch(longest=71, types=False))


@pytest.mark.skipif(not os.path.isdir(os.environ.get("SATKGC_MPNET", "")), reason="SATKGC_MPNET names no folder")
def test_the_real_mpnet() -> None:
    config = EncoderConfig(backbone=os.environ["SATKGC_MPNET"], tied=True)
    batch = random_batch(texts=4, longest=30, types=False, vocabulary=20_000)
    packed, padded = Towers.create(config).eval(), Towers.create(replace(config, forward="padded")).eval()
    assert_close(outcome(packed, batch), outcome(padded, batch), 2e-5)


def normal(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """φ and Φ by the library."""
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi), torch.special.ndtr(x)


def test_compiled_layers_drop_the_same_with_and_without_gradients(families, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from torch._dynamo.testing import CompileCounter

    from satkgc.models.text.block import block

    torch.compiler.reset()
    counter = CompileCounter()  # records the graphs and runs them as they are
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), dropout=0.2, tied=True))
    towers.query._block, towers.query.compile_when = torch.compile(block, backend=counter), "on"
    batch = random_batch(types=False)
    plain = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), tied=True)).eval()
    with monkeypatch.context() as exact:  # the formula for GELU has its own test, and would hide small mistakes here
        exact.setattr("satkgc.models.text.block._normal", normal)
        assert torch.allclose(towers.eval().queries(batch), plain.queries(batch), atol=1e-6)
    torch.compiler.reset()
    towers.train()
    runs = []
    for seed, grad in ((1, True), (1, False), (2, False)):
        torch.manual_seed(seed)
        with torch.set_grad_enabled(grad):
            runs.append(towers.queries(batch).detach())
    assert torch.equal(runs[0], runs[1])
    assert (runs[0] - runs[2]).abs().max() > 1e-3
    graphs = counter.frame_count
    assert graphs <= 4, "evaluation, training, training without gradients; all layers share them"
    for texts in (4, 12, 7):
        towers.queries(random_batch(texts=texts, types=False))
    assert counter.frame_count == graphs, "other sizes must not compile again"


def test_compiled_layers_keep_only_what_matrix_products_made(families) -> None:  # type: ignore[no-untyped-def]
    from satkgc.models.text.block import block

    torch.compiler.reset()
    towers = Towers.create(EncoderConfig(backbone=str(families["mpnet"]), dropout=0.2, tied=True)).train()
    backend = "aot_eager_decomp_partition"  # divides the graph as the real one does, and runs it as it is
    towers.query._block, towers.query.compile_when = torch.compile(block, backend=backend), "on"
    batch, config = random_batch(types=False), towers.query.model.config
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 2 and len(tensor) == len(batch.ids):
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        towers.queries(batch)
    widths = sum(kept.values()) / (4 * config.hidden_size * len(batch.ids) * config.num_hidden_layers)
    # x, 3 of q, k, v, what attention gave and its projection, the inner layer before GELU, the projection of it.
    inner = config.intermediate_size / config.hidden_size
    assert widths < 7 + inner


def test_compiled_dropout_is_a_fair_coin() -> None:
    from satkgc.models.text.block import scramble, threshold

    place = torch.arange(1 << 18, dtype=torch.int32)
    streams = [scramble(place, torch.tensor(seed, dtype=torch.int32)) for seed in (0, 1, 2**30)]
    for numbers in streams:
        assert np.histogram(numbers, 16, (-(2**31), 2**31))[0].std() < 4 * (len(place) / 16) ** 0.5
        for p in (0.1, 0.5):
            assert (numbers < threshold(p)).double().mean() == pytest.approx(p, abs=0.003)
    dropped = [numbers < threshold(0.1) for numbers in streams]
    together = torch.stack([*dropped, *(dropped[0].roll(places) for places in (1, 2, 256, 768))]).double()
    assert (torch.corrcoef(together) - torch.eye(7)).abs().max() < 0.01


def test_compiled_gelu_is_the_librarys_but_for_what_bfloat16_cannot_hold() -> None:
    from satkgc.models.text.block import gelu

    outcomes = []
    for function in (torch.compile(gelu, backend="aot_eager"), torch.nn.functional.gelu):
        x = torch.linspace(-9, 9, 4001, requires_grad=True)
        y = function(x)
        y.backward(torch.linspace(1, 2, 4001))
        outcomes.append((y.detach(), x.grad))
    assert torch.allclose(outcomes[0][0], outcomes[1][0], atol=3e-5, rtol=0)
    assert torch.allclose(outcomes[0][1], outcomes[1][1], atol=2.4e-4, rtol=0)  # twice, as the gradient it is given
