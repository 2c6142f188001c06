"""Every file of a graph or a run against the sum that was kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, all_decisions, altered_files, is_graph_folder
from satkgc.manifest import MANIFEST, SUM, altered, read_json, read_manifest

JSON = ("config.json", "metrics.json")


@dataclass
class Verification:
    """What was found, by paths below the folder."""

    altered: list[str] = field(default_factory=list)  # or missing
    without_sum: list[str] = field(default_factory=list)  # folders and files of earlier versions: there is no telling
    parts: int = 0  # graphs, folders with a manifest and JSON files that were read


def verify_folder(folder: Path) -> Verification:
    """Read all that a graph or a run consists of; nothing is taken on trust because it was well before."""
    result = Verification()
    if is_graph_folder(folder):
        _graph(folder, "", result)
    elif (folder / "config.json").exists():
        _run(folder, "", result)
    else:
        remedy = "give a folder that `satkgc kg import` or `satkgc train` wrote"
        raise SatkgcError("neither a graph nor a run", where=folder, remedy=remedy)
    return result


def _run(folder: Path, prefix: str, result: Verification) -> None:
    for name in JSON:
        if (folder / name).exists():
            _json(folder / name, f"{prefix}{name}", result)
    if (folder / DECISIONS).exists():
        result.parts += 1
        result.altered += [prefix + DECISIONS] * (not all_decisions(folder / DECISIONS))
    for part in _folders(folder):
        name = f"{prefix}{part.relative_to(folder).as_posix()}/"
        if part.name == "graph" or is_graph_folder(part):
            _graph(part, name, result)
        elif (part / "config.json").exists() and part.name != "model":
            _run(part, name, result)  # a run that others are part of
        elif (part / MANIFEST).exists():
            _manifest(part, name, result)
        else:
            result.without_sum.append(name)


def _folders(run: Path) -> Iterator[Path]:
    for part in sorted(run.iterdir()):
        if part.is_dir() and part.name in ("checkpoints", "experts"):
            yield from sorted(path for path in part.iterdir() if path.is_dir() and not path.name.startswith("."))
        elif part.is_dir() and part.name not in ("tensorboard", "wandb") and not part.name.startswith("."):
            yield part


def _graph(folder: Path, prefix: str, result: Verification) -> None:
    result.parts += 1
    result.altered += [prefix + name for name in altered_files(folder)]
    with suppress(OSError, ValueError, TypeError):
        if SUM not in json.loads((folder / "meta.json").read_text(encoding="utf-8")):
            result.without_sum.append(f"{prefix}meta.json")


def _manifest(folder: Path, prefix: str, result: Verification) -> None:
    result.parts += 1
    try:
        result.altered += [prefix + name for name in altered(folder, read_manifest(folder))]
    except SatkgcError as error:
        result.altered.append(f"{prefix}{MANIFEST} ({error.what})")


def _json(file: Path, name: str, result: Verification) -> None:
    result.parts += 1
    try:
        read_json(file)
        if SUM not in json.loads(file.read_text(encoding="utf-8")):
            result.without_sum.append(name)
    except (SatkgcError, OSError, ValueError):
        result.altered.append(name)
