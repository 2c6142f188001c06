"""Complete knowledge graphs with fine-tuned language models (SATKGC, WWW'25)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph

if TYPE_CHECKING:
    from satkgc.completion import Completer as Completer
    from satkgc.evaluation import Report
    from satkgc.training import Run as Run
    from satkgc.training import train as train

__version__ = "0.1.0"
__all__ = ["Completer", "KnowledgeGraph", "Run", "SatkgcError", "__version__", "evaluate", "train"]

# Opened when they are first asked for, so that `import satkgc` does not load torch.
_ROOMS = {"Completer": "satkgc.completion", "Run": "satkgc.training", "train": "satkgc.training"}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'satkgc' has no attribute {name!r}")
    return getattr(importlib.import_module(_ROOMS[name]), name)


def evaluate(run: Run, split: str = "test", **options: Any) -> Report:
    """Filtered ranks of a run on a split: see `satkgc.training.Run.evaluate`."""
    return run.evaluate(split, **options)
