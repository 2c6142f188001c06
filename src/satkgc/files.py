"""Where a command writes: found out before the work; written beside, on the disk, and put in place in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from satkgc.errors import SatkgcError


def check_writable(file: Path, ending: str | None = None) -> Path:
    """Make the folder that a file is to be written in; a name with another ending would say what is not so."""
    if file.is_dir():
        raise SatkgcError("this is a folder", where=file, remedy="name a file in it")
    if ending is not None and file.suffix.lower() != ending:
        raise SatkgcError(f"{file.name!r} does not end in {ending}", where=file, remedy="choose such a name")
    return make_folder(file.parent) / file.name


def check_new(file: Path, ending: str | None = None) -> Path:
    """As `check_writable`, and refuse a name that is taken: what is there may be the only one."""
    check_writable(file, ending)
    if file.exists():
        raise SatkgcError("the file is there already", where=file, remedy="choose another name, or remove it")
    return file


def check_other(out: Path, source: Path) -> None:
    """Refuse to write over what is read."""
    if out.exists() and source.exists() and out.samefile(source):
        raise SatkgcError("this file is read and written at once", where=out, remedy="choose another name to write")


def make_folder(path: Path) -> Path:
    """Make a folder, and those it lies in; refuse one that is there and cannot be written."""
    try:
        _make(path)
    except OSError as error:
        problem = "there is a file of this name" if path.is_file() else f"cannot make this folder ({error.strerror})"
        raise SatkgcError(problem, where=path, remedy="choose another place") from error
    if not os.access(path, os.W_OK):
        raise SatkgcError(
            "this folder cannot be written", where=path, remedy="choose another place, or its permissions"
        )
    return path


@contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """A sibling to write, of another ending; it takes the file's name once it is whole and on the disk, and is removed
    if it fails."""
    part = partial(file)
    try:
        yield part
        sync(part)
        os.replace(part, file)
        sync(file.parent)
    except OSError as error:
        error.filename = error.filename or str(file)  # a write that fails does not know its file
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """As `atomic_write`, of a folder: all that is in it is on the disk before it takes the name, in one step."""
    folder = folder.absolute()
    part = partial(folder)
    _make(folder.parent)
    part.mkdir()
    try:
        yield part
        put_in_place(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """As `atomic_folder`, for a name that must be free: one that was taken meanwhile stays, and the writing fails."""
    part = partial(folder)
    make_folder(folder.absolute().parent)
    part.mkdir()
    try:
        yield part
        sync_tree(part)
        os.rename(part, folder)
        sync(folder.absolute().parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def put_in_place(new: Path, folder: Path) -> None:
    """Let a finished folder take a name; the one that had it is removed. At no moment is there none under the name,
    where the system can exchange two names."""
    sync_tree(new)
    if not folder.exists():
        os.rename(new, folder)
    elif not _exchange(new, folder):
        aside = partial(folder.with_name(f"{folder.name}.old"))
        os.rename(folder, aside)
        try:
            os.rename(new, folder)
        except OSError:
            os.rename(aside, folder)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    sync(folder.parent)
    shutil.rmtree(new, ignore_errors=True)


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


def sync(path: Path) -> None:
    """Return when a file's content, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing
            raise
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """All files and folders below a folder, and itself."""
    for root, _, names in os.walk(folder):
        for name in names:
            sync(Path(root, name))
        sync(Path(root))


def _make(folder: Path) -> None:
    """A folder and those it lies in, the names of the new ones on the disk."""
    new = list(takewhile(lambda path: not path.exists(), (folder, *folder.parents)))
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        sync(path.parent)


def reserve(file: Path, size: int) -> None:
    """Take the space for a file that is then written through a memory map, where a full disk would kill the process."""
    with file.open("ab") as stream:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        else:
            stream.truncate(size)


def is_full(error: Exception) -> bool:
    """Whether an error says that the disk, a quota or a limit on files is used up."""
    match = re.search(r"os error (\d+)", str(error))  # safetensors gives the number in words alone
    number = getattr(error, "errno", None) or (int(match[1]) if match else None)
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or the file system has no such call."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


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
