"""The page: the evidence for an answer, its text and its drawing."""

from __future__ import annotations

import json
import re

import pytest
from browsing import focused, opened, pick


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
            note = page.locator(".part", has=page.locator(".texts")).locator("> .muted").text_content()
            assert re.match(r"score (\S+)", note).group(1) == listed
            quotes = page.locator(".texts blockquote").all_text_contents()
            assert quotes[0].startswith(f"question{question} : ")
            assert quotes[1].startswith(f"answer{text}")


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


def test_marks_of_the_tokenizer_become_one_dash(page) -> None:  # type: ignore[no-untyped-def]
    program = "async (texts) => { const { plain } = await import('/static/evidence.js'); return texts.map(plain); }"
    texts = [
        "<s>dog: a pet</s></s>is a</s>",
        "<s> dog: a pet </s> </s> is a </s>",
        "[CLS] dog : a pet [SEP] is a [SEP]",
    ]
    assert page.evaluate(program, texts) == ["dog: a pet — is a"] * 2 + ["dog : a pet — is a"]


def test_the_experts_of_a_fused_model_are_named(page) -> None:  # type: ignore[no-untyped-def]
    said = [("text", 0.625, 1), ("complex_2", -0.375, 1204), ("<b>paths</b>", None, None)]

    def with_experts(route) -> None:  # type: ignore[no-untyped-def]
        body = route.fetch().json()
        body["experts"] = [dict(zip(("name", "share", "rank"), expert, strict=True)) for expert in said]
        route.fulfill(json=body)

    page.route("**/api/v1/evidence", with_experts)
    pick(page, "dog")
    page.locator(".answer").first.click()
    rows = page.locator(".experts li")
    rows.first.wait_for()
    assert rows.nth(0).locator("span").all_text_contents() == ["text", "", "63 %", "rank 1"]
    assert rows.nth(1).locator("span").all_text_contents() == ["complex 2", "", "−38 %", "rank 1204"]
    assert rows.nth(2).locator("span").all_text_contents() == ["<b>paths</b>", "", "nothing to say", ""]
    assert page.locator(".share.against").count() == 1
    sizes = page.locator(".share").evaluate_all("bars => bars.map((bar) => getComputedStyle(bar).backgroundSize)")
    assert sizes == ["62.5% 100%", "37.5% 100%", "0% 100%"]


def strong_paths(*paths):  # type: ignore[no-untyped-def]
    """A body's, from (weight, entity, relation or ←relation, entity, …)."""
    listed = []
    for weight, *places in paths:
        steps = []
        for source, by, target in zip(places[::2], places[1::2], places[2::2], strict=False):
            way, by = ("in", by[1:]) if by[0] == "←" else ("out", by)
            ends = {"source": source, "source_name": source, "target": target, "target_name": target}
            steps.append({**ends, "relation": by, "relation_name": by, "direction": way})
        listed.append({"weight": weight, "steps": steps})
    return listed


@pytest.mark.parametrize("width", [1200, 360])
def test_the_paths_that_a_path_model_follows_are_listed_and_drawn(browser, url: str, width: int) -> None:  # type: ignore[no-untyped-def]
    paths = strong_paths(
        (1.5, "dog", "similar to", "wolf", "eats", "moose_calf"),
        (0.75, "dog", "fears", "wolf", "←<b>by</b>", "moose_calf"),
    )

    def with_paths(route) -> None:  # type: ignore[no-untyped-def]
        route.fulfill(json={**route.fetch().json(), "strong_paths": paths})

    with browser.new_context(viewport={"width": width, "height": 800}, reduced_motion="reduce") as context:
        for page in opened(context, url):
            pick(page, "dog")
            page.locator(".answer").first.click()
            page.locator(".similar").wait_for()
            assert page.locator(".strong, .band").count() == 0, "of a text model there are none"
            page.keyboard.press("Escape")
            page.route("**/api/v1/evidence", with_paths)
            page.locator(".answer").first.click()
            page.locator(".strong").wait_for()
            rows = page.locator(".strong li")
            assert rows.nth(0).locator(".path span").all_text_contents() == [
                *("dog", "— similar to →", "wolf", "— eats →", "moose calf")
            ]
            assert rows.nth(1).locator(".via").all_text_contents() == ["— fears →", "← <b>by</b> —"]
            assert rows.locator(".number").all_text_contents() == ["−1.50 without it", "−0.75 without it"]
            sizes = rows.locator(".share").evaluate_all("all => all.map((bar) => getComputedStyle(bar).backgroundSize)")
            assert sizes == ["100% 100%", "50% 100%"]
            # One band between two nodes, as wide as the strongest path there.
            bands = page.locator(".drawing .band")
            assert bands.evaluate_all("all => all.map((band) => getComputedStyle(band).strokeWidth)") == ["8px"] * 2
            labels = page.locator(".drawing .edge:has(.band)").evaluate_all(
                "all => all.map((g) => g.getAttribute('aria-label'))"
            )
            assert labels == ["dog – similar to – wolf", "wolf – eats – moose calf"]
            assert "the paths that count" in page.locator(".legend").text_content()
            panel = page.locator("#detail")
            assert panel.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_on_a_phone_an_experts_name_does_not_lie_on_its_bar(browser, url: str) -> None:  # type: ignore[no-untyped-def]
    def with_experts(route) -> None:  # type: ignore[no-untyped-def]
        experts = [{"name": name, "share": 0.5, "rank": 1204} for name in ("complex", "compounde-second")]
        route.fulfill(json={**route.fetch().json(), "experts": experts})

    with browser.new_context(viewport={"width": 360, "height": 800}, reduced_motion="reduce") as context:
        for page in opened(context, url):
            page.route("**/api/v1/evidence", with_experts)
            pick(page, "dog")
            page.locator(".answer").first.click()
            page.locator(".experts").wait_for()
            program = """rows => rows.map((row) => {
                const range = document.createRange();
                range.selectNodeContents(row.children[0]);
                return row.children[1].getBoundingClientRect().left - range.getBoundingClientRect().right;
            })"""
            assert min(page.locator(".experts li").evaluate_all(program)) >= 4
            assert page.locator(".experts li span").first.evaluate("name => name.clientHeight") < 30, "one line"
            assert page.locator("#detail").evaluate("e => e.scrollWidth <= e.clientWidth")
