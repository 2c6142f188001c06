"""The page of a review: decided by keys and by clicks, in two tabs, with a server that is killed in between."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from browsing import opened
from running import CLIENT, running, until
from test_run import process

from satkgc.completion import Completer, accept_proposals
from satkgc.kg import read_decisions
from satkgc.serving.app import create_app
from satkgc.serving.settings import ServiceSettings


def review(context, url: str):  # type: ignore[no-untyped-def]
    yield from opened(context, url, "/review", ready="#queue li")


def decided(page) -> int:  # type: ignore[no-untyped-def]
    """How many the page says are decided."""
    return int(page.locator("#progress-text").text_content().split()[0])


def press(page, key: str) -> None:  # type: ignore[no-untyped-def]
    """A decision by key, until the page says that it is kept."""
    before = decided(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "n => document.querySelector('#progress-text').textContent.startsWith(`${n} of`)", arg=before + 1
    )


def current(page) -> tuple[str, ...]:  # type: ignore[no-untyped-def]
    """The names of the proposal that is looked at."""
    return tuple(page.locator("#queue .current b, #queue .current i").all_text_contents())


def test_a_hundred_decisions_and_a_killed_server_in_between(browser, own_run: Path, proposals: Path) -> None:  # type: ignore[no-untyped-def]
    said: list[dict] = []  # what the service acknowledged

    def note(response) -> None:  # type: ignore[no-untyped-def]
        if response.url.endswith("/decisions") and response.status == 200:
            said.append(response.request.post_data_json)

    with browser.new_context(reduced_motion="reduce") as context:
        with process(own_run, "--proposals", str(proposals)) as (server, url):
            until(lambda: CLIENT.get(f"{url}/health").status_code == 200)
            page = context.new_page()
            page.on("response", note)
            page.goto(f"{url}/review")
            page.locator("#queue li").first.wait_for()
            for number in range(50):
                press(page, "arras"[number % 5])
            server.send_signal(signal.SIGKILL)
            server.wait()
        lost = current(page)
        page.keyboard.press("a")
        page.locator("#status.error", has_text="Not kept: the service does not answer").wait_for()
        assert (current(page), decided(page), len(said)) == (lost, 50, 50)
        app = create_app(lambda: Completer.load(own_run), ServiceSettings(proposals=proposals))
        with running(app, port=int(url.rpartition(":")[2])):
            page.locator("#status", has_text="The service is back: decide again.").wait_for()
            for number in range(50):
                press(page, "arras"[number % 5])
            page.reload()
            page.locator("#queue li").first.wait_for()
            text = page.locator("#progress-text").text_content()
            assert text == "100 of 120 decided: 40 accepted, 40 rejected, 20 skipped"
            page.close()
    kept = [(d.head, d.relation, d.tail, d.verdict) for d in read_decisions(own_run).values()]
    assert kept == [tuple(body[part] for part in ("head", "relation", "tail", "verdict")) for body in said]
    assert len(set(kept)) == 100
    assert accept_proposals(own_run, own_run / "accepted.nt") == (40, 100)


def test_a_list_that_arrives_after_a_decision_is_asked_for_again(browser, reviewing: str) -> None:  # type: ignore[no-untyped-def]
    held: list = []
    with browser.new_context(reduced_motion="reduce") as context:
        for page in review(context, reviewing):
            first = current(page)

            def hold(route) -> None:  # type: ignore[no-untyped-def]
                held.append((route, route.fetch()))

            page.route("**/proposals?*", hold, times=1)
            page.evaluate("window.dispatchEvent(new Event('focus'))")
            while not held:
                page.wait_for_timeout(20)
            press(page, "a")
            (route, response) = held[0]
            with page.expect_response("**/proposals?*"):  # the second one
                route.fulfill(response=response)
            page.wait_for_timeout(200)
            assert decided(page) == 1
            assert first not in [
                tuple(row.locator("b, i").all_text_contents()) for row in page.locator("#queue li").all()
            ]


def test_buttons_undo_and_what_stands_beside_a_proposal(browser, reviewing: str, own_run: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce") as context:
        for page in review(context, reviewing):
            page.locator(".detail .drawing").wait_for()
            assert page.locator(".proposal-texts p").count() == 2
            assert page.locator(".texts blockquote").count() == 2
            assert page.get_by_role("button", name="Undo").is_disabled()
            first = current(page)
            page.get_by_role("button", name="Reject").click()
            page.locator("#status", has_text="Rejected").wait_for()
            second = current(page)
            assert second != first
            page.keyboard.press("a")  # keys work after a click
            page.locator("#status", has_text="Accepted").wait_for()
            page.reload()  # what this tab did can still be taken back
            page.locator("#queue li").first.wait_for()
            for names in (second, first):
                page.keyboard.press("u")
                page.locator("#status", has_text=f"Taken back: {''.join(names)}").wait_for()
                assert current(page) == names
            assert read_decisions(own_run) == {}
            page.keyboard.press("ArrowDown")
            assert current(page) == second
            page.keyboard.press("s")
            page.locator("#status", has_text="Skipped").wait_for()
            page.get_by_text("skipped", exact=True).click()
            page.wait_for_function("() => document.querySelectorAll('#queue li').length === 1")
            assert current(page) == second
            page.keyboard.press("a")  # a decision can be another
            page.locator("#status", has_text="There are none.").wait_for()
            (decision,) = read_decisions(own_run).values()
            assert decision.verdict == "accept"
            with page.expect_download() as download:
                page.locator("#download").click()
            download.value.save_as(tmp_path / "accepted.tsv")
            assert accept_proposals(tmp_path / "accepted.tsv", tmp_path / "accepted.nt") == (1, 1)


def left_by_relation(page) -> dict[str, int]:  # type: ignore[no-untyped-def]
    options = page.locator("#relation option").all_text_contents()
    return {name: int(n) for name, n in (re.fullmatch(r"(.*) \((\d+) left\)", o).groups() for o in options)}


def test_the_queue_of_one_relation(browser, reviewing: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(reduced_motion="reduce") as context:
        for page in review(context, reviewing):
            left = left_by_relation(page)
            assert left["hypernym"] + left["similar to"] == left["all relations"] == 120
            page.locator("#relation").select_option("similar to")
            relations = "() => [...document.querySelectorAll('#queue i')].every(i => i.textContent === 'similar to')"
            page.wait_for_function(relations)
            press(page, "r")
            assert page.locator("#relation").input_value() == "similar to"
            fewer = {name: left[name] - (name != "hypernym") for name in left}
            assert left_by_relation(page) == fewer  # counted on with every decision
            assert page.evaluate(relations)


def test_two_tabs_share_what_is_decided(browser, reviewing: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(reduced_motion="reduce") as context:
        for page in review(context, reviewing):
            first = current(page)
            for other in review(context, reviewing):
                assert current(other) == first
                press(other, "r")
            page.evaluate("window.dispatchEvent(new Event('focus'))")
            page.wait_for_function("() => document.querySelector('#progress-text').textContent.startsWith('1 of')")
            assert first not in [
                tuple(li.locator("b, i").all_text_contents()) for li in page.locator("#queue li").all()
            ]


def test_on_a_phone_the_buttons_are_there_and_nothing_is_wider(browser, reviewing: str) -> None:  # type: ignore[no-untyped-def]
    phone = {"width": 390, "height": 844}
    with browser.new_context(viewport=phone, is_mobile=True, has_touch=True, reduced_motion="reduce") as context:
        for page in review(context, reviewing):
            page.locator(".drawing").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            page.locator(".decide-accept").tap()
            page.wait_for_function("() => document.querySelector('#progress-text').textContent.startsWith('1 of')")


def test_without_proposals_the_page_says_how_to_get_some(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(reduced_motion="reduce") as context:
        for page in opened(context, url, "/review", ready="#status:not(:empty)"):
            page.locator("#status", has_text="start the service with --proposals FILE").wait_for()
            assert page.locator("#to-review").is_hidden()
