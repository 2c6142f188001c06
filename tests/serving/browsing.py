"""Driving the page in Chromium as a person would."""

from __future__ import annotations

import shutil

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


def opened(context, url, path: str = "/", ready: str = "#relation option + option"):  # type: ignore[no-untyped-def]
    page = context.new_page()
    page.set_default_timeout(20_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("request", lambda request: request.url.startswith((url, "blob:")) or troubles.append(request.url))
    page.goto(url + path)
    page.locator(ready).first.wait_for(state="attached")
    yield page
    assert troubles == []
    page.close()


def pick(page, text: str) -> None:  # type: ignore[no-untyped-def]
    page.locator("#entity").fill(text)
    page.locator("[role=option]").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()


def focused(page) -> str:  # type: ignore[no-untyped-def]
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


def names(page) -> list[str]:  # type: ignore[no-untyped-def]
    return page.locator(".answer .name").all_text_contents()
