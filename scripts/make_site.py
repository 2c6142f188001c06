"""Build the site: the Markdown pages as they are, the notebooks, the API reference from docstrings, and search.

    make site          or: python scripts/make_site.py

Pages lie in build/pages as they do in the repository, so that their links hold; zensical.toml has their order. At the
end every link within the site is followed, and nothing may be loaded from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
STYLE = """\
/* Tables of results and lines of code are wide. */
.md-grid { max-width: 78rem; }
.md-typeset table:not([class]) { font-size: .61rem; }
.md-typeset table:not([class]) :is(th, td) { min-width: 0; padding: .4em .5em; }
.md-typeset table:not([class]) code { word-break: normal; }
.md-typeset pre > code { font-size: .78em; line-height: 1.35; }
"""
# A page that was opened as a file may start no worker: there the search runs in a hidden frame.
FRAME_WORKER = """\
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(script) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const { contentWindow: inside, contentDocument: page } = this.frame;
      page.open();
      page.write("<body></body>");
      page.close();
      inside.postMessage = (message) => {
        const data = structuredClone(message);
        setTimeout(() => this.onmessage?.({ data }));
      };
      this.ready = new Promise((loaded, failed) => {
        const tag = Object.assign(page.createElement("script"), { src: script, onload: loaded, onerror: failed });
        page.body.append(tag);
      });
      this.ready.catch((error) => this.onerror?.(error));
    }
    postMessage(message) {
      const data = structuredClone(message);
      this.ready.then(() => this.frame.contentWindow.onmessage({ data }), () => {});
    }
    terminate() {
      this.frame.remove();
    }
  };
}
"""
PAIR = re.compile(r"(?<=\| )(\d\.\d+|–) ([/±]) (\d\.\d+)(?= [|/])")  # in a cell, read as one
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


def notebook_page(file: Path) -> str:
    """A notebook as Markdown: its texts, its code, and what the code printed."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts.extend(filter(None, map(_shown, cell.get("outputs", ()))))
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        table = re.sub(r"<(table|tr)[^>]*>", r"<\1>", "".join(data["text/html"]))  # the site's style, not pandas'
        return re.sub(r"\n\s*", "\n", table)
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def lay_out() -> None:
    """Put all pages into build/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES / "docs")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, PAGES / name)
    (PAGES / "examples").mkdir()
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        (PAGES / "examples" / f"{notebook.stem}.md").write_text(notebook_page(notebook), encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        text = page.read_text(encoding="utf-8").replace(".ipynb)", ".md)")
        page.write_text(PAIR.sub("\\1\N{NO-BREAK SPACE}\\2\N{NO-BREAK SPACE}\\3", text), encoding="utf-8")
    (PAGES / "api").mkdir()
    for title, page in re.findall(r'"(satkgc[\w.]*)" = "(api/\w+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")):
        (PAGES / page).write_text(f"# {title}\n\n::: {title}\n", encoding="utf-8")
    (PAGES / "site.css").write_text(STYLE, encoding="utf-8")
    (PAGES / "iframe-worker.js").write_text(FRAME_WORKER, encoding="utf-8")


class Page(HTMLParser):
    """What a page has and points to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = {""}
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and links of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        self.links.update(values[name] for name in ("href", "src") if name in values)
        canonical = values.get("rel") in ("canonical", "next", "prev")
        self.loads.update(values[name] for kind, name in LOADED if kind == tag and name in values and not canonical)


def broken_links(site: Path) -> list[str]:
    """ "PAGE: TARGET" of every link that leads nowhere, and of everything that would be loaded from elsewhere."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html") if file.name != "404.html"}
    broken = []
    for file, page in pages.items():
        outside = {target for target in page.loads if urlsplit(target).netloc}
        for target in sorted(page.links | outside):
            parts = urlsplit(target)
            place = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            place = place / "index.html" if place.is_dir() else place
            local = not parts.scheme and not parts.netloc
            found = place.exists() and (place not in pages or unquote(parts.fragment) in pages[place].ids)
            if target in outside or (local and not found):
                broken.append(f"{file.relative_to(site.resolve())}: {target}")
    return broken


def main() -> None:
    """Lay out, build, follow the links."""
    lay_out()
    subprocess.run([Path(sys.executable).with_name("zensical"), "build", "--clean", "--strict"], cwd=ROOT, check=True)
    broken = broken_links(SITE)
    if broken:
        raise SystemExit("\n".join(["links that lead nowhere:", *broken]))
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages, every link followed: {SITE.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
