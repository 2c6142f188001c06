"""Write the API reference from docstrings: a page for each public package.

python scripts/make_api.py build/api
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pdoc

PACKAGES = ("api", "kg", "sampling", "text", "models", "evaluation", "training", "completion", "export", "analysis")


def main(folder: Path) -> None:
    """Names that a package imports when they are first used are imported first: pdoc looks only at what is there."""
    names = ["satkgc", *(f"satkgc.{package}" for package in (*PACKAGES, "settings", "errors"))]
    for module in map(importlib.import_module, names):
        for member in getattr(module, "__all__", ()):
            vars(module).setdefault(member, getattr(module, member))
    pdoc.pdoc(*names, output_directory=folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
