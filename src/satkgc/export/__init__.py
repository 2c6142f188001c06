"""A run for other tools: sentence-transformers, ONNX, plain vectors; each with a model card."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from satkgc.errors import SatkgcError
from satkgc.export.card import model_card
from satkgc.export.onnx_form import write_onnx
from satkgc.export.sentence_transformers_form import write_sentence_transformers
from satkgc.export.vectors_form import write_npy, write_parquet
from satkgc.files import make_folder
from satkgc.training import Run

Format = Literal["sentence-transformers", "onnx", "parquet", "npy"]
WRITERS: dict[Format, Callable[[Run, Path], dict[str, Any]]] = {
    "sentence-transformers": write_sentence_transformers,
    "onnx": write_onnx,
    "parquet": write_parquet,
    "npy": write_npy,
}


def export(run: str | Path, format: Format, out: str | Path) -> dict[str, Any]:
    """Write a run in another form to a new folder, all or nothing; tells what was checked."""
    if format not in get_args(Format):
        raise SatkgcError(f"no export format {format!r}", remedy=f"choose one of {', '.join(get_args(Format))}")
    loaded, out = Run.load(run), Path(out)
    if out.exists():
        raise SatkgcError("this is there already", where=out, remedy="choose another name, or remove it")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    make_folder(part)
    try:
        facts = WRITERS[format](loaded, part)
        (part / "README.md").write_text(model_card(loaded, format, facts), encoding="utf-8")
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return facts
