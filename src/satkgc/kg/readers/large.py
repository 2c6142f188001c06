"""Whether a source is read in memory, or by way of the disk (`staging.py`); the graph is the same."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.source import COMPRESSION, SourceFile

log = logging.getLogger("satkgc.kg")

PACKED = 8  # times the size of a Parquet file, or of a packed one, is that of its text, about
COPIES = 3  # of the text that memory holds at the worst moment, about
MOST = 4.0  # GiB that are taken unless more is given
GIB = 1 << 30


def memory_to_read(files: Sequence[SourceFile], options: ReadOptions) -> float | None:
    """GiB within which these files are read by way of the disk; None: in memory."""
    here = find_spec("duckdb") is not None
    if options.memory is not None:
        if not here:
            raise SatkgcError("--memory needs DuckDB", where=files[0].shown, remedy="pip install 'satkgc[large]'")
        return options.memory
    need, free = COPIES * sum(map(_text_bytes, files)), free_memory()
    if need < free / 2:
        return None
    if not here:
        message = "%s: about %.0f GiB in memory, of which %.0f are free; pip install 'satkgc[large]' to read it in less"
        log.warning(message, files[0].shown, need / GIB, free / GIB)
        return None
    return min(MOST, free / 2 / GIB)


def tell_obstacle(reason: str, shown: str, options: ReadOptions) -> None:
    """Refuse what can only be read in memory where that was not allowed."""
    if options.memory is not None:
        raise SatkgcError(f"{reason}: read in memory only", where=shown, remedy="leave --memory out")


def free_memory() -> int:
    """Bytes that this process may still take, by the system and by its control group."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most, used = (int((group / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        free = min(free, most - used)
    return free


def _text_bytes(file: SourceFile) -> int:
    packed = file.path.suffix.lower() in (*COMPRESSION, ".parquet")
    return file.path.stat().st_size * (PACKED if packed else 1)
