"""Backbones that are there, and those that are not what they should be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.models import EncoderConfig, Towers
from satkgc.models.text import backbone as backbones


def test_minilm_comes_from_its_package() -> None:
    towers = Towers.create(EncoderConfig(tied=True))
    assert towers.dim == 384
    assert towers.query.packed
    assert all(parameter.dtype == torch.float32 for parameter in towers.parameters())
    assert not any("pooler" in name for name, _ in towers.named_parameters()), "it is never used"


def test_other_weights_than_minilms_are_refused(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(backbones, "MINILM_SHA256", "0" * 64)
    with pytest.raises(SatkgcError, match=r"sha256.*reinstall"):
        Towers.create(EncoderConfig())


def test_minilm_not_installed(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(backbones, "MINILM_PACKAGE", "no_such_package_here")
    with pytest.raises(SatkgcError, match="pip install"):
        Towers.create(EncoderConfig())


def test_a_hub_name_without_a_network() -> None:
    with pytest.raises(SatkgcError, match=r"nobody/nothing.*network.*folder.*minilm"):
        Towers.create(EncoderConfig(backbone="nobody/nothing", revision="abc"))


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(SatkgcError, match="no such folder"):
        Towers.create(EncoderConfig(backbone=str(tmp_path / "missing")))


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(SatkgcError, match=r"cannot open a tokenizer.*save_pretrained"):
        Towers.create(EncoderConfig(backbone=str(tmp_path)))


def test_a_tokenizer_without_its_model(tiny_backbone: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_backbone, tmp_path / "half"))
    (copy / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(SatkgcError, match="cannot open a model"):
        Towers.create(EncoderConfig(backbone=str(copy)))


def test_a_tokenizer_of_another_model(tiny_backbone: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny_backbone, tmp_path / "mixed"))
    backbones.load_tokenizer("minilm", EncoderConfig()).save_pretrained(copy)
    with pytest.raises(SatkgcError, match=r"30522 tokens and the model"):
        Towers.create(EncoderConfig(backbone=str(copy)))
