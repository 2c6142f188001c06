"""Ids that a table lists more than once."""

from __future__ import annotations

from pathlib import Path

import forms
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, read_graph

LISTED = "id,name,description\na,Ann,one\nb,Bob,\na,Anna,two\nc,,\nb,Bob,\na,Ann,three\nc,Cy,\n"


def entities(folder: Path, listed: str = LISTED, **options: object) -> dict[str, tuple[str, str]]:
    (folder / "t.csv").write_text("head,relation,tail\na,r,b\nb,r,c\n")
    (folder / "e.csv").write_text(listed)
    graph = read_graph(folder / "t.csv", ReadOptions(split="none", entities=folder / "e.csv", **options))  # type: ignore[arg-type]
    return forms.said(graph).entities


def test_all_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SatkgcError) as error:
        entities(tmp_path)
    at = f"{tmp_path / 'e.csv'}"
    assert str(error.value) == (
        f"{at}: 2 entity ids are listed more than once with different texts: 'a' ({at}:2 and {at}:4), 'c' ({at}:5 and "
        f"{at}:8); keep one row of each with --duplicates first or last, or join their texts with --duplicates merge"
    )


@pytest.mark.parametrize(
    ("duplicates", "ann", "cy"),
    [
        ("first", ("Ann", "one"), ("c", "")),
        ("last", ("Ann", "three"), ("Cy", "")),
        ("merge", ("Ann", "also called Anna; one; two; three"), ("Cy", "")),
    ],
)
def test_which_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, duplicates: str, ann: tuple[str, str], cy: tuple[str, str]
) -> None:
    kept = entities(tmp_path, duplicates=duplicates, textless="allow")
    assert list(kept.items()) == [("a", ann), ("b", ("Bob", "")), ("c", cy)]
    assert f"{tmp_path / 'e.csv'}: 3 entity ids listed more than once: " in caplog.text


def test_the_same_row_twice_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert list(entities(tmp_path, "id,name\na,Ann\nb,Bob\na,Ann\nc,Cy\n")) == ["a", "b", "c"]
    assert "1 entity id listed more than once: they say the same" in caplog.text


def test_what_is_wrong_after_duplicates_is_told_with_its_own_line(tmp_path: Path) -> None:
    listed = "id,name,description\na,Ann,\na,Ann,\nb,Bob,\nc,,\n"
    with pytest.raises(SatkgcError, match=r"e\.csv:5: entity 'c' has neither name nor description"):
        entities(tmp_path, listed)


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize(
    ("header", "label", "said"),
    [
        (
            "id,name,description,type",
            None,
            "columns not read: 'type'; types are stated in a table of triples, with the relation rdf:type",
        ),
        ("id,name,height,description", None, "columns not read: 'height'"),
        (
            "id,preferred,text,weight",
            None,
            "no column of names is known, so that ids are the names; --label COLUMN names it; "
            "columns not read: 'preferred', 'weight'",
        ),
        ("id,preferred,text,weight", "preferred", "columns not read: 'weight'"),
        ("id,name,description", None, None),
    ],
)
def test_columns_that_are_not_read_are_told_of(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    memory: int | None,
    header: str,
    label: str | None,
    said: str | None,
) -> None:
    rows = [",".join([id, *("xyz"[: header.count(",")])]) for id in "abc"]
    entities(tmp_path, "\n".join([header, *rows]), memory=memory, label=label)
    assert caplog.messages == ([f"{tmp_path / 'e.csv'}: {said}"] if said else [])
