"""The page: asking by keyboard and by click, and what the answers are."""

from __future__ import annotations

from browsing import focused, names, pick
from running import CLIENT


def test_autocomplete_by_keyboard_alone(page) -> None:  # type: ignore[no-untyped-def]
    field = page.locator("#entity")
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("/")  # from anywhere
    page.keyboard.type("ca")
    page.locator("[role=option]").first.wait_for()
    assert field.get_attribute("aria-expanded") == "true"
    shown = page.locator(".option-name").all_text_contents()
    assert set(shown[:2]) == {"canine", "cat"}
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]")
    assert chosen.get_attribute("id") == field.get_attribute("aria-activedescendant")
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()
    assert field.input_value() == shown[1]
    assert field.get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowDown")  # into the answers, then down them
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.answer')[1]")
    page.keyboard.press("Enter")
    page.locator("svg.drawing").wait_for()
    assert focused(page) == "detail"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Close the evidence"
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    assert page.evaluate("document.activeElement === document.querySelectorAll('.answer')[1]")
    rows = page.locator(".answers li").evaluate_all("all => all.map(li => li.className)")
    for at, row in enumerate(rows):  # what the graph has is not collected
        page.locator(".answer").nth(at).press("a")
        assert page.locator("#count").text_content() == str(rows[: at + 1].count(""))
        assert page.locator(".answers li").nth(at).locator("button.accept").count() == (row == "")
    assert {"", "known"} == set(rows)


def test_answers_are_the_services_and_known_ones_are_marked(page, url: str) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    body = {"head": "dog", "relation": "hypernym", "k": 15}
    expected = CLIENT.post(f"{url}/api/v1/complete", json=body).json()["answers"]
    assert names(page) == [a["name"] for a in expected]
    known = page.locator(".answers li.known .name").all_text_contents()
    assert known == [a["name"] for a in expected if a["known"]] == ["canine"]
    lengths = page.locator(".bar span").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    assert lengths == sorted(lengths, reverse=True)
    page.locator("#hide-known").check()
    page.wait_for_function("() => !document.querySelector('.answers li.known') && document.querySelector('.answer')")
    assert "canine" not in names(page)


def test_the_other_direction_and_all_relations(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "canine")
    page.get_by_text("the head", exact=True).click()
    page.locator(".answers li.known").first.wait_for()
    assert set(page.locator(".answers li.known .name").all_text_contents()) == {"dog", "wolf"}
    order = page.evaluate("[...document.querySelector('#triple').children].map(slot => slot.id)")
    assert order == ["slot-other", "slot-relation", "slot-entity"]
    page.locator("#relation").select_option(label="all relations")
    page.locator(".answer .tag").first.wait_for()
    assert set(page.locator(".answer .tag").all_text_contents()) == {"hypernym", "similar to"}
    page.go_back()  # to the question before
    page.wait_for_function("() => !document.querySelector('.answer .tag') && document.querySelector('.answer')")
    assert page.locator("#relation").input_value() == "hypernym"
    page.go_forward()
    page.locator(".answer .tag").first.wait_for()
    assert page.locator("#relation").input_value() == ""


def test_what_joins_two_entities(page, url: str) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    page.get_by_text("the relation", exact=True).click()
    assert page.locator("#relation").is_hidden()
    page.locator("#status", has_text="Type the tail as well").wait_for()
    assert page.locator(".answer").count() == 0
    page.locator("#other").fill("cani")
    page.locator("#other-options [role=option]").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()
    body = {"head": "dog", "tail": "canine", "k": 15}
    expected = CLIENT.post(f"{url}/api/v1/complete", json=body).json()["answers"]
    assert names(page) == [a["name"] for a in expected]
    assert page.locator(".answers li.known .name").all_text_contents() == ["hypernym"]
    assert page.locator("#status .statement").text_content() == "dog?canine"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("svg.drawing").wait_for()
    page.reload()  # the address holds the question
    page.locator(".answer").first.wait_for()
    assert names(page) == [a["name"] for a in expected]
    assert [page.locator(f"#{field}").input_value() for field in ("entity", "other")] == ["dog", "canine"]
    page.locator("#other").fill("no such thing")
    page.locator("#other-options .none").wait_for()
    page.locator("#submit").click()  # through the note, which lies over it
    page.locator("#status.error").wait_for()
    page.get_by_text("the tail", exact=True).click()  # what the second field says no longer counts
    page.locator(".answer").first.wait_for()
    assert page.locator("#other").is_hidden()
    assert page.locator("#relation").is_visible()


def test_what_the_graph_does_not_have_is_in_the_address_and_the_title_is_the_question(page) -> None:  # type: ignore[no-untyped-def]
    assert page.locator("#meaning").text_content() == ""
    pick(page, "dog")
    assert page.title() == "dog – hypernym – ? · satkgc"
    assert "score" in page.locator("#meaning").text_content()  # this run has no probabilities
    page.locator("#hide-known").check()
    page.wait_for_function("() => !document.querySelector('.answers li.known') && document.querySelector('.answer')")
    shown = names(page)
    page.reload()
    page.locator(".answer").first.wait_for()
    assert page.locator("#hide-known").is_checked()
    assert names(page) == shown
    page.go_back()
    page.locator(".answers li.known").wait_for()
    assert not page.locator("#hide-known").is_checked()
    page.go_back()  # to the page as it was at first
    page.locator("#status", has_text="Type an entity to begin.").wait_for()
    assert page.locator(".answer, .glossary[open]").count() == 0
    assert page.locator("#entity").input_value() == ""
    assert page.locator("#examples").is_visible()
    assert page.title() == "Ask the graph · satkgc"
    page.get_by_text("What do these words mean?").click()
    assert page.get_by_text("The graph holds this statement already.").is_visible()


def test_a_place_on_the_page_is_no_question(page, url: str) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    page.locator("#relation").select_option(label="similar to")
    page.wait_for_function("() => document.querySelector('#status').textContent.startsWith('dogsimilar to')")
    shown, address = names(page), page.url
    page.locator(".skip").press("Enter")
    assert focused(page) == "answers"
    assert page.url == address
    page.evaluate("location.hash = '#answers'")
    page.evaluate("new Promise(done => setTimeout(done, 300))")
    assert (names(page), page.locator("#relation").input_value()) == (shown, "similar to")
    page.goto(f"{url}/#answers")
    page.reload()
    page.locator("#status", has_text="Type an entity to begin.").wait_for()


def test_of_several_that_bear_a_name_one_is_picked(page) -> None:  # type: ignore[no-untyped-def]
    field, options = page.locator("#entity"), page.locator("#options [role=option]")
    with page.expect_request(lambda request: "entities?" in request.url) as asked:
        field.fill("Bank")
    assert "limit=50" in asked.value.url
    options.nth(1).wait_for()
    for press in (lambda: page.keyboard.press("Enter"), page.locator("#submit").click):
        press()
        page.locator("#status.error", has_text="2 are called “Bank”: pick one").wait_for()
        options.first.wait_for()
        assert page.locator("#options .none").text_content() == "2 are called “Bank”: pick one"
        assert options.count() == 2
        assert focused(page) == "entity"
        assert page.locator(".answer").count() == 0
        page.keyboard.press("Escape")
    page.locator("#submit").click()
    options.nth(1).wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = options.nth(1).locator(".option-text").text_content()
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()
    assert page.locator("#entity-text").text_content() == chosen


def test_enter_takes_nothing_that_was_suggested_for_another_text(page) -> None:  # type: ignore[no-untyped-def]
    page.locator("#entity").fill("cat")
    page.locator("[role=option]").first.wait_for()
    program = """(field) => {
        field.value = "wolf";
        field.dispatchEvent(new Event("input"));
        return field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
    }"""
    assert page.locator("#entity").evaluate(program)  # left to the form, which looks the name up
    assert page.locator("#entity").input_value() == "wolf"


def test_a_slow_search_does_not_take_the_place_of_a_later_question(page) -> None:  # type: ignore[no-untyped-def]
    waiting = []
    page.route("**/api/v1/entities?*", lambda route: waiting.append((route, route.fetch())))
    page.locator("#entity").fill("dog")
    page.keyboard.press("Enter")
    page.locator("#examples button", has_text="cat").click()
    page.locator(".answer").first.wait_for()
    before = page.locator("#status").text_content(), names(page)
    assert waiting
    for route, response in waiting:
        route.fulfill(response=response)
    page.wait_for_timeout(300)
    assert (page.locator("#status").text_content(), names(page)) == before
    assert page.locator("#entity").input_value() == "cat"


def test_probabilities_are_written_so_that_nothing_is_certain(page) -> None:  # type: ignore[no-untyped-def]
    values = [0, 0.0004, 0.0123, 0.0994, 0.5, 0.994, 0.9994, 1]
    program = "async (values) => { const { percent } = await import('/static/dom.js'); return values.map(percent); }"
    shown = page.evaluate(program, values)
    assert shown == ["<0.1 %", "<0.1 %", "1.2 %", "9.9 %", "50 %", "99 %", "99.9 %", ">99.9 %"]


def test_keys_work_after_a_click(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    page.locator(".answer").first.click()
    page.locator("svg.drawing").wait_for()
    rows = page.locator(".answers li").evaluate_all("all => all.map(li => li.className)")
    for at in range(1, len(rows)):
        page.keyboard.press("ArrowDown")
        assert page.locator(".answers li.open .rank").text_content() == str(at + 1)
        assert page.locator("#detail h2 b").last.text_content() == names(page)[at]
    page.keyboard.press("ArrowDown")  # there are no more
    page.keyboard.press("ArrowUp")
    page.keyboard.press("a")
    assert page.locator(".answers li").nth(len(rows) - 2).locator(".accept").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    page.locator("button.accept").first.click()  # whose row is then the one that the arrows leave
    page.keyboard.press("ArrowDown")
    row = page.evaluate(
        "[...document.querySelectorAll('.answers li')].findIndex(li => li.contains(document.activeElement))"
    )
    assert row == next(i for i, kind in enumerate(rows) if "known" not in kind) + 1
