"""The page, driven in Chromium as a person would: by keyboard, by click, on a phone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import CLIENT, running

from satkgc.server.app import create_app
from satkgc.server.settings import Settings

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path (apt install chromium)")


@pytest.fixture(scope="module")
def browser():  # type: ignore[no-untyped-def]
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, url) -> Iterator:  # type: ignore[no-untyped-def, type-arg]
    """A fresh page; at the end nothing was fetched from elsewhere, nothing failed, no policy was broken."""
    with browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce") as context:
        yield from opened(context, url)


def opened(context, url, path: str = "/"):  # type: ignore[no-untyped-def]
    page = context.new_page()
    page.set_default_timeout(20_000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: message.type == "error" and troubles.append(message.text))
    page.on("request", lambda request: request.url.startswith((url, "blob:")) or troubles.append(request.url))
    page.goto(url + path)
    page.wait_for_function("() => document.querySelector('#relation').options.length > 1")
    yield page
    assert troubles == []
    page.close()


def pick(page, text: str) -> None:  # type: ignore[no-untyped-def]
    page.locator("#entity").fill(text)
    page.locator("[role=option]").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".answer").first.wait_for()


def names(page) -> list[str]:  # type: ignore[no-untyped-def]
    return page.locator(".answer .name").all_text_contents()


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
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    page.keyboard.press("a")
    assert page.locator("#count").text_content() == "1"


def test_answers_are_the_services_and_known_ones_are_marked(page, url: str) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    body = {"head": "dog", "relation": "hypernym", "k": 15}
    wanted = CLIENT.post(f"{url}/api/v1/complete", json=body).json()["answers"]
    assert names(page) == [a["name"] for a in wanted]
    known = page.locator(".answers li.known .name").all_text_contents()
    assert known == [a["name"] for a in wanted if a["known"]] == ["canine"]
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
    wanted = CLIENT.post(f"{url}/api/v1/complete", json=body).json()["answers"]
    assert names(page) == [a["name"] for a in wanted]
    assert page.locator(".answers li.known .name").all_text_contents() == ["hypernym"]
    assert page.locator("#status .statement").text_content() == "dog?canine"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("svg.drawing").wait_for()
    page.reload()  # the address holds the question
    page.locator(".answer").first.wait_for()
    assert names(page) == [a["name"] for a in wanted]
    assert [page.locator(f"#{field}").input_value() for field in ("entity", "other")] == ["dog", "canine"]
    page.locator("#other").fill("no such thing")
    page.locator("#submit").click()
    page.locator("#status.error").wait_for()
    page.get_by_text("the tail", exact=True).click()  # what the second field says no longer counts
    page.locator(".answer").first.wait_for()
    assert page.locator("#other").is_hidden()
    assert page.locator("#relation").is_visible()


def test_evidence_shows_path_texts_and_the_neighbourhood(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    page.locator(".answer", has_text="any of various lithe-bodied mammals").click()
    page.locator("svg.drawing").wait_for()
    assert page.locator(".stop").all_text_contents() == ["dog", "canine", "mammal", "feline"]
    assert page.locator(".texts blockquote").count() == 2
    assert "dog : a member of the genus canis" in page.locator(".texts blockquote").first.text_content()
    assert page.locator(".similar li").count() == 5
    drawn = set(page.locator(".node text").all_text_contents())
    assert {"dog", "feline", "canine", "mammal", "wolf", "cat"} <= drawn
    assert page.locator(".edge.asked").count() == 1
    assert page.locator(".edge.path").count() == 3
    page.locator(".node[data-id=wolf]").press("Enter")  # a node becomes the question
    page.wait_for_function("() => document.querySelector('#entity').value === 'wolf'")


def test_names_that_look_like_markup_stay_text(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "<img")
    page.locator("#relation").select_option(label="all relations")
    page.locator(".answer .tag").first.wait_for()
    page.locator(".answer").first.click()
    page.locator("svg.drawing").wait_for()
    assert page.locator("#run").text_content().startswith("little <b>world</b> · 14 entities")
    assert page.locator("#entity").input_value() == "<img src=x onerror=alert(1)>"
    assert page.locator("main img, main b b, main script").count() == 0
    assert page.title() == "Ask the graph · satkgc"


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
    page.get_by_role("button", name="Take back canine").click()
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


def test_accepted_statements_are_kept_and_downloaded(page, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from pyoxigraph import RdfFormat, parse

    pick(page, "iri")
    page.locator("#relation").select_option(label="similar to")
    page.locator(".answer", has_text="its id is a path").locator("xpath=..").locator(".accept").click()
    page.locator("#mode").click()
    page.locator("#new-name").fill('a "new"\\ one')
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#status').textContent.startsWith('a \"new\"')")
    page.locator(".answer", has_text="a feline mammal").locator("xpath=..").locator(".accept").click()
    page.reload()  # kept by the browser
    page.wait_for_function("() => document.querySelector('#count').textContent === '2'")
    page.locator("#collected").click()
    texts = {}
    for ending, button in (("tsv", "#download-tsv"), ("nt", "#download-nt")):
        with page.expect_download() as download:
            page.locator(button).click()
        assert download.value.suggested_filename == f"little-b-world-b-accepted.{ending}"
        download.value.save_as(tmp_path / ending)
        texts[ending] = (tmp_path / ending).read_text("utf-8")
    assert texts["tsv"].splitlines() == [
        "http://example.org/a b?c=1#d\tsimilar to\t../../etc/passwd",
        'new:a "new"\\ one\tsimilar to\tcat',
    ]
    triples = [(q.subject.value, q.predicate.value, q.object.value) for q in parse(texts["nt"], RdfFormat.N_TRIPLES)]
    assert len(triples) == 3
    assert triples[0][1:] == ("urn:satkgc:relation:similar%20to", "urn:satkgc:entity:..%2F..%2Fetc%2Fpasswd")
    assert triples[2][2] == 'a "new"\\ one'  # the name of what has no id in the graph
    page.locator("#collection-clear").click()
    assert page.locator("#count").text_content() == "0"


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


def test_on_a_phone_nothing_is_wider_than_the_screen(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    phone = {"width": 390, "height": 844}
    with browser.new_context(viewport=phone, is_mobile=True, has_touch=True, reduced_motion="reduce") as context:
        for page in opened(context, url, "/#asked=tail&relation=hypernym&id=dog"):
            page.locator(".answer").first.wait_for()
            page.locator(".answer").first.tap()
            page.locator("svg.drawing").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            sheet = page.locator("#detail").bounding_box()
            assert sheet["width"] == 390
            assert sheet["y"] + sheet["height"] == pytest.approx(844, abs=1)
            small = page.locator(".accept").evaluate_all(
                "all => all.filter(b => Math.min(b.offsetWidth, b.offsetHeight) < 36).length"
            )
            assert small == 0  # large enough for a thumb
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
    app = create_app(lambda: completer, Settings(token="geheim"))
    with running(app) as url, browser.new_context() as context:
        page = context.new_page()
        page.goto(url)
        for token in ("falsch", "geheim"):
            page.locator("#token-dialog[open]").wait_for()
            page.locator("#token").fill(token)
            page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('#relation').options.length === 3")
        page.reload()
        page.wait_for_function("() => document.querySelector('#relation').options.length === 3")
        page.close()


def test_labels_of_a_drawing_lie_beside_each_other(page) -> None:  # type: ignore[no-untyped-def]
    graph = {
        "nodes": [{"id": i, "width": 60 + 9 * (i % 7), "height": 28} for i in range(24)],
        "edges": [[0, i] for i in range(1, 10)] + [[1, i] for i in range(10, 24)],
    }
    graph["nodes"][0]["fixed"], graph["nodes"][1]["fixed"] = {"x": 150, "y": 180}, {"x": 450, "y": 200}
    program = """async ({nodes, edges}) => {
        const { layout } = await import("/static/layout.js");
        return [layout(nodes, edges, 600, 380), layout(nodes, edges, 600, 380)];
    }"""
    places, again = page.evaluate(program, graph)
    assert places == again
    for i, (node, at) in enumerate(zip(graph["nodes"], places, strict=True)):
        assert node["width"] / 2 <= at["x"] <= 600 - node["width"] / 2
        assert node["height"] / 2 <= at["y"] <= 380 - node["height"] / 2
        for other, there in list(zip(graph["nodes"], places, strict=True))[i + 1 :]:
            beside = abs(at["x"] - there["x"]) >= (node["width"] + other["width"]) / 2 - 1
            below = abs(at["y"] - there["y"]) >= (node["height"] + other["height"]) / 2 - 1
            assert beside or below, json.dumps([node, at, other, there])


def test_probabilities_are_written_so_that_nothing_is_certain(page) -> None:  # type: ignore[no-untyped-def]
    values = [0, 0.0004, 0.0123, 0.0994, 0.5, 0.994, 0.9994, 1]
    program = "async (values) => { const { percent } = await import('/static/dom.js'); return values.map(percent); }"
    shown = page.evaluate(program, values)
    assert shown == ["<0.1 %", "<0.1 %", "1.2 %", "9.9 %", "50 %", "99 %", "99.9 %", ">99.9 %"]
