"""Complete knowledge graphs with text and structure (SATKGC, WWW'25, and beyond it)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.version import __version__

if TYPE_CHECKING:
    from satkgc.api import Run, evaluate, fuse, train
    from satkgc.completion import Completer

__all__ = ["Completer", "KnowledgeGraph", "Run", "SatkgcError", "__version__", "evaluate", "fuse", "train"]


def __getattr__(name: str) -> Any:
    """What needs torch is imported when it is first used, so that `import satkgc` does not wait for it."""
    if name == "Completer":
        from satkgc.completion import Completer

        return Completer
    if name in ("Run", "evaluate", "fuse", "train"):
        from satkgc import api

        return getattr(api, name)
    raise AttributeError(f"module 'satkgc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
