"""Take the pictures of the page that the docs show, from a running service (needs Chromium and the dev extra).

satkgc serve runs/demo --proposals missing.csv &
python scripts/screenshots.py --entity dog.n.01
python scripts/screenshots.py --entity wheel.n.01 --relation has_part --only page-evidence
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
NEW = {"name": "labradoodle", "description": "a dog bred from a labrador retriever and a poodle"}
DESK = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> None:
    """Open each page and write a PNG of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:8321/", help="where the service is [http://localhost:8321/]")
    parser.add_argument("--entity", required=True, help="id of the entity that is asked about")
    parser.add_argument("--relation", default="hypernym", help="id of the relation [hypernym]")
    parser.add_argument("--only", help="take this picture alone")
    args = parser.parse_args()
    IMAGES.mkdir(parents=True, exist_ok=True)
    one = {"asked": "tail", "relation": args.relation}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, path, context, ready, prepare in (
            ("page-start", "", DESK, ".quality", top),
            ("page-evidence", ask(one, id=args.entity), DESK, ".answer", evidence),
            ("page-dark", ask(one, id=args.entity, relation=""), {**DESK, "color_scheme": "dark"}, ".answer", evidence),
            ("page-new-entity", ask(one, **NEW), DESK, ".answer", top),
            ("page-phone", ask(one, id=args.entity), PHONE, ".answer", top),
            ("page-entity", f"entity?{urlencode({'id': args.entity})}", DESK, ".drawing", top),
            ("page-review", "review", DESK, ".drawing", top),
            ("page-review-phone", "review", PHONE, ".drawing", top),
        ):
            if args.only not in (None, name):
                continue
            page = browser.new_context(**context).new_page()
            page.goto(f"{args.url}{path}")
            page.locator(ready).first.wait_for(timeout=120_000)
            prepare(page)
            page.wait_for_timeout(1500)  # the bars grow
            size = len(page.screenshot(path=IMAGES / f"{name}.png"))
            print(f"docs/images/{name}.png, {size // 1024} KiB")
        browser.close()


def ask(question: dict[str, str], **more: str) -> str:
    """The address of a question."""
    return f"#{urlencode({**question, **more})}"


def evidence(page: Page) -> Any:
    """Show the evidence for the best answer that the graph does not have, the question still in view."""
    page.locator(".answers li:not(.known) .answer").first.click()
    page.locator("svg.drawing").wait_for()
    page.evaluate("scrollTo(0, document.querySelector('#question').offsetTop - 24)")


def top(page: Page) -> Any:
    """As the page looks at first."""
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    main()
