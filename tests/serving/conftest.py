"""A small run whose names try to break out of every place they are put, and a service over it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from browsing import CHROMIUM, QUIET, opened
from running import running

from little_world import write_run
from satkgc.completion import Completer
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.serving.app import create_app
from satkgc.serving.settings import ServiceSettings

ENTITIES = [
    ("dog", "dog", "a member of the genus Canis that has been domesticated by man"),
    ("cat", "cat", "a feline mammal with thick soft fur"),
    ("wolf", "wolf", "a wild canine that hunts in packs"),
    ("canine", "canine", "any of various mammals with long muzzles"),
    ("feline", "feline", "any of various lithe-bodied mammals"),
    ("mammal", "mammal", "a warm-blooded vertebrate with skin covered by hair"),
    ("animal", "animal", "a living organism with voluntary movement"),
    ("http://example.org/a b?c=1#d", "iri", "its id is an address"),
    ("../../etc/passwd", "path", "its id is a path"),
    ("<script>", "<img src=x onerror=alert(1)>", '"><script>document.title="run"</script>'),
    ("bank.1", "bank", "a financial institution"),
    ("bank.2", "bank", "sloping land beside a river"),
    ("tab", "name\twith a tab", "and a \u202e turned one"),
    ("ω", "Ωμέγα", "a letter 🏛"),
]
TRIPLES = [
    ("dog", "hypernym", "canine"), ("wolf", "hypernym", "canine"), ("cat", "hypernym", "feline"),
    ("canine", "hypernym", "mammal"), ("feline", "hypernym", "mammal"), ("mammal", "hypernym", "animal"),
    ("dog", "similar to", "wolf"), ("bank.1", "similar to", "bank.2"), ("<script>", "similar to", "tab"),
    ("http://example.org/a b?c=1#d", "similar to", "../../etc/passwd"), ("ω", "hypernym", "<script>"),
]  # fmt: skip


@pytest.fixture(scope="session")
def run(tmp_path_factory, tiny_backbone) -> Path:  # type: ignore[no-untyped-def]
    """A run folder as training leaves it, with a model that was never trained."""
    index = {id: i for i, (id, _, _) in enumerate(ENTITIES)}
    relations = ["hypernym", "similar to"]
    kg = KnowledgeGraph.from_arrays(
        "little <b>world</b>",
        Vocabulary.build("entity", *(pa.array(column) for column in zip(*ENTITIES, strict=True))),
        Vocabulary.build("relation", pa.array(relations), pa.array(relations), pa.array(["", ""])),
        [(index[h], relations.index(r), index[t]) for h, r, t in TRIPLES],
    )
    folder = write_run(tmp_path_factory.mktemp("runs") / "tiny", kg, tiny_backbone)
    Completer.load(folder)
    return folder


@pytest.fixture
def unprepared(tmp_path, tiny_backbone) -> Path:  # type: ignore[no-untyped-def]
    """A run whose entities take a while to encode, and are not encoded yet."""
    names = pa.array([f"entity {i}" for i in range(40_000)])
    kg = KnowledgeGraph.from_arrays(
        "large",
        Vocabulary.build("entity", names, names, names),
        Vocabulary.build("relation", pa.array(["r"]), pa.array(["r"]), pa.array([""])),
        [(i, 0, i + 1) for i in range(39_999)],
    )
    return write_run(tmp_path / "large", kg, tiny_backbone)


@pytest.fixture(scope="session")
def completer(run) -> Completer:  # type: ignore[no-untyped-def]
    """The run, opened."""
    return Completer.load(run)


@pytest.fixture(scope="session")
def url(completer) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """The address of a service over it."""
    with running(create_app(lambda: completer)) as address:
        yield address


@pytest.fixture(scope="session")
def proposals(completer, tmp_path_factory) -> Path:  # type: ignore[no-untyped-def]
    """A table of what the run proposes."""
    file = tmp_path_factory.mktemp("proposals") / "missing.csv"
    assert completer.propose(file, 120, implied=True, second_answers=True) == 120
    return file


@pytest.fixture
def own_run(run, tmp_path) -> Path:  # type: ignore[no-untyped-def]
    """A copy of the run, to decide in."""
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def reviewing(own_run, proposals) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """The address of a service over it that has proposals."""
    with running(create_app(lambda: Completer.load(own_run), ServiceSettings(proposals=proposals))) as address:
        yield address


@pytest.fixture(scope="module")  # it runs an event loop, beside which tests with their own cannot run
def browser():  # type: ignore[no-untyped-def]
    """Chromium, for the tests of the page."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the path (apt install chromium)")
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
