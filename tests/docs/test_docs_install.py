"""What the docs say to install is there to be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_lines_of_pip_name_the_source_and_extras_that_exist() -> None:
    """No index has the package, so that `pip install satkgc[…]` would find nothing where it is not installed yet."""
    lines = [line for page in PAGES for line in re.findall(r"pip install [^`\n]*", page.read_text(encoding="utf-8"))]
    assert len(lines) >= 5
    for line in lines:
        assert "satkgc[" not in line, line
        for extras in re.findall(r"\.\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= EXTRAS.keys(), line


def test_extras_that_messages_name_exist() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"satkgc\[(\w+)\]", code))
    assert {"rdf", "owl", "serve", "faiss", "export"} <= named <= EXTRAS.keys()
