"""The page: statements that a person collects and takes home."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from browsing import opened, pick

from satkgc.completion import accept_proposals


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
    assert accept_proposals(files["tsv"], tmp_path / "again.nt") == (4, 4)
    with listed.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", strict=True)
    rows[2][header.index("accept")] = "yes"
    with (tmp_path / "looked through.tsv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])
    assert accept_proposals(tmp_path / "looked through.tsv", tmp_path / "one.nt") == (1, 14)
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
    page.get_by_role("button", name="Restore 2").click()
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
