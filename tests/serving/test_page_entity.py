"""The start page, the page of an entity, and the API's own page."""

from __future__ import annotations

import json
from urllib.parse import quote

import pandas as pd
import pytest
from browsing import opened, pick
from running import CLIENT, running

from little_world import write_run
from satkgc.completion import Completer
from satkgc.kg import KnowledgeGraph
from satkgc.serving.app import create_app

CONTEXT = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce"}
LABELS = """() => {
    const boxes = [...document.querySelectorAll(".edge.named text, .node text")].map((e) => e.getBoundingClientRect());
    const beside = (a, b) => a.left >= b.right - 2 || b.left >= a.right - 2;
    const clash = (a, b) => !beside(a, b) && a.top < b.bottom - 3 && b.top < a.bottom - 3;
    return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => clash(a, b))).length;
}"""


def test_an_entity_has_a_page_with_its_statements_and_named_edges(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(**CONTEXT) as context:
        for page in opened(context, url, "/entity?id=mammal", ready="svg.drawing"):
            assert page.locator("h1").text_content() == "mammal"
            assert page.title() == "mammal · satkgc"
            groups = page.locator(".statement-group")
            assert [
                (group.locator(".via").text_content(), sorted(group.locator("li").all_text_contents()))
                for group in groups.all()
            ] == [("← hypernym —", ["canine", "feline"]), ("— hypernym →", ["animal"])]
            assert page.locator(".edge.named text").all_text_contents() == ["hypernym"] * 3
            assert page.evaluate(LABELS) == 0
            page.locator(".statement-group a", has_text="canine").click()
            page.locator("h1", has_text="canine").wait_for()
            page.locator(".node[data-id=dog]").press("Enter")
            page.locator("h1", has_text="dog").wait_for()
            page.get_by_text("Ask what leads to it").click()
            page.locator(".answer").first.wait_for()
            assert page.locator("#entity").input_value() == "dog"
            page.locator(".answer").first.click()
            page.locator(".detail h2 a").first.click()  # and back, from the evidence
            page.locator(".entity h1").wait_for()


@pytest.mark.parametrize("id", ["<script>", "http://example.org/a b?c=1#d", "../../etc/passwd"])
def test_whatever_an_entity_is_called_is_text_and_addresses_are_links(browser, url: str, id: str) -> None:  # type: ignore[no-untyped-def]
    with browser.new_context(**CONTEXT) as context:
        page = context.new_page()
        page.goto(f"{url}/entity")
        page.evaluate("id => { location.search = new URLSearchParams({ id }) }", id)
        page.locator("svg.drawing").wait_for()
        assert page.locator(".entity-head .id").text_content() == id
        links = page.locator(".entity-head .id a")
        assert links.count() == id.startswith("http")
        if links.count():
            assert links.get_attribute("href") == id
            assert "noreferrer" in links.get_attribute("rel")
        assert page.locator("main img, main script").count() == 0
        page.goto(f"{url}/entity?id=nobody")
        page.locator("#status.error", has_text="unknown entity 'nobody'").wait_for()
        page.close()


def test_the_start_page_says_what_is_here(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    def measured(route) -> None:  # type: ignore[no-untyped-def]
        ranks = {"mrr": 0.25, "hits_at_1": 0.125, "hits_at_10": 0.5}
        relations = [{"id": "hypernym", "name": "hypernym", "triples": 3, **ranks}]
        quality = {"triples": 3, "candidates": "all entities", **ranks, "relations": relations}
        route.fulfill(json={**route.fetch().json(), "quality": quality})

    with browser.new_context(**CONTEXT) as context:
        for page in opened(context, url):
            text = page.locator("#about").text_content()
            assert "little <b>world</b>" in text
            assert "It was never measured" in text
            pick(page, "dog")
            assert page.locator("#about").is_hidden()
            page.route("**/api/v1/info?", measured)
            page.goto(f"{url}/")
            page.reload()
            rows = page.locator(".quality tbody tr")
            rows.first.wait_for()
            assert rows.nth(0).locator("th, td").all_text_contents() == [
                "hypernym",
                "7",
                "3",
                "0.250",
                "",
                "13 %",
                "50 %",
            ]
            assert rows.nth(1).locator("th, td").all_text_contents() == ["similar to", "4", "0", "", "", "", ""]


def test_every_request_is_described_and_can_be_tried(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    paths = CLIENT.get(f"{url}/api/v1/openapi.json").json()["paths"]
    with browser.new_context(**CONTEXT) as context:
        for page in opened(context, url, "/docs", ready=".operation"):
            assert page.locator(".operation summary code").all_text_contents() == list(paths)
            complete = page.locator(".operation", has=page.locator("code:text-is('/api/v1/complete')"))
            complete.locator("summary").click()
            complete.locator(".try select").select_option(label="(dog, ?, canine)")
            complete.locator("button").click()
            page.wait_for_function("() => document.querySelector('.try pre:not([hidden])')?.textContent.length > 3")
            said = json.loads(complete.locator("pre").text_content())
            assert said == CLIENT.post(f"{url}/api/v1/complete", json={"head": "dog", "tail": "canine"}).json()
            search = page.locator(".operation", has=page.locator("code:text-is('/api/v1/entities')"))
            search.locator("summary").click()
            search.locator("input[name=q]").fill("wol")
            search.locator("button").click()
            search.locator("pre", has_text='"wolf"').wait_for()


def test_types_filter_the_answers_and_objections_are_marked(browser, tiny_backbone, tmp_path) -> None:  # type: ignore[no-untyped-def]
    broader, type_of = "http://www.w3.org/2004/02/skos/core#broader", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    rows = [(f"e{i}", broader, f"e{i + 1}") for i in range(12)]
    rows += [(f"e{i}", type_of, "even" if i % 2 == 0 else "odd") for i in range(13)]
    kg = KnowledgeGraph.from_pandas(pd.DataFrame(rows, columns=["head", "relation", "tail"]), split="none")
    run = write_run(tmp_path / "run", kg, tiny_backbone)
    with running(create_app(lambda: Completer.load(run))) as url, browser.new_context(**CONTEXT) as context:
        for page in opened(context, url, f"/#asked=tail&relation={quote(broader, safe='')}&id=e5"):
            page.locator(".answer").first.wait_for()
            marks = page.locator(".mark-known").all_text_contents()
            assert "said already" in marks
            assert page.locator(".answers li").last.locator(".mark-against").text_content() == "cycle"
            page.locator(".answers li").last.locator(".answer").click()
            page.get_by_text("The graph speaks against it").wait_for()
            options = page.locator("#type option").all_text_contents()
            assert options == ["any", "even (7)", "odd (6)"]
            page.locator("#type").select_option(label="odd (6)")
            page.wait_for_function("() => location.hash.includes('type=odd')")
            page.locator("#status", has_text="answers").wait_for()
            names = set(page.locator(".answer .name").all_text_contents())
            assert names
            assert names <= {f"e{i}" for i in range(1, 13, 2)}
            page.reload()
            page.locator(".answer").first.wait_for()
            assert page.locator("#type").input_value() == "odd"
            page.goto(f"{url}/entity?id=e4")
            page.locator(".types .chip", has_text="even").wait_for()
