"""The way for large tables gives what the careful way gives, and leaves to it all that needs explaining."""

from __future__ import annotations

import tempfile
from pathlib import Path

import forms
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, read_graph
from satkgc.kg.readers.parquet import number_triples

COLUMNS = {"head": "head", "relation": "relation", "tail": "tail"}
ENTITIES = pa.array(["a", "b", "c"], pa.large_string())


def table(path: Path, rows: list[tuple[str | None, ...]], rows_in_group: int = 2) -> Path:
    names = ["head", "relation", "tail", "split"][: len(rows[0])]
    arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(arrays, names=names), path, row_group_size=rows_in_group)
    return path


@settings(max_examples=15)
@given(forms.sources(), st.randoms(), st.booleans(), st.booleans())
def test_both_ways_give_the_same_graph(source: forms.Source, random, listed: bool, divided: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        paths = forms.tables(source, folder, "parquet")
        rows = [(*triple, split) for split, triples in source.splits.items() for triple in triples]
        random.shuffle(rows)
        table(paths["triples"], rows if divided else [row[:3] for row in rows], random.randint(1, 5))
        options = ReadOptions(
            split="none", entities=paths["entities"], relations=paths["relations"] if listed else None
        )
        entities = pa.array(list(source.entities), pa.large_string())
        columns = {**COLUMNS, "split": "split"} if divided else COLUMNS
        assert number_triples(paths["triples"], columns, entities, None) is not None
        fast = read_graph(paths["triples"], options)
        # A table that may hold unlisted entities goes the careful way.
        careful = read_graph(paths["triples"], ReadOptions(**{**vars(options), "unlisted": "add"}))
        assert forms.said(fast) == forms.said(careful)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "r", "b"), ("a", "r", "z")], r"triples\.parquet: row 2: entity 'z' is not listed"),
        ([("a", "r", "b"), ("a", "r", None)], r"row 2: the tail of this triple is empty"),
        ([("a", "", "b")], r"row 1: the relation of this triple is empty"),
        ([("a", None, "b")], r"row 1: the relation of this triple is empty"),
        ([("a", "r", "b", "train"), ("a", "r", "c", "later")], r"row 2: 'later' is no split"),
        ([("a", "r", "b", "test")], "no triple is for training"),
        ([("a", "r", "b", "train"), ("a", "s", "c", "test")], "relation 's' is in test but never in train"),
    ],
)
def test_what_is_wrong_is_left_to_the_careful_way(tmp_path: Path, rows: list[tuple[str, ...]], message: str) -> None:
    path = table(tmp_path / "triples.parquet", rows)
    columns = COLUMNS if len(rows[0]) == 3 else {**COLUMNS, "split": "split"}
    assert number_triples(path, columns, ENTITIES, None) is None
    names = pa.table([ENTITIES, ENTITIES], names=["id", "name"])
    pq.write_table(names, tmp_path / "entities.parquet")
    with pytest.raises(SatkgcError, match=message):
        read_graph(path, ReadOptions(entities=tmp_path / "entities.parquet"))


def test_unlisted_relations_and_damaged_files_too(tmp_path: Path) -> None:
    path = table(tmp_path / "triples.parquet", [("a", "r", "b"), ("b", "s", "c")])
    result = number_triples(path, COLUMNS, ENTITIES, pa.array(["s", "r"]))
    assert result is not None
    assert result[0]["train"].tolist() == [[0, 1, 1], [1, 0, 2]]
    assert number_triples(path, COLUMNS, ENTITIES, pa.array(["r"])) is None
    path.write_bytes(path.read_bytes()[:-7])
    assert number_triples(path, COLUMNS, ENTITIES, None) is None
