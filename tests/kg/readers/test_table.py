"""Which columns a table's triples are found in."""

from __future__ import annotations

import gzip
from pathlib import Path

import forms
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read_graph

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
EXPECTED = [("a", "r", "b"), ("b", "r", "c")]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("t.csv", "head,relation,tail\na,r,b\nb,r,c\n", {}),
        ("t.csv", "Subject,Predicate,Object\na,r,b\nb,r,c\n", {}),
        ("t.csv", "tail,x,head,relation\nb,1,a,r\nc,2,b,r\n", {}),
        ("t.csv", "a,r,b\nb,r,c\n", {}),
        ("t.csv", "\ufeffhead,relation,tail\r\na,r,b\r\nb,r,c\r\n", {}),
        ("t.csv", "\ufeffa,r,b\r\n\r\nb,r,c\r\n", {}),
        ("t.csv", "a,r,b,x\nb,r,c,x\n", {"head": "0", "relation": "1", "tail": "2"}),
        ("t.csv", "drug,effect,disease\na,r,b\nb,r,c\n", {"head": "drug", "relation": "effect", "tail": "disease"}),
        ("t.csv", "drug,relation,disease\na,r,b\nb,r,c\n", {"head": "drug", "tail": "2"}),
        ("t.csv", "2,1,0\na,r,b\nb,r,c\n", {"head": "2", "relation": "1", "tail": "0"}),
        ("t.csv", "head;relation;tail\na;r;b\nb;r;c\n", {}),  # as a spreadsheet writes it where commas are decimal
        ("t.csv", "a;r;b;1,5\nb;r;c;2,5\n", {"head": "0", "relation": "1", "tail": "2"}),
        ("t.csv", '"a",r,b,"x;y;z;w;v"\nb,r,c,\n', {"head": "0", "relation": "1", "tail": "2"}),
        ("t.csv", "head\trelation\ttail\na\tr\tb\nb\tr\tc\n", {}),
        ("t.csv", ":START_ID,:END_ID,:TYPE\na,b,r\nb,c,r\n", {}),
        ("t.csv", "_start,_end,_type\na,b,r\nb,c,r\n", {}),
        ("t.csv", ":START_ID(Object);source;:END_ID(Object){id-type: string};:TYPE\na;x;b;r\nb;y;c;r\n", {}),
        ("t.tsv", "s\tp\to\na\tr\tb\nb\tr\tc\n", {}),
        ("t.tsv", "a\tr\tb\nb\tr\tc", {}),
        ("t.csv", "\nhead,relation,tail\na,r,b\nb,r,c\n", {}),
        ("t.csv", "\ufeff\r\n\r\nhead,relation,tail\r\na,r,b\r\nb,r,c\r\n", {}),
        ("t.tsv", "\n\ns\tp\to\n\na\tr\tb\nb\tr\tc\n", {}),
    ],
)
def test_columns(tmp_path: Path, name: str, text: str, options: dict[str, str]) -> None:
    (tmp_path / name).write_bytes(text.encode())
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    for file in (name, f"{name}.gz"):
        graph = read_graph(tmp_path / file, ReadOptions(split="none", **options))  # type: ignore[arg-type]
        assert forms.said(graph).splits["train"] == EXPECTED
        assert graph.name == "t"


def test_quotes_mean_something_in_csv_only(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"a, ""x""",r,"b\nc"\n')
    (tmp_path / "t.tsv").write_text('"a"\tr\tb"\n')
    assert forms.said(read_graph(tmp_path / "t.csv")).splits["train"] == [('a, "x"', "r", "b\nc")]
    assert forms.said(read_graph(tmp_path / "t.tsv")).splits["train"] == [('"a"', "r", 'b"')]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_split_column(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    values = ["train", "Validation", "test ", "TRAIN", "dev"]
    columns = {"head": list("abcde"), "relation": ["r"] * 5, "tail": list("bcdea"), "fold": values}
    if ending == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text(
            "head,relation,tail,fold\n" + "".join(f"{','.join(row)}\n" for row in zip(*columns.values(), strict=True))
        )
    graph = read_graph(path, ReadOptions(split_column="fold"))
    assert [len(split) for split in (graph.train, graph.valid, graph.test)] == [2, 2, 1]


def test_other_types_of_parquet_columns(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([1, 2], pa.int64()),
            "subject": pa.array(["a", "b"]).dictionary_encode(),
            "predicate": pa.array([b"r", b"r"], pa.binary()),
            "object": pa.array([7, 8], pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    assert forms.said(read_graph(tmp_path / "t.parquet")).splits["train"] == [("a", "r", "7"), ("b", "r", "8")]


def test_texts_beside_the_triples(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,r,b\nb,r,c\n")
    (tmp_path / "e.csv").write_text('key,title,about\na,Ann,"one, two"\nb,,two\nc,Cy,\nd,Dee,\n')
    (tmp_path / "r.tsv").write_text("r\tknows\n")
    pq.write_table(
        pa.table({"iri": ["a", "b", "c"], "label": ["Ann", None, "Cy"], "text": ["x", "y", None]}),
        tmp_path / "e.parquet",
    )
    named = ReadOptions(entities=tmp_path / "e.csv", relations=tmp_path / "r.tsv", id="key", description="about")
    graph = forms.said(read_graph(tmp_path / "t.csv", named))
    assert graph.entities == {"a": ("Ann", "one, two"), "b": ("b", "two"), "c": ("Cy", ""), "d": ("Dee", "")}
    assert graph.relations == {"r": "knows"}
    guessed = forms.said(read_graph(tmp_path / "t.csv", ReadOptions(entities=tmp_path / "e.parquet")))
    assert guessed.entities == {"a": ("Ann", "x"), "b": ("b", "y"), "c": ("Cy", "")}


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("objectId:ID(Object),:LABEL,name", ["Vase", "Person;Maker"]),
        (":ID,_labels,name:string", [":Vase", ":Person:Maker"]),
        ("_id,_labels,name", [":Vase", ":Person:Maker"]),
        ("id:ID,:LABEL,title", ["Vase", "Person;Maker"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nodes_of_neo4j(tmp_path: Path, header: str, labels: list[str], ending: str) -> None:
    edges = {":START_ID": ["1"], ":TYPE": ["r"], ":END_ID": ["2"]}
    if ending == "parquet":
        pq.write_table(pa.table(edges), tmp_path / "t.parquet")
    else:
        (tmp_path / "t.csv").write_text(":START_ID,:TYPE,:END_ID\n1,r,2\n")
    (tmp_path / "e.csv").write_text(f"{header}\n1,{labels[0]},The Portland Vase\n2,{labels[1]},Josiah Wedgwood\n")
    options = ReadOptions(split="none", entities=tmp_path / "e.csv")
    graph = forms.said(read_graph(tmp_path / f"t.{ending}", options))
    types = [("1", TYPE, ":Vase"), ("2", TYPE, ":Person"), ("2", TYPE, ":Maker")]
    assert graph.splits["train"] == [("1", "r", "2"), *types]
    kinds = {":Vase": ("Vase", ""), ":Person": ("Person", ""), ":Maker": ("Maker", "")}
    assert graph.entities == {"1": ("The Portland Vase", ""), "2": ("Josiah Wedgwood", ""), **kinds}
    assert graph.relations == {"r": "r", TYPE: "type"}


def test_kinds_of_nodes_are_not_their_names_and_can_be_excluded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("_start,_end,_type\na_b,c,r\n")
    (tmp_path / "e.csv").write_text("nodeId:ID,born:int,:LABEL\na_b,1900,Person\nc,1901,Person\n")
    options = ReadOptions(split="none", entities=tmp_path / "e.csv", exclude="rdf:type")
    graph = forms.said(read_graph(tmp_path / "t.csv", options))
    assert graph.entities == {"a_b": ("a b", ""), "c": ("c", "")}
    assert graph.splits["train"] == [("a_b", "r", "c")]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nodes_and_edges_in_one_table(tmp_path: Path, ending: str) -> None:
    names = ["_id", "_labels", "name", "_start", "_end", "_type"]
    rows = [["1", ":Vase", "Vase", "", "", ""], ["2", ":Person", "Ann", "", "", ""], ["", "", "", "2", "1", "MADE"]]
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        cells = [[cell or None for cell in column] for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(cells, names=names), path)
    else:
        path.write_text("".join(f"{','.join(row)}\n" for row in [names, *rows]))
    graph = forms.said(read_graph(path, ReadOptions(split="none")))
    assert graph.splits["train"] == [("2", "MADE", "1"), ("1", TYPE, ":Vase"), ("2", TYPE, ":Person")]
    assert graph.entities == {"1": ("Vase", ""), "2": ("Ann", ""), ":Vase": ("Vase", ""), ":Person": ("Person", "")}


def test_only_an_unknown_id_is_taken_by_position(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("head,relation,tail\na,r,b\n")
    (tmp_path / "e.csv").write_text("description,key,kind,name\none,a,x,Ann\ntwo,b,y,Bob\n")
    graph = forms.said(read_graph(tmp_path / "t.csv", ReadOptions(split="none", entities=tmp_path / "e.csv")))
    assert graph.entities == {"a": ("Ann", "one"), "b": ("Bob", "two")}
    assert caplog.messages[0] == f"{tmp_path / 'e.csv'}: columns taken by position: 'key' as id"
    options = ReadOptions(split="none", entities=tmp_path / "e.tsv", label="2")
    (tmp_path / "e.tsv").write_text("a\tx\tAnn\nb\ty\tBob\n")
    assert forms.said(read_graph(tmp_path / "t.csv", options)).entities == {"a": ("Ann", ""), "b": ("Bob", "")}


def test_columns_taken_by_position_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text("a,r,b\nb,r,c\n")
    assert forms.said(read_graph(tmp_path / "t.csv", ReadOptions(split="none"))).splits["train"] == EXPECTED
    message = "columns taken by position: 'a' as head, 'r' as relation, 'b' as tail"
    assert caplog.messages == [f"{tmp_path / 't.csv'}: {message}; its first row counts as data"]
    caplog.clear()
    read_graph(tmp_path / "t.csv", ReadOptions(split="none", head="0", relation="1", tail="2"))  # as was asked for
    assert caplog.messages == []


@pytest.mark.parametrize("middle", ["relation", "Predicate"])
def test_a_relation_in_the_middle_is_a_header_whatever_the_ends_are_called(tmp_path: Path, middle: str) -> None:
    (tmp_path / "t.csv").write_text(f"film,{middle},other\na,r,b\n")
    with pytest.raises(
        SatkgcError, match=r"the head and which the tail\?; if they stand in this order: --head film --tail other$"
    ):
        read_graph(tmp_path / "t.csv", ReadOptions(split="none"))
    kg = read_graph(tmp_path / "t.csv", ReadOptions(split="none", head="0", tail="2"))
    assert forms.said(kg).splits["train"] == [("a", "r", "b")]


def test_a_listing_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("entity\tisa\ta\n")
    (tmp_path / "e.tsv").write_text("entity\tan entity\tEntity\na\tAnn\t\n")  # the first id is a usual column name
    graph = forms.said(read_graph(tmp_path / "t.tsv", ReadOptions(entities=tmp_path / "e.tsv")))
    assert graph.entities == {"entity": ("an entity", "Entity"), "a": ("Ann", "")}


def test_positions_may_be_numbers(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["r"], "y": ["a"], "z": ["b"]}), tmp_path / "t.parquet")
    graph = KnowledgeGraph.load(tmp_path / "t.parquet", head=1, relation=0, tail=2, split="none")
    assert (graph.relations.id(0), graph.entities.ids.to_pylist()) == ("r", ["a", "b"])


def test_numbers_in_the_first_row_are_not_the_positions_asked_for(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("5\t7\t1\n1\t2\t0\n2\t0\t0\n")  # head, tail, relation
    kg = read_graph(tmp_path / "t.tsv", ReadOptions(head="0", tail="1", relation="2", split="none"))
    assert forms.said(kg).splits["train"] == [("5", "1", "7"), ("1", "0", "2"), ("2", "0", "0")]
    (tmp_path / "u.tsv").write_text("a\tr\tb\t1\nb\tr\tc\t2\n")
    kg = read_graph(tmp_path / "u.tsv", ReadOptions(head="0", relation="1", tail="2", split="none"))
    assert forms.said(kg).splits["train"] == EXPECTED


def test_ids_of_two_groups_of_neo4j_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t.csv").write_text(":START_ID(Person),:END_ID(Film),:TYPE\n1,1,acted\n2,1,acted\n")
    assert read_graph(tmp_path / "t.csv", ReadOptions(split="none")).num_entities == 2
    assert "ids of (Person) and (Film) that are the same become one entity" in caplog.text
    caplog.clear()
    (tmp_path / "u.csv").write_text(":START_ID(Person),:END_ID(Person),:TYPE\n1,2,knows\n")
    read_graph(tmp_path / "u.csv", ReadOptions(split="none"))
    assert "become one entity" not in caplog.text


def test_tables_beside_it_may_be_given_as_text(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tr\tb\n")
    (tmp_path / "e.tsv").write_text("id\tname\tdescription\na\tAnn\tx\nb\tBob\ty\n")
    kg = read_graph(tmp_path / "t.tsv", ReadOptions(entities=str(tmp_path / "e.tsv"), split="none"))  # type: ignore[arg-type]
    assert kg.entities.names.to_pylist() == ["Ann", "Bob"]


def test_a_curie_is_no_header(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("ex:id\trdf:type\tex:label\n")
    assert forms.said(read_graph(tmp_path / "t.tsv")).splits["train"] == [("ex:id", "rdf:type", "ex:label")]


def test_ids_that_look_alike_and_those_not_listed_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = ["a,r,b", '" a ",r,b', "Göteborg,r,b", "Go\u0308teborg,r,b"]
    (tmp_path / "t.csv").write_text("\n".join(["head,relation,tail", *rows, rows[0]]) + "\n", encoding="utf-8")
    graph = read_graph(tmp_path / "t.csv", ReadOptions(split="none"))
    assert graph.num_entities == 5  # nothing is put right behind the user's back
    assert "2 groups of several entity ids that look the same, such as 'a' and ' a '" in caplog.text
    assert "1 duplicate triple dropped" in caplog.text
    caplog.clear()
    (tmp_path / "e.csv").write_text("id,name,description\na,A,x\nb,B,y\nGöteborg,G,z\n", encoding="utf-8")
    options = ReadOptions(split="none", entities=tmp_path / "e.csv", unlisted="add", textless="allow")
    assert read_graph(tmp_path / "t.csv", options).num_entities == 5
    assert "2 entity ids taken in that the listing does not have, such as ' a '" in caplog.text
    caplog.clear()
    (tmp_path / "fine.csv").write_text("head,relation,tail\na,r,b\nb,r,c\n")
    read_graph(tmp_path / "fine.csv", ReadOptions(split="none"))
    assert caplog.text == ""
