"""The folder of TSV files, and the settings that speak of it."""

from __future__ import annotations

import io
import logging
import tarfile
import zipfile
from pathlib import Path

import forms
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read_graph

FILES = {
    "train.tsv": "a\tr\tb\nb\tr\tc\n",
    "test.tsv": "a\tr\tc\n",
    "entities.tsv": "a\tAnn\tone\nb\tBob\ttwo\nc\tCy\t\n",
}


@pytest.fixture
def folder(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Write a folder of FILES, changed as told, and read it."""

    def run(changed: dict[str, str | None], **options: object) -> KnowledgeGraph:
        for name, text in {**FILES, **changed}.items():
            if text is not None:
                (tmp_path / name).write_text(text, newline="")
        return read_graph(tmp_path, ReadOptions(**options))  # type: ignore[arg-type]

    return run


def test_listed_entities_keep_their_order(folder) -> None:  # type: ignore[no-untyped-def]
    graph = folder({"entities.tsv": "c\tCy\nunused\tUna\nb\tBob\na\tAnn\n"})
    assert graph.entities.ids.to_pylist() == ["c", "unused", "b", "a"]
    assert graph.train.tolist() == [[3, 0, 2], [2, 0, 0]]


def test_without_a_listing_names_are_made_from_ids(folder) -> None:  # type: ignore[no-untyped-def]
    graph = folder({"entities.tsv": None, "train.tsv": "new_york\tlocatedIn\tusa\n", "test.tsv": None}, split="none")
    assert forms.said(graph).entities == {"new_york": ("new york", ""), "usa": ("usa", "")}
    assert forms.said(graph).relations == {"locatedIn": "located in"}


def test_windows_lines_blank_lines_and_a_byte_order_mark(folder) -> None:  # type: ignore[no-untyped-def]
    graph = folder({"train.tsv": "\ufeffa\tr\tb\r\n\r\nb\tr\tc\r\n\r\n"})
    assert forms.said(graph).splits["train"] == [("a", "r", "b"), ("b", "r", "c")]


def test_further_columns_are_ignored_and_another_file_can_be_chosen(folder) -> None:  # type: ignore[no-untyped-def]
    other = "a\tAnna\tx\tQ1\nb\tBobby\ty\tQ2\nc\tCyril\tz\tQ3\n"
    assert folder({"entities_wikidata.tsv": other}).entities.name(0) == "Ann"
    chosen = folder({"entities_wikidata.tsv": other}, entities_file="entities_wikidata.tsv")
    assert forms.said(chosen).entities["a"] == ("Anna", "x")


def test_unlisted_entities_can_be_taken_in(folder) -> None:  # type: ignore[no-untyped-def]
    graph = folder({"test.tsv": "a\tr\tnew_one\n"}, unlisted="add")
    assert graph.entities.ids.to_pylist() == ["a", "b", "c", "new_one"]
    assert graph.entities.name(3) == "new one"
    assert graph.test.tolist() == [[0, 0, 3]]


def test_an_id_can_serve_as_a_name(folder) -> None:  # type: ignore[no-untyped-def]
    listing = {"entities.tsv": "a\t\tone\nb\t \t \nc\tCy\t\n"}
    graph = folder(listing, textless="allow")
    assert forms.said(graph).entities == {"a": ("a", "one"), "b": ("b", ""), "c": ("Cy", "")}


def test_duplicates_within_a_split_are_dropped_and_counted(folder, caplog) -> None:  # type: ignore[no-untyped-def]
    with caplog.at_level(logging.WARNING):
        graph = folder({"train.tsv": "b\tr\tc\na\tr\tb\nb\tr\tc\nb\tr\tc\n", "test.tsv": "b\tr\tc\n"})
    assert forms.said(graph).splits == {
        "train": [("b", "r", "c"), ("a", "r", "b")],
        "valid": [],
        "test": [("b", "r", "c")],
    }
    assert "2 duplicate triples dropped from train" in caplog.text


def test_held_out_entities(folder) -> None:  # type: ignore[no-untyped-def]
    graph = folder({"train.tsv": "a\tr\tb\n", "test_entities.tsv": "c\n", "valid_entities.tsv": "c\nc\n"})
    assert {name: members.tolist() for name, members in graph.split_entities.items()} == {"valid": [2], "test": [2]}


def test_a_folder_without_a_split_gets_one(folder) -> None:  # type: ignore[no-untyped-def]
    ring = "".join(f"e{i}\tr\te{(i + k) % 40}\n" for i in range(40) for k in (1, 2, 3))
    graph = folder({"train.tsv": ring, "test.tsv": None, "entities.tsv": None}, valid=0.1, test=0.2, seed=3)
    assert [len(split) for split in (graph.train, graph.valid, graph.test)] == [84, 12, 24]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unlisted": "maybe"}, "unlisted cannot be 'maybe'; use one of error, add"),
        ({"split": "random"}, "split cannot be 'random'; use one of transductive, inductive, none"),
        ({"valid": 0.6, "test": 0.5}, "cannot hold out 0.6 \\+ 0.5"),
        ({"valid": -0.1}, "cannot hold out -0.1"),
        ({"valid": 0.96}, "cannot hold out 0.96 \\+ 0.05"),
        ({"test": float("nan")}, "cannot hold out"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(SatkgcError, match=message):
        ReadOptions(**options)  # type: ignore[arg-type]


def test_the_shallowest_graph_of_an_archive_is_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "My.Graph.zip", "w") as archive:
        archive.writestr("x/deep/train.tsv", "p\tq\tr\n")
        for name, text in FILES.items():
            archive.writestr(f"x/{name}", text)
    graph = read_graph(tmp_path / "My.Graph.zip")
    assert graph.name == "My.Graph"
    assert forms.said(graph).entities["a"] == ("Ann", "one")
    assert len(graph.test) == 1


@pytest.mark.parametrize("name", ["g.tar", "g.zip"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_a_file_that_an_archive_holds_twice_the_last_counts(tmp_path: Path, name: str) -> None:
    files = [("train.tsv", "x\tx\tx\n"), *FILES.items(), ("train.tsv", FILES["train.tsv"]), ("valid.tsv", "c\tr\ta\n")]
    if name == "g.zip":
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file, text in files:
                archive.writestr(file, text)
    else:
        with tarfile.open(tmp_path / name, "w") as packed:
            for file, text in files:
                member = tarfile.TarInfo(file)
                member.size = len(text)
                packed.addfile(member, io.BytesIO(text.encode()))
    assert forms.said(read_graph(tmp_path / name)).splits == {
        "train": [("a", "r", "b"), ("b", "r", "c")],
        "valid": [("c", "r", "a")],
        "test": [("a", "r", "c")],
    }
