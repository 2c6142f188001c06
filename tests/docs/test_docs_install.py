"""What the docs say to install is there to be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from satkgc import __version__

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_lines_of_pip_name_a_clone_or_a_wheel_and_extras_that_exist() -> None:
    """No index has the package: `pip install satkgc[…]` finds nothing until it is installed, as install.md says."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    lines = [(page, line) for page, text in texts.items() for line in re.findall(r"pip install [^`\n]*", text)]
    assert len(lines) >= 5
    for page, line in lines:
        assert not re.search(r"install '?satkgc\b", line) or page.name == "install.md", line
        for extras in re.findall(r"\[([\w,]+)\]", line):
            assert set(extras.split(",")) <= EXTRAS.keys(), line
        for version in re.findall(r"satkgc-([\d.]+)-py3", line):
            assert version == __version__, line


def test_every_extra_is_described() -> None:
    table = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").split("## Extras")[1].split("##")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == EXTRAS.keys()


def test_every_page_and_notebook_is_on_the_site() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    pages = set(re.findall(r"'((?:docs|examples)/[^']+)'", repr(config["project"]["nav"])))
    notebooks = {f"examples/{notebook.stem}.md" for notebook in (ROOT / "examples").glob("*.ipynb")}
    assert pages == notebooks | {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}


def test_extras_that_messages_name_exist() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"satkgc\[(\w+)\]", code))
    assert {"rdf", "owl", "serve", "faiss", "export"} <= named <= EXTRAS.keys()
