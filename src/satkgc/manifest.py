"""Checksums of what is kept: a folder has a manifest of its files' sums, a JSON file its own sum inside.

They are checked whenever a folder is opened. One of more than LARGE bytes is read in full the first time, unless it
was written here; that it was whole is then remembered in the user's cache by size, times and inode of every file, and
it is read again once any of them has changed. `satkgc verify` always reads everything.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

MANIFEST = "manifest.json"
FORMAT = 1
SUM = "sha256"  # the key under which a JSON file has its own
LARGE = 256 << 20  # bytes that are read at every opening
SETTLED = 2_000_000_000  # ns: what was changed later than this before it was read may change again unseen
WORKERS = 4  # hashing lets go of the interpreter


class Damaged(SatkgcError):
    """Something that is not what was written."""


def cache_folder() -> Path:
    """Where downloads and graphs in binary form are kept: SATKGC_CACHE, or satkgc in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "satkgc"
    return Path(os.environ.get("SATKGC_CACHE") or default)


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path) -> dict[str, str]:
    """List every file below a folder with its sum in the folder's manifest; returns the sums."""
    names = sorted(_names(folder))
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        sums = dict(zip(names, pool.map(sha256, [folder / name for name in names]), strict=True))
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT, SUM: sums}, indent=1) + "\n", encoding="utf-8")
    return sums


def read_manifest(folder: Path) -> dict[str, str]:
    """The sums that a folder's manifest lists, of every file that is there and of no other."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        number, sums = manifest["format"], manifest[SUM]
        if number != FORMAT:
            what = f"{folder.name} has format {number}, this version reads {FORMAT}"
            raise SatkgcError(what, where=folder, remedy="go on with the version that wrote it, or make it anew")
        if not sums or not all(isinstance(value, str) for value in sums.values()):
            raise ValueError("it lists nothing")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"incomplete: no {MANIFEST} that can be read ({error})", where=folder) from error
    if strange := set(_names(folder)) - sums.keys():
        raise Damaged(f"{min(strange)} is not in its {MANIFEST}", where=folder)
    return dict(sums)


def check_folder(folder: Path, remedy: str | None = None) -> dict[str, str]:
    """The sums of a folder's files, after a look at each; `Damaged` names all that are not as written."""
    sums = read_manifest(folder)
    stamp = Stamp(folder, sums)
    if not stamp.holds():
        if wrong := altered(folder, sums):
            raise Damaged(f"{', '.join(wrong)} was altered or cut short", where=folder, remedy=remedy)
        stamp.write()
    return sums


def altered(folder: Path, sums: Mapping[str, str]) -> list[str]:
    """The files that are missing or have another sum; all are read."""

    def wrong(name: str) -> bool:
        try:
            return sha256(folder / name) != sums[name]
        except OSError:
            return True

    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        return [name for name, bad in zip(sums, pool.map(wrong, sums), strict=True) if bad]


def total(sums: Mapping[str, str]) -> str:
    """One sum for all files of a folder: it changes whenever one of them does."""
    return hashlib.sha256("".join(f"{name} {sums[name]}\n" for name in sorted(sums)).encode()).hexdigest()


class Stamp:
    """What the user's cache remembers of a large folder whose files all had these sums."""

    def __init__(self, folder: Path, sums: Mapping[str, str]) -> None:
        self.folder, self.sums = folder.absolute(), dict(sums)
        self.began = time.time_ns()
        key = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:32]
        self._file = cache_folder() / "checked" / f"{key}.json"
        self._state = self._look()

    def holds(self) -> bool:
        """Whether nothing has been touched since a check."""
        if self._state is None:
            return False
        with suppress(OSError, ValueError):
            return bool(json.loads(self._file.read_text(encoding="utf-8")) == self._state)
        return False

    def write(self, *, own: bool = False) -> None:
        """Remember that all was well; where that cannot be written, the next opening reads everything again. A folder
        of our own, written a moment ago, need not have settled: until it had its name, nobody else knew of it."""
        if self._state is None or self._look() != self._state:
            return
        newest = max(max(times) for times in (state[1:3] for state in self._state.values()))
        if not own and newest > self.began - SETTLED:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self._file) as part:
                part.write_text(json.dumps(self._state), encoding="utf-8")

    def _look(self) -> dict[str, list[Any]] | None:
        """Size, times, inode and sum of every file; None for a small folder, which is always read."""
        state, size = {}, 0
        for name, value in self.sums.items():
            try:
                facts = (self.folder / name).stat()
            except OSError:
                return None
            state[name] = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev, value]
            size += facts.st_size
        return state if size > LARGE else None


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with its own sum, all or nothing."""
    with atomic_write(file) as part:
        part.write_text(seal(content), encoding="utf-8")


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object; where it has its own sum, that must be right."""
    content = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    if (expected := content.pop(SUM, None)) is not None and expected != own_sum(content):
        remedy = f'restore it; if you changed it on purpose, take the line "{SUM}" out'
        raise Damaged("this file was altered", where=file, remedy=remedy)
    return content


def seal(content: Mapping[str, Any]) -> str:
    """A JSON object as text, with its own sum."""
    plain = json.loads(json.dumps(content))  # as it will be read: keys become texts, tuples lists
    return json.dumps({**plain, SUM: own_sum(plain)}, indent=1, ensure_ascii=False) + "\n"


def own_sum(content: Mapping[str, Any]) -> str:
    """The sum of a JSON object, however it is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _names(folder: Path) -> Iterable[str]:
    for path in folder.rglob("*"):
        if path.is_file() and path != folder / MANIFEST:
            yield path.relative_to(folder).as_posix()
