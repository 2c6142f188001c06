"""Where a command writes: found out before the work, not after it."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from satkgc.errors import SatkgcError


def check_writable(file: Path, ending: str | None = None) -> Path:
    """Make the folder that a file is to be written in; a name with another ending would say what is not so."""
    if file.is_dir():
        raise SatkgcError("this is a folder", where=file, remedy="name a file in it")
    if ending is not None and file.suffix.lower() != ending:
        raise SatkgcError(f"{file.name!r} does not end in {ending}", where=file, remedy="choose such a name")
    return make_folder(file.parent) / file.name


def make_folder(path: Path) -> Path:
    """Make a folder, and those it lies in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = "there is a file of this name" if path.is_file() else f"cannot make this folder ({error.strerror})"
        raise SatkgcError(problem, where=path, remedy="choose another place") from error
    return path


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A sibling to write, of another ending; it takes the file's name once it is whole, and is removed if it fails."""
    part = partial(file)
    try:
        yield part
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def partial(folder: Path) -> Path:
    """A sibling to write into, until it takes the folder's name; those that killed processes left are removed."""
    stem = f".{folder.name}.partial-{socket.gethostname()}-"  # of the processes of another machine nobody can tell
    for path in folder.parent.glob(".*.partial-*"):
        process = path.name.removeprefix(stem)
        if process != path.name and process.isdecimal() and not _runs(int(process)):
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                path.unlink()  # or it was a file
    return folder.with_name(f"{stem}{os.getpid()}")


def _runs(process: int) -> bool:
    """Whether another process has this number."""
    if process == os.getpid():
        return False  # it was another's: ours has only begun
    if os.name != "posix":
        return True  # elsewhere there is no asking
    try:
        os.kill(process, 0)  # asks, and does nothing
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
