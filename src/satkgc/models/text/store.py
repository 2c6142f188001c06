"""Towers on disk: towers.json, one folder a tower as save_pretrained writes it, and the tokenizer, in each too."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.models.text.backbone import sha256
from satkgc.models.text.config import EncoderConfig

FORMAT = 1


def write_model(folder: Path, config: EncoderConfig, models: dict[str, Any], tokenizer: Any) -> None:
    """Write models by the name of their folder, the tokenizer, and last the file that says what they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)  # so that each is a whole model to other programs
    tokenizer.save_pretrained(folder / "tokenizer")
    description = {"format": FORMAT, "encoder": asdict(config)}
    (folder / "towers.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def read_config(folder: Path) -> EncoderConfig:
    """The settings of saved towers, after a look whether their parts are there."""
    path = folder / "towers.json"
    try:
        description: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SatkgcError("no readable model here", where=path, remedy="give a run's model folder") from error
    if description.get("format") != FORMAT:
        found = description.get("format")
        raise SatkgcError(f"model format {found}, this version reads {FORMAT}", where=path, remedy="train it again")
    config = EncoderConfig(**description["encoder"])
    for name in ("tokenizer", *(("shared",) if config.tied else ("query", "entity"))):
        if not (folder / name).is_dir():
            raise SatkgcError("part of the model is missing", where=folder / name, remedy="copy the whole run again")
    return config


def model_checksum(folder: Path | str) -> str:
    """One sha256 over the towers' weight files: it changes whenever the vectors would."""
    folder = Path(folder)
    total = hashlib.sha256()
    weights = sorted(folder.glob("*/*.safetensors"))
    if not weights:
        raise SatkgcError("no weights of a model here", where=folder, remedy="give a run's model folder")
    for path in weights:
        total.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
    return total.hexdigest()
