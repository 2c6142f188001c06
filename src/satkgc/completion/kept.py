"""How far a command got that may take hours: arrays in one file beside its output, until it is done."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

log = logging.getLogger("satkgc.completion")

Arrays = dict[str, Any]  # numpy arrays


def open_kept(file: Path, what: str, asked: str, names: tuple[str, ...]) -> tuple[int, Arrays] | None:
    """How much was done, and the arrays, if they are of the same settings; None where there are none.

    A zip file has sums, so that what was altered is noticed: the work then begins anew.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            before, done, arrays = str(stored["asked"]), int(stored["done"]), {name: stored[name] for name in names}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, BadZipFile):
        log.warning("%s: the unfinished %s that is here is damaged: it begins anew", file, what)
        return None
    if before != asked:
        remedy = "repeat those settings to finish it, or remove the file"
        raise SatkgcError(f"an unfinished {what} with other settings is here", where=file, remedy=remedy)
    return done, arrays


def keep(file: Path, asked: str, done: int, arrays: Arrays) -> None:
    """Write it, all or nothing."""
    with atomic_write(file) as part, part.open("wb") as stream:
        np.savez(stream, asked=asked, done=done, **arrays)
