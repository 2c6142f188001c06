"""Where a command writes: found out before the work, not after it."""

from __future__ import annotations

from pathlib import Path

from satkgc.errors import SatkgcError


def ready(file: Path, ending: str | None = None) -> Path:
    """Make the folder that a file is to be written in; a name with another ending would say what is not so."""
    if file.is_dir():
        raise SatkgcError("this is a folder", where=file, remedy="name a file in it")
    if ending is not None and file.suffix.lower() != ending:
        raise SatkgcError(f"{file.name!r} does not end in {ending}", where=file, remedy="choose such a name")
    return folder(file.parent) / file.name


def folder(path: Path) -> Path:
    """Make a folder, and those it lies in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "there is a file of this name" if path.is_file() else f"cannot make this folder ({error.strerror})"
        raise SatkgcError(problem, where=path, remedy="choose another place") from error
    return path
