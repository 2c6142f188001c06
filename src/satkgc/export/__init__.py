"""A run for other tools: sentence-transformers, ONNX, plain vectors; each with a model card."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.export.card import model_card
from satkgc.export.onnx import write_onnx
from satkgc.export.sentence_transformers import write_sentence_transformers
from satkgc.export.vectors import write_npy, write_parquet
from satkgc.files import new_folder
from satkgc.models import EncoderModelConfig
from satkgc.training import RunFolder

Checks = dict[str, Any]  # what was checked or counted, by name

FORMATS: dict[str, Callable[[RunFolder, Path, str], Checks]] = {
    "sentence-transformers": write_sentence_transformers,
    "onnx": write_onnx,
    "parquet": write_parquet,
    "npy": write_npy,
}
"""What writes a run into a folder, by the name that `satkgc export --format` takes."""

__all__ = ["FORMATS", "export"]


def export(run: str | os.PathLike[str], format: str, out: str | Path, *, device: str = "auto") -> Checks:
    """Write a run in another form to a new folder, all or nothing; returns what was checked.

    Entity vectors that are not there yet are made on the device.
    Of a fused run, its first text expert is written, which `expert` names.
    """
    if format not in FORMATS:
        raise SatkgcError(f"no export format {format!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    whole, out = RunFolder.load(run), Path(out)
    folder = _exported(whole)
    if out.exists():
        raise SatkgcError("this is there already", where=out, remedy="choose another name, or remove it")
    try:
        with new_folder(out) as part:
            checks = FORMATS[format](folder, part, device)
            (part / "README.md").write_text(model_card(folder, format, checks), encoding="utf-8")
    except OSError as error:
        if out.exists():
            what, remedy = "another export was written here meanwhile", "choose another name"
        else:
            what = f"cannot be written: {error.strerror or f'the disk may be full ({error})'}"
            remedy = "check the free space and the permissions there; nothing was left behind"
        raise SatkgcError(what, where=out, remedy=remedy) from error
    return {"expert": folder.folder.name, **checks} if whole.config.experts else checks


def _exported(run: RunFolder) -> RunFolder:
    """The run that has vectors to write: itself, or the first expert of a fused run that reads texts."""
    if not run.config.experts:
        return run
    for expert in run.experts.values():
        if isinstance(expert.config.model, EncoderModelConfig):
            return expert
    remedy = "scores of a mixture are no products of vectors; export a run whose model does"
    raise SatkgcError("no expert of this fused run reads texts", where=run.folder, remedy=remedy)
