"""Fetch a file over HTTP: with progress, in pieces if the line drops, checked before it counts as there.

A checksum is a SHA-256, or the 40 digits of the SHA-1 by which git names a file's content, where that alone is known.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from satkgc.errors import SatkgcError

CHUNK = 1 << 18
PATIENCE = 5  # attempts in a row that bring nothing new before we give up
TIMEOUT = 30  # seconds without a byte


def fetch(url: str, target: Path, checksum: str | None = None, pause: float = 1.0, most: int | None = None) -> Path:
    """Download `url` to `target` unless it is there; a download that was cut goes on where it stopped.

    A file of more than `most` bytes is refused.
    """
    if target.exists():
        if not _matches(target, checksum):
            raise SatkgcError(
                "not the published file: its checksum differs",
                where=target,
                remedy="remove it, so that it is fetched again",
            )
        return target
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _progress() as progress:
            _fill(url, part, progress, pause, most)
        if not _matches(part, checksum):
            part.unlink()
            what = "the downloaded file has another checksum than expected"
            raise SatkgcError(what, where=url, remedy="try again later")
        os.replace(part, target)
    except urllib.error.HTTPError as error:
        raise SatkgcError(f"the server answered {error.code} {error.reason}", where=url) from error
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise SatkgcError(f"cannot be downloaded: {getattr(error, 'reason', error)}", where=url) from error
    except OSError as error:
        raise SatkgcError(f"cannot be stored: {error.strerror or error}", where=target) from error
    finally:
        if target.exists():
            _version_file(part).unlink(missing_ok=True)
    return target


def _fill(url: str, part: Path, progress: Progress, pause: float, most: int | None) -> None:
    """Ask for what is missing until nothing is."""
    task = progress.add_task(part.name.removesuffix(".part"), total=None)
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            if _request(url, part, progress, task, most):
                return
            failure: Exception = ConnectionError("the connection was cut")
        except urllib.error.HTTPError as error:
            if error.code != 416:  # 416: we hold more than there is, so what we hold is of another file
                raise
            part.unlink(missing_ok=True)
            failure = error
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            failure = error
        failures = 0 if part.exists() and part.stat().st_size > before else failures + 1
        if failures >= PATIENCE:
            raise failure
        time.sleep(pause * failures)


def _request(url: str, part: Path, progress: Progress, task: object, most: int | None) -> bool:
    """One request; whether the file is whole after it."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "satkgc", "Accept-Encoding": "identity"})
    version = _version_file(part)
    if start:
        request.add_header("Range", f"bytes={start}-")
        if version.exists():  # the rest of this very version, or else the whole of the new one
            request.add_header("If-Range", version.read_text(encoding="utf-8"))
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        if not (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            start = 0
            etag = response.headers.get("ETag") or "W/"
            mark = response.headers.get("Last-Modified") or "" if etag.startswith("W/") else etag
            version.unlink(missing_ok=True)
            if mark:  # a weak ETag does not promise the same bytes
                version.write_text(mark, encoding="utf-8")
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        progress.update(task, total=total, completed=start)  # type: ignore[arg-type]
        if most is not None and (total or 0) > most:
            raise _too_large(url, most)
        with part.open("ab" if start else "wb") as file:
            while chunk := response.read(CHUNK):
                if most is not None and file.tell() + len(chunk) > most:
                    raise _too_large(url, most)
                file.write(chunk)
                progress.update(task, advance=len(chunk))  # type: ignore[arg-type]
            return total is None or file.tell() == total


def _too_large(url: str, most: int) -> SatkgcError:
    remedy = "if you trust it, download it yourself and give the file"
    return SatkgcError(f"the file has more than {most >> 20:,} MiB", where=url, remedy=remedy)


def _matches(path: Path, checksum: str | None) -> bool:
    if checksum is None:
        return True
    digest = hashlib.sha256()
    if len(checksum) == 40:
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest() == checksum


def _version_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    return Progress(*columns, console=console, disable=not console.is_terminal)
