"""Two towers: made, encoded with, saved and opened again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from satkgc.errors import SatkgcError
from satkgc.models.text import EncoderConfig, Towers, model_checksum
from satkgc.text import TokenBatch

sys.path.insert(0, str(Path(__file__).parent))
from tiny import random_batch


@pytest.fixture
def towers(tiny_backbone) -> Towers:  # type: ignore[no-untyped-def]
    """Two towers that differ."""
    made = Towers.create(EncoderConfig(backbone=str(tiny_backbone)))
    with torch.no_grad():
        made.entity.model.embeddings.word_embeddings.weight.mul_(-1)
    return made


@pytest.mark.parametrize("batch_tokens", [1, 40, 10_000])
def test_encoding_many_equals_encoding_once(towers: Towers, batch_tokens: int) -> None:
    batch = random_batch(texts=30)
    towers.train()
    found = towers.encode_queries(batch, batch_tokens=batch_tokens, progress=False)
    assert towers.query.training
    expected = towers.eval().queries(batch).detach().numpy()
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-6)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert not np.allclose(found, towers.encode_entities(batch), atol=1e-2)


def test_encoding_in_bfloat16(towers: Towers) -> None:
    batch = random_batch(texts=30)
    exact, rounded = (towers.encode_queries(batch, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert 1e-6 < np.abs(exact - rounded).max() < 0.05


def test_encoding_nothing(towers: Towers) -> None:
    assert towers.encode_entities(random_batch().select([])).shape == (0, towers.dim)


@pytest.mark.parametrize("tied", [False, True])
def test_saved_and_opened_again(tiny_backbone, tmp_path, tied: bool) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(tiny_backbone), tied=tied, pooling="cls"))
    with torch.no_grad():
        towers.entity.model.embeddings.word_embeddings.weight.mul_(-1)
    towers.save(tmp_path / "model")
    opened = Towers.load(tmp_path / "model")
    batch = random_batch()
    assert np.array_equal(opened.encode_queries(batch), towers.encode_queries(batch))
    assert np.array_equal(opened.encode_entities(batch), towers.encode_entities(batch))
    assert np.array_equal(opened.encode_queries(batch), opened.encode_entities(batch)) == tied
    assert opened.config == towers.config
    assert opened.tokenizer("the entity")["input_ids"] == towers.tokenizer("the entity")["input_ids"]
    folders = {path.name for path in (tmp_path / "model").iterdir() if path.is_dir()}
    assert folders == ({"shared", "tokenizer"} if tied else {"query", "entity", "tokenizer"})
    assert sum(1 for _ in towers.parameters()) == sum(1 for _ in opened.parameters())


def test_tied_towers_are_one_set_of_weights(tiny_backbone) -> None:  # type: ignore[no-untyped-def]
    counts = [
        sum(p.numel() for p in Towers.create(EncoderConfig(backbone=str(tiny_backbone), tied=tied)).parameters())
        for tied in (True, False)
    ]
    assert counts[1] == 2 * counts[0]


def test_checksum_follows_the_weights(towers: Towers, tmp_path) -> None:  # type: ignore[no-untyped-def]
    sums = []
    for name in ("a", "b", "c"):
        if name == "c":
            with torch.no_grad():
                next(iter(towers.query.parameters())).view(-1)[0] += 1
        towers.save(tmp_path / name)
        sums.append(model_checksum(tmp_path / name))
    assert sums[0] == sums[1] != sums[2]
    for file in (tmp_path / "a").glob("*/tokenizer*"):  # models saved before the towers had them keep their checksum
        file.unlink()
    assert model_checksum(tmp_path / "a") == sums[0]
    for wrong in (tmp_path, tmp_path / "none"):
        with pytest.raises(SatkgcError, match="no weights of a model here"):
            model_checksum(wrong)


@pytest.mark.parametrize("tied", [False, True])
def test_a_saved_tower_is_a_plain_transformers_model(tiny_backbone, tmp_path, tied: bool) -> None:  # type: ignore[no-untyped-def]
    towers = Towers.create(EncoderConfig(backbone=str(tiny_backbone), tied=tied))
    with torch.no_grad():
        towers.entity.model.embeddings.word_embeddings.weight.mul_(-1)
    towers.save(tmp_path)
    texts = ["the entity: of a", "relation"]
    for name, encode in (("query", towers.encode_queries), ("entity", towers.encode_entities)):
        folder = tmp_path / ("shared" if tied else name)
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state
        inside = batch["attention_mask"][:, :, None]
        found = torch.nn.functional.normalize((hidden * inside).sum(1) / inside.sum(1), dim=1).numpy()
        rows = [np.array(towers.tokenizer(text)["input_ids"], np.int32) for text in texts]
        expected = encode(TokenBatch(np.concatenate(rows), np.cumsum([0, *map(len, rows)])))
        assert len(rows[0]) > 5
        assert np.allclose(found, expected, atol=1e-6)


def test_damaged_folders_are_refused(towers: Towers, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SatkgcError, match="no readable model"):
        Towers.load(tmp_path)
    towers.save(tmp_path / "model")
    file = tmp_path / "model" / "towers.json"
    good = json.loads(file.read_text())
    file.write_text(json.dumps({**good, "format": 99}))
    with pytest.raises(SatkgcError, match="format 99"):
        Towers.load(tmp_path / "model")
    file.write_text(json.dumps(good))
    (tmp_path / "model" / "entity").rename(tmp_path / "gone")
    with pytest.raises(SatkgcError, match="missing"):
        Towers.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("pooling", "sum"), ("forward", "fast"), ("attention", "none"), ("dropout", 1.0)],
)
def test_nonsense_is_refused_by_name(setting: str, value: object) -> None:
    with pytest.raises(SatkgcError, match=rf"encoder\.{setting}"):
        EncoderConfig(**{setting: value})  # type: ignore[arg-type]


def test_compiling_needs_the_packed_forward() -> None:
    with pytest.raises(SatkgcError, match=r"encoder\.forward"):
        EncoderConfig(forward="padded", compile="on")
