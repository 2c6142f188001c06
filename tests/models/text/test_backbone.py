"""Backbones that are there, and those that are not what they should be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

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


CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
Path({mark!r}).touch()
from transformers import BertConfig, BertModel, BertTokenizer
class Own{kind}(Bert{kind}):
    model_type = "own"
"""
OPEN = """
import sys
from satkgc.errors import SatkgcError
from satkgc.models import EncoderConfig, Towers
for dropout in (0.1, None):  # for one that is given, the model's configuration is opened by itself
    try:
        Towers.create(EncoderConfig(backbone={folder!r}, dropout=dropout))
    except SatkgcError as error:
        print(error, file=sys.stderr)
"""


@pytest.mark.parametrize("part", ["model", "tokenizer"])
@pytest.mark.parametrize("known", [True, False])
def test_a_models_own_code_is_never_run(tiny_backbone: Path, tmp_path: Path, part: str, known: bool) -> None:
    """A folder with `auto_map` and its code: transformers would ask, and whoever holds the standard input answers."""
    folder, mark = Path(shutil.copytree(tiny_backbone, tmp_path / "own")), tmp_path / "ran"
    for name, kind in (("configuration", "Config"), ("modeling", "Model"), ("tokenization", "Tokenizer")):
        (folder / f"{name}_own.py").write_text(CODE.format(mark=str(mark), kind=kind))
    maps = {
        "config.json": {"AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"},
        "tokenizer_config.json": {"AutoTokenizer": [None, "tokenization_own.OwnTokenizer"]},
    }
    file = folder / ("config.json" if part == "model" else "tokenizer_config.json")
    content = json.loads(file.read_text()) | {"auto_map": maps[file.name]}
    if not known:
        content |= {"model_type": "own"} if part == "model" else {"tokenizer_class": "OwnTokenizer"}
    file.write_text(json.dumps(content))
    script = OPEN.format(folder=str(folder))
    done = subprocess.run([sys.executable, "-c", script], input="y\n" * 9, capture_output=True, text=True, timeout=120)
    assert not mark.exists()
    assert done.returncode == 0, done.stderr
    if part == "model" and not known:
        assert done.stderr.count("brings code of its own, which is never run") == 2


def test_weights_that_are_a_pickle_are_not_opened(tiny_backbone: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "pickled"))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(SatkgcError, match="cannot open a model"):
        Towers.create(EncoderConfig(backbone=str(folder)))
