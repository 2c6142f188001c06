"""What Neo4j's Browser saves, whose cells are whole nodes and edges."""

from __future__ import annotations

import csv
from pathlib import Path

import forms
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, neo4j, read_graph

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
ZEUS = '(:Character:God {id: 1, name: "Zeus", born: null})'
HERA = '(:Character {id: 2, name: "Hera, the \\"queen\\"", description: "wife (of Zeus) {and sister}"})'
IDA = "(:Place {id: 3, name: 'Mount Ida', `map ref`: [35.2, 24.8]})"


def read(path: Path, *rows: tuple[str, ...], **options: object) -> forms.Source:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return forms.said(read_graph(path, ReadOptions(split="none", **options)))  # type: ignore[arg-type]


def test_nodes_and_edges_as_cells(tmp_path: Path) -> None:
    rows = [
        ("n", "r", "m"),
        (ZEUS, "[:LOVES {since: 3}]", HERA),
        (HERA, "[:LIVES_ON]", IDA),
        (ZEUS, "[:BORN_ON {}]", IDA),
    ]
    graph = read(tmp_path / "export.csv", *rows)
    assert graph.splits["train"] == [
        ("1", "LOVES", "2"), ("2", "LIVES_ON", "3"), ("1", "BORN_ON", "3"),
        ("1", TYPE, ":Character"), ("1", TYPE, ":God"), ("2", TYPE, ":Character"), ("3", TYPE, ":Place"),
    ]  # fmt: skip
    assert graph.entities == {
        "1": ("Zeus", ""), "2": ('Hera, the "queen"', "wife (of Zeus) {and sister}"), "3": ("Mount Ida", ""),
        ":Character": ("Character", ""), ":God": ("God", ""), ":Place": ("Place", ""),
    }  # fmt: skip
    graph = read(tmp_path / "export.csv", *rows, exclude="rdf:type")
    assert graph.splits["train"] == [("1", "LOVES", "2"), ("2", "LIVES_ON", "3"), ("1", "BORN_ON", "3")]


@pytest.mark.parametrize(
    "rows",
    [
        [("m", "n", "r"), (ZEUS, HERA, "[:LOVES]")],
        [("p",), (f"{ZEUS}-[:LOVES]->{HERA}",)],
        [("p",), (f"{HERA}<-[:LOVES {{x: 1}}]-{ZEUS}",)],
        [("n", "count", "r", "m"), (ZEUS, "5", "[:LOVES]", HERA), (HERA, "0", "null", "")],
    ],
)
def test_other_orders_and_paths(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    assert read(tmp_path / "t.csv", *rows, exclude="rdf:type").splits["train"] == [("1", "LOVES", "2")]


def test_a_path_of_two_steps(tmp_path: Path) -> None:
    graph = read(tmp_path / "t.csv", ("p",), (f"{ZEUS}-[:LOVES]->{HERA}<-[:HOME_OF]-{IDA}",), exclude="rdf:type")
    assert graph.splits["train"] == [("1", "LOVES", "2"), ("3", "HOME_OF", "2")]


def test_ids_without_a_property_for_them(tmp_path: Path) -> None:
    """Names serve, with the kind where two kinds have one; two of one kind are told apart by their properties."""
    film, role = '(:Film {title: "Troy"})', '(:Role {name: "Troy"})'
    first, second = '(:Person {name: "Ann", born: 1960})', '(:Person {name: "Ann", born: 1970})'
    graph = read(
        tmp_path / "t.csv", ("a", "r", "b"), (first, "[:IN]", film), (second, "[:PLAYS]", role), exclude="rdf:type"
    )
    assert graph.splits["train"] == [(first, "IN", "Film:Troy"), (second, "PLAYS", "Role:Troy")]
    assert [name for name, _ in graph.entities.values()] == ["Ann", "Troy", "Ann", "Troy"]
    chosen = read(tmp_path / "t.csv", ("a", "r", "b"), (first, "[:KNOWS]", second), exclude="rdf:type", id="born")
    assert chosen.splits["train"] == [("1960", "KNOWS", "1970")]


def test_a_cell_that_is_broken_off_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SatkgcError, match=r"t\.csv:3: .*is no node and no edge"):
        read(tmp_path / "t.csv", ("n", "r", "m"), (ZEUS, "[:LOVES]", HERA), (ZEUS, "[:LOVES]", HERA[:-2]))


def test_words_in_brackets_are_no_export(tmp_path: Path) -> None:
    graph = read(tmp_path / "t.csv", ("head", "relation", "tail"), ("(a)", "[r]", "(b)"))
    assert graph.splits["train"] == [("(a)", "[r]", "(b)")]


@given(st.text(alphabet="()[]{}:,-><\"'`\\ a1", max_size=60))
def test_any_cell_is_looked_at_once(cell: str) -> None:
    assert neo4j._kind(cell * 40) in (None, "node", "edge", "path")
