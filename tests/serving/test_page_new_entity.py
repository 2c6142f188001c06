"""The page: an entity that the graph does not have, and what is known of it."""

from __future__ import annotations

import json
import re

import pytest


def test_a_new_entity_is_described_and_completed(page) -> None:  # type: ignore[no-untyped-def]
    page.locator("#mode").click()
    page.keyboard.type("labradoodle")
    page.keyboard.press("Tab")
    page.keyboard.type("a dog bred from a labrador and a poodle")
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()
    assert page.locator("#status").text_content().startswith("labradoodle")
    assert page.locator(".answers li.known").count() == 0
    page.locator(".answer").first.click()
    page.locator("svg.drawing").wait_for()
    assert "labrador" in page.locator(".texts").text_content()
    page.reload()  # the question is in the address
    page.locator(".answer").first.wait_for()
    assert page.locator("#new-name").input_value() == "labradoodle"


def test_what_is_known_of_a_new_entity_reaches_the_model(page) -> None:  # type: ignore[no-untyped-def]
    page.locator("#mode").click()
    page.locator("#new-name").fill("labradoodle")
    for side, other in (("head", "canine"), ("tail", "wolf")):
        page.locator("#fact-relation").select_option(json.dumps(["hypernym", side], separators=(",", ":")))
        page.locator("#fact-other").fill(other)
        page.locator("#fact-options [role=option]").first.wait_for()
        page.keyboard.press("Enter")
        page.locator(f"#facts li:has-text('{other}')").wait_for()
        assert page.locator("#fact-other").input_value() == ""
    assert [via.split() for via in page.locator("#facts .via").all_text_contents()] == [
        ["—", "hypernym", "→"],
        ["←", "hypernym", "—"],
    ]

    def words() -> set[str]:
        page.locator(".answer").first.wait_for()
        page.locator(".answer").first.click()
        page.locator(".texts").wait_for()
        return set(re.findall(r"\w+", page.locator(".texts blockquote").first.text_content()))

    assert {"canine", "wolf"} <= words()
    page.reload()  # they are in the address
    page.locator("#facts li").nth(1).wait_for()
    assert {"canine", "wolf"} <= words()
    page.get_by_role("button", name="Remove canine").click()
    page.locator(".answer").first.wait_for()
    assert {"canine", "wolf"} & words() == {"wolf"}
    page.locator("#fact-other").fill("Dog")  # typed and not picked, but only one can be meant
    page.locator("#submit").click()
    page.locator("#facts li:has-text('dog')").wait_for()
    assert {"dog", "wolf"} <= words()
    assert page.locator("svg.drawing .edge").count() >= 3  # both facts and the question
    page.locator("#fact-other").fill("doggo")
    page.locator("#submit").click()
    page.locator("#status:has-text('nothing in the graph is called “doggo”')").wait_for()


@pytest.mark.parametrize(
    "facts", ["garbage", "", "null", "[null]", "[1]", '{"a":1}', '[{"relation":"nope","side":"head","other":"dog"}]',
              '[{"relation":"hypernym","side":"x","other":"dog"}]'],
)  # fmt: skip
def test_facts_of_an_address_that_cannot_be_read_are_said_and_nothing_is_left(page, facts: str) -> None:  # type: ignore[no-untyped-def]
    one = '{"relation":"hypernym","side":"head","other":"canine"}'
    good = f"[{one},{one}]"
    set_hash = "([name, facts]) => { location.hash = new URLSearchParams({ asked: 'zzz', name, facts }) }"
    page.evaluate(set_hash, ["Ann", good])
    page.locator(".answer").first.wait_for()
    assert page.locator("#facts li").count() == 1  # said twice
    assert page.locator("#triple").get_attribute("data-asked") == "tail"
    page.evaluate(set_hash, ["Bob", facts])
    page.locator("#status:has-text('the facts in this address cannot be read')").wait_for()
    assert page.locator("#new-name").input_value() == "Bob"
    assert page.locator("#facts li, .answer").count() == 0
