"""Faults in what a piece of work writes: its n-th write fails, or the process is killed there.

The work runs in a fork. What it asks of the system that changes a folder is counted: files opened to be written,
folders made, names changed or removed, what is brought to the disk, space reserved, two names exchanged.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from satkgc import files
from satkgc.errors import SatkgcError

KILL = "kill"
KINDS = (KILL, errno.ENOSPC, errno.EIO)
EVENTS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class _Faults:
    """Counts the writes below a folder, and fails the n-th."""

    def __init__(self, root: Path, at: int, kind: int | str) -> None:
        self.root, self.at, self.kind, self.count = str(root), at, kind, 0

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        writes = event in EVENTS or (event == "open" and _opens_to_write(*args[1:3]))
        if writes and args and self.root in os.path.abspath(os.fsdecode(args[0]) if _is_path(args[0]) else "/"):
            self.step()

    def step(self) -> None:
        self.count += 1
        if self.count == self.at:
            if self.kind == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(self.kind, os.strerror(int(self.kind)), "a fault")

    def install(self) -> None:
        sys.addaudithook(self.hook)
        for module, name in ((os, "fsync"), (os, "posix_fallocate"), (files, "_exchange")):
            setattr(module, name, self._counted(getattr(module, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self.step()
            return call(*args)

        return counted


def _is_path(value: Any) -> bool:
    return isinstance(value, str | bytes | os.PathLike)


def _opens_to_write(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & TO_WRITE)


def run_with_fault(work: Callable[[], object], root: Path, at: int = 0, kind: int | str = KILL) -> tuple[str, int]:
    """How the work ended ("done", "refused" in one line, or "killed") and how many writes it came to."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        faults, code = _Faults(root, at, kind), 0
        try:
            faults.install()
            work()
        except (SatkgcError, OSError):
            code = 2
        except BaseException:
            traceback.print_exc()
            code = 3
        finally:
            faults.at = 0
            os.write(write, str(faults.count).encode())
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        count = int(pipe.read() or at)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"died by signal {os.WTERMSIG(status)} at write {at}"
        return "killed", count
    assert os.WEXITSTATUS(status) in (0, 2), f"a traceback at write {at}"
    return ("done" if os.WEXITSTATUS(status) == 0 else "refused"), count


def every_write(work: Callable[[], object], root: Path, step: int = 1) -> Iterator[tuple[int, int | str]]:
    """Each write of the work, or each so many, with one of the faults in turn, after a count of them.

    With SATKGC_EVERY_WRITE in the environment it is each one, whatever a test says to save time.
    """
    outcome, count = run_with_fault(work, root)
    assert outcome == "done"
    assert count > 2
    if "SATKGC_EVERY_WRITE" in os.environ:
        step = 1
        print(f"{os.environ['PYTEST_CURRENT_TEST'].split(' ')[0]}: {count} writes")  # shown by pytest -s
    for at in range(1, count + 1, step):
        yield at, KINDS[at // step % 3]


class _Disk:
    """What a power cut would leave below a folder: contents and names as they were when they were last synced."""

    def __init__(self, root: Path) -> None:
        self.root, self.missing = root, list[str]()
        self.known = {_state(path) for path in root.rglob("*") if path.is_file()}
        self.names = {entry for path in (root, *root.rglob("*")) if path.is_dir() for entry in _entries(path)}

    def fsync(self, descriptor: int, really: Callable[[int], None] = os.fsync) -> None:
        really(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        self.known.add(_state(path))
        self.names.update(_entries(path) if path.is_dir() else [])

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename":
            self.named(*(Path(os.fsdecode(path)).absolute() for path in args[:2]))

    def named(self, new: Path, name: Path) -> None:
        """Something gets a name: all that is in it must be on the disk."""
        if name.is_relative_to(self.root) and not _hidden(place := name.relative_to(self.root)):
            self.look(new, f"{place} before it had its name")

    def look(self, top: Path, when: str = "at the end") -> None:
        folders = [path for path in (top, *top.rglob("*")) if path.is_dir() and not _hidden(path.relative_to(top))]
        entries = [
            (folder / name, (folder_id, name, id)) for folder in folders for folder_id, name, id in _entries(folder)
        ]
        lost = [path for path, entry in entries if entry not in self.names]
        lost += [
            path for path in (top, *(path for path, _ in entries)) if path.is_file() and _state(path) not in self.known
        ]
        self.missing += [f"{when}: {path.relative_to(top)}" for path in lost]


def _state(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _entries(folder: Path) -> list[tuple[int, str, int]]:
    """The visible names in a folder, with the inodes of both."""
    own = folder.stat().st_ino
    return [(own, entry.name, entry.inode()) for entry in os.scandir(folder) if not entry.name.startswith(".")]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def not_on_disk(work: Callable[[], object], root: Path) -> list[str]:
    """What was not brought to the disk when it got its name, or at the end; hidden names do not count."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        disk, code = _Disk(root.resolve()), 1
        try:
            exchange, os.fsync = files._exchange, disk.fsync
            files._exchange = lambda one, other: (disk.named(one, other), exchange(one, other))[1]
            sys.addaudithook(disk.hook)
            work()
            disk.look(disk.root)
            os.write(write, "\n".join(disk.missing).encode()[:60_000])
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        missing = pipe.read().splitlines()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return missing


def visible(folder: Path) -> list[str]:
    """The names in a folder that are not hidden."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
