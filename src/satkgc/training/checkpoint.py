"""Checkpoints: safetensors and JSON with checksums, written beside and renamed, so that no kill leaves half of one."""

from __future__ import annotations

import json
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
from satkgc.files import is_full, make_folder, put_in_place
from satkgc.manifest import Damaged, altered, read_manifest, write_manifest

MAKE_ROOM = "make room and run the same command with --resume"
Arrays = Mapping[str, np.ndarray[Any, Any]]


class Checkpoints:
    """The folder of a run's checkpoints: `step-NNNNNNNN` to go on from, and `best-NNNNNNNN`, weights only."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep

    def save(
        self, name: str, tensors: Mapping[str, Mapping[str, Tensor]], arrays: Arrays, facts: Mapping[str, Any]
    ) -> Path:
        """Write a checkpoint: a file for each group of tensors, one for the arrays, and the facts as JSON."""
        make_folder(self.folder)
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
            write_manifest(partial)
            put_in_place(partial, target)  # the same step may be there, saved by a process that was killed later
        except (OSError, SafetensorError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise self._not_saved(error, name) from error
        return target

    def read(self, path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any], dict[str, Any]]:
        """Tensors by group, arrays and facts; anything but what was written is refused."""
        self.verify(path)
        tensors = {f.stem: load_file(f) for f in path.glob("*.safetensors") if f.stem != "arrays"}
        return tensors, load_arrays(path / "arrays.safetensors"), json.loads((path / "facts.json").read_text())

    def verify(self, path: Path) -> None:
        """Compare every file with its checksum."""
        sums = read_manifest(path)
        if missing := {"facts.json", "arrays.safetensors"} - sums.keys():
            raise Damaged(f"{min(missing)} is missing", where=path)
        if wrong := altered(path, sums):
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


def _best_of(path: Path) -> str | None:
    try:
        best = json.loads((path / "facts.json").read_text(encoding="utf-8"))["best"]
    except (OSError, ValueError, KeyError):
        return None
    return best and f"best-{best['step']:08d}"
