"""Checkpoints: safetensors and JSON with checksums, written beside and renamed, so that no kill leaves half of one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from torch import Tensor

from satkgc.errors import SatkgcError

FORMAT = 1
MANIFEST = "manifest.json"
MAKE_ROOM = "make room and run the same command with --resume"
Arrays = Mapping[str, np.ndarray[Any, Any]]


class Damaged(SatkgcError):
    """A checkpoint that is not what was written."""


class Checkpoints:
    """The folder of a run's checkpoints: `step-NNNNNNNN` to go on from, and `best-NNNNNNNN`, weights only."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep

    def save(
        self, name: str, tensors: Mapping[str, Mapping[str, Tensor]], arrays: Arrays, facts: Mapping[str, Any]
    ) -> Path:
        """Write a checkpoint: a file for each group of tensors, one for the arrays, and the facts as JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        target, partial = self.folder / name, self.folder / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            for group, content in tensors.items():
                save_file(
                    {key: value.detach().contiguous() for key, value in content.items()},
                    partial / f"{group}.safetensors",
                )
            save_arrays(
                {key: np.ascontiguousarray(value) for key, value in arrays.items()}, partial / "arrays.safetensors"
            )
            (partial / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
            sums = {file.name: _sync_and_sum(file) for file in sorted(partial.iterdir())}
            manifest = partial / MANIFEST
            manifest.write_text(json.dumps({"format": FORMAT, "sha256": sums}, indent=1), encoding="utf-8")
            _sync_and_sum(manifest)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._not_saved(error, name) from error
        shutil.rmtree(target, ignore_errors=True)  # the same step, saved by a process that was killed later
        os.replace(partial, target)
        return target

    def read(self, path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any], dict[str, Any]]:
        """Tensors by group, arrays and facts; anything but what was written is refused."""
        self.verify(path)
        tensors = {f.stem: load_file(f) for f in path.glob("*.safetensors") if f.stem != "arrays"}
        return tensors, load_arrays(path / "arrays.safetensors"), json.loads((path / "facts.json").read_text())

    def verify(self, path: Path) -> None:
        """Compare every file with its checksum."""
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT:
                raise SatkgcError(
                    f"checkpoint format {manifest['format']}, this version reads {FORMAT}",
                    where=path,
                    remedy="go on with the version that wrote it, or start a new run",
                )
            wrong = [name for name, wanted in manifest["sha256"].items() if _sum(path / name) != wanted]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Damaged(f"incomplete ({error})", where=path) from error
        if wrong:
            raise Damaged(f"{', '.join(wrong)} was altered or cut short", where=path)

    def latest(self, say: Callable[[str], None]) -> Path | None:
        """The newest checkpoint that is whole; damaged ones are told of and passed over."""
        for path in sorted(self.folder.glob("step-*"), reverse=True):
            try:
                self.verify(path)
                return path
            except Damaged as error:
                say(f"passing over a damaged checkpoint: {error}")
        return None

    def prune(self) -> None:
        """Delete all but the last few and the best weights that these speak of."""
        steps = sorted(self.folder.glob("step-*"))
        for path in [*steps[: -self.keep], *self.folder.glob(".*.partial")]:
            shutil.rmtree(path, ignore_errors=True)
        bests = {_best_of(path) for path in steps[-self.keep :]}
        for path in self.folder.glob("best-*"):
            if path.name not in bests:
                shutil.rmtree(path, ignore_errors=True)

    def _not_saved(self, error: Exception, name: str) -> SatkgcError:
        what = "the disk is full" if is_full(error) else f"cannot write ({error})"
        earlier = sorted(path.name for path in self.folder.glob("step-*"))
        kept = f"{earlier[-1]} is intact" if earlier else "there was none before it"
        return SatkgcError(f"{what}: checkpoint {name} was not saved, {kept}", where=self.folder, remedy=MAKE_ROOM)


def is_full(error: Exception) -> bool:
    """Whether an error says that the disk, a quota or a limit on files is used up."""
    match = re.search(r"os error (\d+)", str(error))  # safetensors gives the number in words alone
    number = getattr(error, "errno", None) or (int(match[1]) if match else None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync_and_sum(file: Path) -> str:
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _best_of(path: Path) -> str | None:
    try:
        best = json.loads((path / "facts.json").read_text(encoding="utf-8"))["best"]
    except (OSError, ValueError, KeyError):
        return None
    return best and f"best-{best['step']:08d}"
