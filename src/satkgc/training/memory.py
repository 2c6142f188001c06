"""Memory that a long run no longer needs goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def trim() -> None:
    """Hand freed memory back, where the C library is glibc.

    Batches differ in size, and what one leaves free seldom fits the next: on a CPU a run of hundreds of steps would
    otherwise grow to twice what a step needs.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if release is not None:
        release(0)
