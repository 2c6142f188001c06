"""The page, driven in Chromium as a person would: by keyboard, by click, on a phone."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import CLIENT, running

from satkgc.completion.review import accept as read_accepted
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


def focused(page) -> str:  # type: ignore[no-untyped-def]
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


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
    page.locator(".answer", has_text="any of various lithe-bodied mammals").press("Enter")
    page.locator("svg.drawing").wait_for()
    assert page.locator(".stop").all_text_contents() == ["dog", "canine", "mammal", "feline"]
    assert page.locator(".texts blockquote").count() == 2
    assert "dog : a member of the genus canis" in page.locator(".texts blockquote").first.text_content()
    assert page.locator(".similar li").count() == 5
    drawn = set(page.locator(".node text").all_text_contents())
    assert {"dog", "feline", "canine", "mammal", "wolf", "cat"} <= drawn
    assert page.locator(".drawing .edge.asked").count() == 1
    assert page.locator(".drawing .edge.path").count() == 3
    assert page.get_by_role("img", name="dog – similar to – wolf", exact=True).count() == 1
    assert "the shortest path" in page.locator(".legend").text_content()
    page.locator(".node[data-id=wolf]").focus()
    assert page.locator(".node[data-id=wolf]").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")  # a node becomes the question
    page.wait_for_function("() => document.querySelector('#entity').value === 'wolf'")
    page.locator(".answer").first.wait_for()
    assert focused(page) == "answers"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelector('.answer')")


@pytest.mark.parametrize(
    ("address", "answer", "question", "text"),
    [
        ("asked=tail&relation=hypernym&id=dog", "feline", "dog", "feline : any of"),
        ("asked=head&relation=hypernym&id=feline", "dog", "feline", "dog : a member"),
        ("asked=relation&relation=&id=dog&other=feline", "hypernym", "dog", "feline : any of"),
    ],
)
def test_the_evidence_says_what_the_list_says(browser, url: str, address, answer, question, text) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce") as context:
        for page in opened(context, url, f"/#{address}"):
            row = page.locator(".answer", has=page.locator(f".name:text-is('{answer}')"))
            listed = row.locator(".value").text_content()
            row.click()
            page.locator(".texts").wait_for()
            told = page.locator(".part", has=page.locator(".texts")).locator("> .muted").text_content()
            assert re.match(r"cosine (\S+)", told).group(1) == listed
            quotes = page.locator(".texts blockquote").all_text_contents()
            assert quotes[0].startswith(f"question{question} : ")
            assert quotes[1].startswith(f"answer{text}")


def test_what_the_graph_does_not_have_is_in_the_address_and_the_title_is_the_question(page) -> None:  # type: ignore[no-untyped-def]
    assert page.locator("#meaning").text_content() == ""
    pick(page, "dog")
    assert page.title() == "dog – hypernym – ? · satkgc"
    assert "cosine" in page.locator("#meaning").text_content()  # this run has no probabilities
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


def test_names_that_look_like_markup_stay_text(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "<img")
    page.locator("#relation").select_option(label="all relations")
    page.locator(".answer .tag").first.wait_for()
    page.locator(".answer").first.click()
    page.locator("svg.drawing").wait_for()
    assert page.locator("#run").text_content().startswith("little <b>world</b> · 14 entities")
    assert page.locator("#entity").input_value() == "<img src=x onerror=alert(1)>"
    assert page.locator("main img, main b b, main script").count() == 0
    assert page.title() == "<img src=x onerror=alert(1)> – all relations – ? · satkgc"


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


def saved(page, button: str, folder: Path) -> Path:  # type: ignore[no-untyped-def]
    """What a button downloads."""
    with page.expect_download() as download:
        page.locator(button).click()
    download.value.save_as(folder / download.value.suggested_filename)
    return folder / download.value.suggested_filename


def test_accepted_statements_are_kept_and_downloaded(page, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from pyoxigraph import RdfFormat, parse

    accept = "xpath=../button[contains(@class, 'accept')]"
    pick(page, "iri")
    page.locator("#relation").select_option(label="similar to")
    page.locator(".answer", has_text="a letter").locator(accept).click()
    page.locator("#mode").click()
    for words in ("", 'one\tthing, "so', "another"):
        page.locator("#new-name").fill('a "new"\\ one')
        page.locator("#new-description").fill(words)
        page.locator("#submit").click()
        page.wait_for_function(
            "(text) => decodeURIComponent(location.hash).includes(text)", arg=f"description={words[:3]}"
        )
        page.locator("#status", has_text="answers").wait_for()
        page.locator(".answer", has_text="a feline mammal").locator(accept).click()
    page.reload()  # kept by the browser
    page.wait_for_function("() => document.querySelector('#count').textContent === '4'")
    page.locator(".answer").first.wait_for()
    listed = saved(page, "#download-answers", tmp_path)
    page.locator("#collected").click()
    files = {ending: saved(page, f"#download-{ending}", tmp_path) for ending in ("tsv", "nt")}
    assert files["tsv"].name == "little-b-world-b-accepted.tsv"
    with files["tsv"].open(encoding="utf-8", newline="") as file:
        first, *fresh = csv.DictReader(file, delimiter="\t", strict=True)
    assert [first[part] for part in ("head", "relation", "tail")] == ["http://example.org/a b?c=1#d", "similar to", "ω"]
    assert [first[f"{part}_name"] for part in ("head", "relation", "tail")] == ["iri", "similar to", "Ωμέγα"]
    assert (first["probability"], first["accept"], first["known"]) == ("", "yes", "")
    assert -1 <= float(first["score"]) <= 1
    assert {row["head_name"] for row in fresh} == {'a "new"\\ one'}
    assert [row["head_description"] for row in fresh] == ["", 'one\tthing, "so', "another"]
    assert len({row["head"] for row in fresh}) == 3
    # The command reads the table, and says of the triples what the page says.
    assert read_accepted(files["tsv"], tmp_path / "again.nt") == (4, 4)
    with listed.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", strict=True)
    rows[2][header.index("accept")] = "yes"
    with (tmp_path / "looked through.tsv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])
    assert read_accepted(tmp_path / "looked through.tsv", tmp_path / "one.nt") == (1, 14)
    lines = files["nt"].read_text("utf-8").splitlines()
    assert lines[:4] == (tmp_path / "again.nt").read_text("utf-8").splitlines()
    triples = [
        (q.subject.value, q.predicate.value, q.object.value) for q in parse("\n".join(lines), RdfFormat.N_TRIPLES)
    ]
    assert triples[0][1:] == ("urn:satkgc:relation:similar%20to", "urn:satkgc:entity:%CF%89")
    labels = {s: text for s, p, text in triples if p.endswith("#label")}
    assert {s for s, p, _ in triples if p.startswith("urn:")} | {
        o for _, p, o in triples if p.startswith("urn:")
    } <= set(labels)
    assert sorted(labels.values()) == sorted(['a "new"\\ one'] * 3 + ["iri", "Ωμέγα", "cat", "similar to"])
    assert {text for _, p, text in triples if p.endswith("#comment")} == {'one\tthing, "so', "another"}


def test_what_was_cleared_is_put_back_and_every_button_has_its_name(page) -> None:  # type: ignore[no-untyped-def]
    pick(page, "dog")
    for at in range(3):
        page.locator("button.accept").nth(at).click()
    page.locator("#collected").click()
    labels = page.locator("#collection-list button").evaluate_all("all => all.map(b => b.ariaLabel)")
    assert len(set(labels)) == 3
    assert all(re.fullmatch(r"Remove dog – hypernym – .+", label) for label in labels)
    page.get_by_role("button", name=labels[0]).press("Enter")
    assert page.evaluate("document.activeElement.ariaLabel") == labels[1]
    page.locator("#collection-clear").click()
    assert page.locator("#count").text_content() == "0"
    page.get_by_role("button", name="Put 2 back").click()
    assert page.locator("#collection-list button").evaluate_all("all => all.map(b => b.ariaLabel)") == labels[1:]
    assert page.locator("#collection-clear").text_content() == "Clear"


def test_two_tabs_keep_one_list(page, url: str) -> None:  # type: ignore[no-untyped-def]
    count = "(n) => document.querySelector('#count').textContent === n"
    pick(page, "dog")
    for other in opened(page.context, url, "/#asked=tail&relation=hypernym&id=cat"):
        other.locator("button.accept").first.click()
        page.wait_for_function(count, arg="1")  # the other tab is told
        page.locator("button.accept").first.click()
        other.wait_for_function(count, arg="2")
    page.evaluate("for (const key of Object.keys(localStorage)) localStorage[key] = '[]'")  # of which it is not told
    page.locator("button.accept").nth(1).click()
    assert page.locator("#count").text_content() == "1"


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
            sheet = page.locator("#detail").bounding_box()
            assert sheet["width"] == 390
            assert sheet["y"] + sheet["height"] == pytest.approx(844, abs=1)
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
    app = create_app(lambda: completer, Settings(token="geheim"))
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


def test_the_path_goes_round_the_asked_edge(page) -> None:  # type: ignore[no-untyped-def]
    program = """async ([width, label]) => {
        const { draw } = await import("/static/drawing.js");
        const end = (id) => ({ id, name: id, neighbours: [] });
        const step = (source, target) => ({ source, source_name: source, target, target_name: target, direction: "out",
            relation: "r", relation_name: "r" });
        const triple = { head: end("head end"), relation: { id: label, name: label }, tail: end("tail end") };
        const path = [step("head end", "in the middle"), step("in the middle", "tail end")];
        const picture = draw(triple, [triple.head, triple.tail], path, false, width, () => {});
        picture.style.width = `${width}px`;
        document.body.append(picture);
        const box = (e) => e.getBoundingClientRect().toJSON();
        const line = picture.querySelector(".asked path"), at = line.getScreenCTM();
        const point = (share) => line.getPointAtLength(share * line.getTotalLength()).matrixTransform(at);
        const points = Array.from({ length: 101 }, (_, i) => point(i / 100));
        return [box(picture.querySelector("[data-id='in the middle']")), box(picture.querySelector(".asked text")),
            points.map(({ x, y }) => [x, y])];
    }"""
    for width, label in ((580, "hypernym"), (340, "r"), (580, "is a member of the same family as")):
        node, text, points = page.evaluate(program, [width, label])
        page.evaluate("document.body.lastChild.remove()")
        assert not [p for p in points if node["left"] < p[0] < node["right"] and node["top"] < p[1] < node["bottom"]]
        beside = node["left"] >= text["right"] or node["right"] <= text["left"]
        assert beside or node["top"] >= text["bottom"] or node["bottom"] <= text["top"]


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


def test_marks_of_the_tokenizer_become_one_dash(page) -> None:  # type: ignore[no-untyped-def]
    program = "async (texts) => { const { plain } = await import('/static/evidence.js'); return texts.map(plain); }"
    texts = [
        "<s>dog: a pet</s></s>is a</s>",
        "<s> dog: a pet </s> </s> is a </s>",
        "[CLS] dog : a pet [SEP] is a [SEP]",
    ]
    assert page.evaluate(program, texts) == ["dog: a pet — is a"] * 2 + ["dog : a pet — is a"]
