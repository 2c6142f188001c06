"""What other packages may import, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import satkgc.kg


def test_every_exported_name_is_there() -> None:
    for name in satkgc.kg.__all__:
        assert getattr(satkgc.kg, name) is not None
    assert not hasattr(satkgc.kg, "no_such_name")


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = """
import sys
import satkgc, satkgc.kg
heavy = {"torch", "numba", "scipy", "pyoxigraph", "matplotlib", "pandas", "rich", "transformers"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
from satkgc.kg import ARCHIVE_SUFFIXES, CATALOGUE, ReadOptions, SourceFile, find_entry, is_graph_folder, write_tsv
heavy -= {"rich"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
