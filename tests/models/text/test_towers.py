"""Two towers: made, encoded with, saved and opened again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from satkgc.errors import SatkgcError
from satkgc.models import EncoderConfig, Towers
from satkgc.models.text import towers as towers_module
from satkgc.models.text.towers import normalize
from satkgc.text import TokenBatch
from tiny import random_batch


@pytest.fixture
def towers(tiny_backbone) -> Towers:  # type: ignore[no-untyped-def]
    """Two towers that differ."""
    return unlike(Towers.create(EncoderConfig(backbone=str(tiny_backbone))))


def unlike(towers: Towers) -> Towers:
    """The same towers with other words in the second one."""
    with torch.no_grad():
        towers.entity.model.embeddings.word_embeddings.weight.mul_(-1)
    return towers


def encode_queries(towers: Towers, batch: TokenBatch, dtype: str | None = None) -> np.ndarray:
    return towers.encode(towers.query, batch, "queries", dtype=dtype)


def encode_entities(towers: Towers, batch: TokenBatch) -> np.ndarray:
    return towers.encode(towers.entity, batch, "entities")


@pytest.mark.parametrize("at_once", [1, 40, 10_000])
def test_encoding_many_equals_encoding_once(towers: Towers, at_once: int, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(towers_module.TOKENS_AT_ONCE, "cpu", at_once)
    batch = random_batch(texts=30)
    towers.train()
    vectors = encode_queries(towers, batch)
    assert towers.query.training
    expected = normalize(towers.eval().query(batch)).detach().numpy()
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, expected, atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert not np.allclose(vectors, encode_entities(towers, batch), atol=1e-2)


def test_encoding_in_bfloat16(towers: Towers) -> None:
    batch = random_batch(texts=30)
    exact, rounded = (encode_queries(towers, batch, dtype) for dtype in ("float32", "bfloat16"))
    assert 1e-6 < np.abs(exact - rounded).max() < 0.05


def test_encoding_nothing(towers: Towers) -> None:
    assert encode_entities(towers, random_batch().select([])).shape == (0, towers.dim)


@pytest.mark.parametrize("tied", [False, True])
def test_saved_and_opened_again(tiny_backbone, tmp_path, tied: bool) -> None:  # type: ignore[no-untyped-def]
    config = EncoderConfig(backbone=str(tiny_backbone), tied=tied, pooling="cls")
    towers = unlike(Towers.create(config))
    towers.save(tmp_path / "model")
    opened = Towers.load(tmp_path / "model", config)
    assert not opened.training
    batch = random_batch()
    assert np.array_equal(encode_queries(opened, batch), encode_queries(towers, batch))
    assert np.array_equal(encode_entities(opened, batch), encode_entities(towers, batch))
    assert np.array_equal(encode_queries(opened, batch), encode_entities(opened, batch)) == tied
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


@pytest.mark.parametrize("tied", [False, True])
def test_a_saved_tower_is_a_plain_transformers_model(tiny_backbone, tmp_path, tied: bool) -> None:  # type: ignore[no-untyped-def]
    towers = unlike(Towers.create(EncoderConfig(backbone=str(tiny_backbone), tied=tied)))
    towers.save(tmp_path)
    texts = ["the entity: of a", "relation"]
    for name, encode in (("query", encode_queries), ("entity", encode_entities)):
        folder = tmp_path / ("shared" if tied else name)
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state
        inside = batch["attention_mask"][:, :, None]
        vectors = torch.nn.functional.normalize((hidden * inside).sum(1) / inside.sum(1), dim=1).numpy()
        rows = [np.array(towers.tokenizer(text)["input_ids"], np.int32) for text in texts]
        expected = encode(towers, TokenBatch(np.concatenate(rows), np.cumsum([0, *map(len, rows)])))
        assert len(rows[0]) > 5
        assert np.allclose(vectors, expected, atol=1e-6)


def test_damaged_folders_are_refused(towers: Towers, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SatkgcError, match=r"query: part of the model is missing; copy the run again"):
        Towers.load(tmp_path, towers.config)
    towers.save(tmp_path / "model")
    (tmp_path / "model" / "entity").rename(tmp_path / "gone")
    with pytest.raises(SatkgcError, match=r"entity: part of the model is missing"):
        Towers.load(tmp_path / "model", towers.config)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("pooling", "sum"), ("forward", "fast"), ("attention", "none"), ("dropout", 1.0)],
)
def test_nonsense_is_refused_by_name(setting: str, value: object) -> None:
    with pytest.raises(SatkgcError, match=rf"model\.encoder\.{setting}"):
        EncoderConfig(**{setting: value})  # type: ignore[arg-type]


def test_compiling_needs_the_packed_forward() -> None:
    with pytest.raises(SatkgcError, match=r"compile needs the packed forward; set model\.encoder\.forward"):
        EncoderConfig(forward="padded", compile="on")
