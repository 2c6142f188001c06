"""What the docs point to is there: pages, headings, pictures, files, settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from satkgc.models import MODELS
from satkgc.settings import flatten
from satkgc.training import Config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
NOW = [page for page in PAGES if page.name != "CHANGELOG.md"]  # that one has names of the past
OF_KINDS = {kind: flatten({"model": model.Config().model_dump()}) for kind, model in MODELS.items()}
SETTINGS = set(flatten(Config().model_dump())) | {"sampling.mcmc"} | {name for own in OF_KINDS.values() for name in own}
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return page.name


def anchors(text: str) -> set[str]:
    """Headings as GitHub makes links of them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", TEXTS[page])):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_of_the_repository_that_are_named_exist(page: Path) -> None:
    for file in re.findall(r"`((?:results|src|tests|bench|scripts|examples|docs)/[\w./\-]+)`", TEXTS[page]):
        assert (ROOT / file).exists() or file == "results/ROW.json", file


@pytest.mark.parametrize("page", NOW, ids=name)
def test_settings_that_are_named_exist(page: Path) -> None:
    groups = {".".join(name.split(".")[:depth]) for name in SETTINGS for depth in (1, 2)}
    for setting in re.findall(r"`((?:model|sampling|training|evaluation)\.[a-z_.0-9]+)", TEXTS[page]):
        if not setting.endswith((".py", ".json")):
            assert setting.rstrip(".") in SETTINGS | groups, setting
    for old in ("popularity", "hide", "bare_share", "neighbour_relations"):
        assert not re.search(rf"`(?:text|objective)\.{old}", TEXTS[page]) or page.name == "findings.md"


@pytest.mark.parametrize(
    ("page", "group"), [("text.md", "model.text"), ("encoders.md", "model.encoder"), ("method.md", "model.loss")]
)
def test_every_setting_has_a_row_with_its_default(page: str, group: str) -> None:
    text = TEXTS[ROOT / "docs" / page]
    for setting, value in flatten(Config().model_dump()).items():
        if setting.startswith(f"{group}."):
            default = "none" if value is None else str(value).lower() if isinstance(value, bool) else value
            assert f"| `{setting.removeprefix(group + '.')}` | {default} |" in text, setting


def test_every_setting_of_embedding_models_has_a_row_with_its_default() -> None:
    for setting, value in OF_KINDS["embedding"].items():
        if setting != "model.kind":
            assert f"| `{setting}` | {value} |" in TEXTS[ROOT / "docs" / "structure.md"], setting


def test_modules_of_the_walks_exist() -> None:
    """Every `file.py` of docs/architecture.md, in the package of its item."""
    text = TEXTS[ROOT / "docs" / "architecture.md"].split("## `satkgc train`")[1]
    items = re.split(r"^ *\d+\. ", text, flags=re.MULTILINE)[1:]
    packages = [re.match(r"`(\w+)(?:\.py)?`", item)[1] for item in items]
    assert len(packages) == 15
    for package, item in zip(packages, items, strict=True):
        for module in re.findall(r"`([\w/]+\.py)`", item.split("\n\n")[0]):
            folder = ROOT / "src" / "satkgc"
            places = (folder / module, folder / package / module, folder / package / "text" / module)
            assert any(place.is_file() for place in places), f"{package}: {module}"


def test_no_package_is_passed_twice() -> None:
    walks = TEXTS[ROOT / "docs" / "architecture.md"].split("## `satkgc ")[1:]
    for walk in walks:
        packages = re.findall(r"^ *\d+\. `(\w+)(?:\.py)?`", walk, flags=re.MULTILINE)
        assert len(packages) == len(set(packages)) >= 6
