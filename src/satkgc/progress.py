"""A progress bar for long work: on a terminal, on the error stream, gone when the work is done."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import Progress


def progress_bar(shown: bool = True) -> Progress:
    """A context in which tasks are added and advanced; nothing is drawn where nobody looks."""
    return Progress(console=Console(file=sys.stderr), transient=True, disable=not (shown and sys.stderr.isatty()))
