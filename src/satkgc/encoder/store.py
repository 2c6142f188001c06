"""Towers on disk: towers.json, one folder a tower as save_pretrained writes it, and the tokenizer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from satkgc.encoder.backbone import check_match, load_model, load_tokenizer, sha256
from satkgc.encoder.config import EncoderConfig
from satkgc.encoder.towers import Towers
from satkgc.errors import SatkgcError

FORMAT = 1


def save_towers(towers: Towers, folder: Path | str) -> None:
    """Write towers into a folder; the caller makes it atomic by writing to a sibling and renaming."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"shared": towers.query} if towers.config.tied else {"query": towers.query, "entity": towers.entity}
    for name, tower in parts.items():
        tower.model.save_pretrained(folder / name)
    towers.tokenizer.save_pretrained(folder / "tokenizer")
    description = {"format": FORMAT, "encoder": asdict(towers.config), "dim": towers.dim}
    (folder / "towers.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def load_towers(folder: Path | str, device: Any = "cpu", **overrides: Any) -> Towers:
    """Read towers back; `overrides` replace settings that need no retraining, like `forward` or `compile`."""
    folder = Path(folder)
    description = _description(folder)
    config = replace(EncoderConfig(**description["encoder"]), **overrides)
    first, second = ("shared", "shared") if config.tied else ("query", "entity")
    for name in {first, second, "tokenizer"}:
        if not (folder / name).is_dir():
            raise SatkgcError("part of the model is missing", where=folder / name, remedy="copy the whole run again")
    tokenizer = load_tokenizer(str(folder / "tokenizer"), config)
    query = load_model(str(folder / first), config)
    check_match(query, tokenizer, str(folder))
    entity = query if config.tied else load_model(str(folder / second), config)
    return Towers(config, query, entity, tokenizer).to(device).eval()


def model_checksum(folder: Path | str) -> str:
    """One sha256 over the towers' weight files: it changes whenever the vectors would."""
    folder = Path(folder)
    total = hashlib.sha256()
    for path in sorted(folder.glob("*/*.safetensors")):
        total.update(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n".encode())
    return total.hexdigest()


def _description(folder: Path) -> dict[str, Any]:
    path = folder / "towers.json"
    try:
        description: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SatkgcError("no readable model here", where=path, remedy="give a run's model folder") from error
    if description.get("format") != FORMAT:
        found = description.get("format")
        raise SatkgcError(f"model format {found}, this version reads {FORMAT}", where=path, remedy="train it again")
    return description
