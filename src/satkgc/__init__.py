"""Complete knowledge graphs with fine-tuned language models (SATKGC, WWW'25)."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph

if TYPE_CHECKING:
    from satkgc.completion import Completer as Completer
    from satkgc.evaluation import EvaluationConfig, Report
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


def evaluate(
    run: Run | Path | str,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    device: str = "auto",
    progress: bool = False,
    **settings: Any,
) -> Report:
    """Filtered ranks of a run, or of a run folder, on a split; `settings` are fields of `EvaluationConfig`.

    What is not set is as in `config`, and without one as the run was trained: see `satkgc.training.Run.evaluate`.
    """
    from satkgc.training import Run

    opened = Run.load(run) if isinstance(run, str | Path) else run
    changed = replace(config or opened.config.evaluation, **settings)
    return opened.evaluate(split, changed, device=device, progress=progress)
