"""The page: on a phone, in forced colours, with a token, and when something goes wrong."""

from __future__ import annotations

from browsing import opened, pick
from running import running

from satkgc.serving.app import create_app
from satkgc.serving.settings import ServiceSettings


def test_what_goes_wrong_is_said(page) -> None:  # type: ignore[no-untyped-def]
    page.locator("#entity").fill("zzzzqqqq")
    page.locator(".options .none").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.locator(".status.error").wait_for()
    assert "zzzzqqqq" in page.locator("#status").text_content()
    page.locator("#entity").fill("")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#status').textContent === 'Type an entity to begin.'")
    pick(page, "dog")
    page.locator("#entity").fill("")
    page.locator("#submit").click()  # nothing is asked: nothing is answered
    page.locator("#status", has_text="Type an entity to begin.").wait_for()
    assert page.locator(".answer").count() == 0
    assert page.locator("#download-answers").is_hidden()


def test_on_a_phone_nothing_is_wider_than_the_screen(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    phone = {"width": 390, "height": 844}
    with browser.new_context(viewport=phone, is_mobile=True, has_touch=True, reduced_motion="reduce") as context:
        for page in opened(context, url, "/#asked=tail&relation=hypernym&id=dog"):
            page.locator(".answer").first.wait_for()
            page.locator(".answer").first.tap()
            page.locator("svg.drawing").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            page.wait_for_function(  # the evidence is a sheet over the lower edge
                """() => { const sheet = document.querySelector("#detail").getBoundingClientRect();
                           return sheet.width === 390 && Math.abs(sheet.bottom - 844) <= 1; }"""
            )
            small = page.locator(".accept").evaluate_all(
                "all => all.filter(b => Math.min(b.offsetWidth, b.offsetHeight) < 36).length"
            )
            assert small == 0  # large enough for a thumb
            page.keyboard.press("Tab")  # nothing under the sheet takes the focus
            assert page.evaluate("document.querySelector('#detail').contains(document.activeElement)")
            page.locator(".answer").first.evaluate("e => e.focus()")
            assert page.evaluate("document.querySelector('#detail').contains(document.activeElement)")
            page.keyboard.press("Escape")
            assert page.locator(".answer").first.evaluate("e => e === document.activeElement")
        for page in opened(context, url, f"/#asked=tail&relation=hypernym&name={'Llan' * 30}"):
            page.locator(".answer").first.wait_for()
            page.evaluate("scrollTo(0, 0)")
            page.locator("#fact-other").fill("canine")
            page.locator("#fact-options [role=option]").first.tap()
            page.locator("#facts li").wait_for()
            page.locator(".answer").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            assert page.locator("#fact-other").evaluate("e => e.getBoundingClientRect().top") > 0  # for one more fact


def test_the_page_asks_for_the_token_and_keeps_it(browser, completer) -> None:  # type: ignore[no-untyped-def]
    app = create_app(lambda: completer, ServiceSettings(token="geheim"))
    with running(app) as url, browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        page.locator("#token-dialog[open]").wait_for()
        assert page.locator("#token-note").text_content() == ""
        for token in ("falsch", "ключ", "geheim"):  # no header can hold the second
            page.locator("#token").fill(token)
            page.keyboard.press("Enter")
            if token != "geheim":
                page.locator("#token-note", has_text="That token was not accepted.").wait_for()
                page.wait_for_function("() => document.querySelector('#token').value === ''")
        page.wait_for_function("() => document.querySelector('#relation').options.length === 3")
        assert page.locator("#links").is_hidden()  # a link cannot send the token
        page.reload()
        page.wait_for_function("() => document.querySelector('#relation').options.length === 3")
        page.close()


def test_in_forced_colours_what_is_chosen_can_be_seen(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(forced_colors="active", reduced_motion="reduce") as context:
        for page in opened(context, url, "/#asked=head&relation=hypernym&id=canine"):
            page.locator(".answer").first.wait_for()
            colours = page.locator(".switch span").evaluate_all(
                "all => all.map(e => getComputedStyle(e).backgroundColor)"
            )
            assert colours[0] == colours[1] != colours[2]
            bar, ground = page.locator("li:not(.known) .bar span, li:not(.known) .bar").evaluate_all(
                "all => all.slice(0, 2).map(e => getComputedStyle(e).backgroundColor)"
            )
            assert bar != ground
            assert page.locator("#submit").evaluate("e => getComputedStyle(e).borderTopStyle") == "solid"
