"""First rows: recognised by their names, told from data by what comes again, else asked about."""

from __future__ import annotations

import re
from pathlib import Path

import forms
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, read_graph
from satkgc.kg.readers.header import ENDS

ROWS = [("a", "knows", "b"), ("b", "knows", "c"), ("c", "likes", "a")]


def triples(path: Path, text: str, **options: object) -> list[tuple[str, str, str]]:
    path.write_text(text)
    return forms.said(read_graph(path, ReadOptions(split="none", **options))).splits["train"]  # type: ignore[arg-type]


def as_csv(*rows: tuple[str, ...]) -> str:
    return "".join(",".join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "header",
    [
        "start_id,end_id,type", ":START_ID,:END_ID,:TYPE", ":start_id,:end_id,:type", "source,target,relation",
        "Source,Target,Label", "from,to,label", "FROM,TO,TYPE", "subject,object,predicate", "head,tail,relation",
        "startId,endId,verb", "Start ID,End ID,Relationship Type", "source-id,target-id,relationship",
        "src,dst,edge_type", "node1,node2,rel", "head_id,tail_id,relation_id", "h,t,r", "subject,target,relType",
    ],
)  # fmt: skip
def test_usual_names(tmp_path: Path, header: str) -> None:
    """The relation is the last column here, and taken by its name; `verb` alone has to be told."""
    rows = [tuple(header.split(",")), *((h, t, r) for h, r, t in ROWS)]
    flags = {"relation": rows[0][2]} if rows[0][2] == "verb" else {}
    assert triples(tmp_path / "t.csv", as_csv(*rows), **flags) == ROWS
    weights = [(*row, str(i)) for i, row in enumerate(rows)]
    assert triples(tmp_path / "t.csv", as_csv(*weights), **flags) == ROWS


@pytest.mark.parametrize(("head", "tail"), ENDS)
def test_both_ends_are_taken_from_one_pair(tmp_path: Path, head: str, tail: str) -> None:
    """A table with a column of another pair's head beside it: `source` says where an edge is from, and no head is."""
    other = "source" if head != "source" else "from"
    rows = [(other, tail, "relation", head), *(("book", t, r, h) for h, r, t in ROWS)]
    assert triples(tmp_path / "t.csv", as_csv(*rows)) == ROWS


def test_two_pairs_are_asked_about(tmp_path: Path) -> None:
    rows = [("subject", "object", "subject_id", "object_id", "relation"), ("A", "B", "a", "b", "knows")]
    flags = "--head subject --tail object or --head subject_id --tail object_id"
    with pytest.raises(SatkgcError, match=f"which columns are head and tail.*; choose {flags}$"):
        triples(tmp_path / "t.csv", as_csv(*rows))
    chosen = {"head": "subject_id", "tail": "object_id"}
    assert triples(tmp_path / "t.csv", as_csv(*rows), **chosen) == [("a", "knows", "b")]


def test_gephi_says_directed_as_the_type(tmp_path: Path) -> None:
    rows = [("Source", "Target", "Type", "Label"), ("a", "b", "Directed", "knows")]
    with pytest.raises(SatkgcError, match=r"which column is the relation.*choose --relation Type or --relation Label$"):
        triples(tmp_path / "t.csv", as_csv(*rows))
    assert triples(tmp_path / "t.csv", as_csv(*rows), relation="Label") == [("a", "knows", "b")]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_first_row_that_may_be_a_header_is_asked_about(tmp_path: Path, ending: str) -> None:
    text = as_csv(("drug", "effect", "side disease"), *ROWS)
    path, text = tmp_path / f"t.{ending}", text if ending == "csv" else text.replace(",", "\t")
    flags = (
        "if it is: --head drug --relation effect --tail 'side disease'; if it is data: --head 0 --relation 1 --tail 2"
    )
    with pytest.raises(SatkgcError, match=re.escape(f"the first row is a header cannot be told; {flags}")):
        triples(path, text)
    assert triples(path, text, head="drug", relation="effect", tail="side disease") == ROWS
    assert triples(path, text, head="0", relation="1", tail="2") == [("drug", "effect", "side disease"), *ROWS]


@pytest.mark.parametrize(
    "first", [("x", "knows", "y"), ("a", "owns", "y"), ("x", "owns", "a"), ("c", "owns", "y"), ("x", "owns", "b")]
)
def test_a_first_row_of_which_something_comes_again_is_a_triple(tmp_path: Path, first: tuple[str, str, str]) -> None:
    assert triples(tmp_path / "t.csv", as_csv(first, *ROWS)) == [first, *ROWS]


@pytest.mark.parametrize("cell", ["{}", "http://e.org/{}"])
def test_a_column_of_numbers_or_iris_shows_its_header(tmp_path: Path, cell: str) -> None:
    rows = [(cell.format(i), "knows", cell.format(i + 1)) for i in range(4)]
    with pytest.raises(SatkgcError, match=r"if they stand in this order: --head film --relation knows --tail other$"):
        triples(tmp_path / "t.csv", as_csv(("film", "knows", "other"), *rows))


def test_three_columns_without_a_header_in_another_order(tmp_path: Path) -> None:
    rows = [(f"e{i}", f"e{i + 1}", "knows" if i % 2 else "likes") for i in range(20)]
    flags = "the third: --head 0 --relation 2 --tail 1; the second: --head 0 --relation 1 --tail 2"
    with pytest.raises(SatkgcError, match=rf"the second has 20 values, the third 2; {flags}$"):
        triples(tmp_path / "t.csv", as_csv(*rows))
    turned = triples(tmp_path / "t.csv", as_csv(*rows), head="0", relation="2", tail="1")
    assert turned == [(h, r, t) for h, t, r in rows]


def test_names_of_parquet_that_say_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"drug": ["a"], "effect": ["r"], "disease": ["b"]}), tmp_path / "t.parquet")
    with pytest.raises(SatkgcError, match=r"in this order: --head drug --relation effect --tail disease$"):
        read_graph(tmp_path / "t.parquet")
    pq.write_table(pa.table({"0": ["a"], "1": ["r"], "2": ["b"]}), tmp_path / "t.parquet")
    graph = read_graph(tmp_path / "t.parquet", ReadOptions(split="none"))
    assert forms.said(graph).splits["train"] == [("a", "r", "b")]


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([("from", "to"), ("a", "b"), ("b", "c")], {}),
        ([("a", "b"), ("b", "c")], {}),
        ([("film", "actor"), ("a", "b"), ("b", "c")], {"head": "film", "tail": "actor"}),
        ([("weight", "film", "actor"), ("1", "a", "b"), ("2", "b", "c")], {"head": "film", "tail": "actor"}),
        ([("Source", "Target", "Type"), ("a", "b", "Directed"), ("b", "c", "Directed")], {}),
    ],
)
def test_two_columns_and_the_relation_by_a_flag(
    tmp_path: Path, rows: list[tuple[str, ...]], options: dict[str, str]
) -> None:
    assert triples(tmp_path / "t.csv", as_csv(*rows), relation_name="stars", **options) == [
        ("a", "stars", "b"),
        ("b", "stars", "c"),
    ]


@pytest.mark.parametrize("header", ["bill_id,committee_id", "billID,committeeID", "Bill ID,Committee Id"])
def test_two_columns_of_keys(tmp_path: Path, header: str) -> None:
    found = triples(tmp_path / "t.csv", f"{header}\nhr1,AG\nhr2,BK\n", relation_name="referred to")
    assert found == [("hr1", "referred to", "AG"), ("hr2", "referred to", "BK")]


def test_a_line_break_in_a_header_is_asked_about_in_one_line(tmp_path: Path) -> None:
    flags = r"if it is: --head \$'fi\\nlm' --tail actor; if it is data: --head 0 --tail 1$"
    with pytest.raises(SatkgcError, match=flags):
        triples(tmp_path / "t.csv", '"fi\nlm",actor\na,b\nb,c\n', relation_name="stars")


def test_two_columns_without_the_flag(tmp_path: Path) -> None:
    for rows in ([("from", "to"), ("a", "b")], [("a", "b"), ("b", "c")], [("film", "actor"), ("a", "b")]):
        with pytest.raises(SatkgcError, match=r"for the relation; say what every row means: --relation-name NAME$"):
            triples(tmp_path / "t.csv", as_csv(*rows))
    with pytest.raises(SatkgcError, match="the relation is named twice"):
        ReadOptions(relation="type", relation_name="stars")
    with pytest.raises(SatkgcError, match=r"if it is: --head film --tail actor; if it is data: --head 0 --tail 1$"):
        triples(tmp_path / "t.csv", "film,actor\na,b\nb,c\n", relation_name="stars")


@pytest.mark.parametrize("header", ["key,name", "key,kind,description", "kind,key,Label"])
def test_a_header_of_a_listing_is_no_entity(tmp_path: Path, header: str) -> None:
    (tmp_path / "t.csv").write_text("head,relation,tail\na,r,b\n")
    (tmp_path / "e.csv").write_text(as_csv(tuple(header.split(",")), *((c,) * len(header.split(",")) for c in "ab")))
    graph = read_graph(tmp_path / "t.csv", ReadOptions(split="none", entities=tmp_path / "e.csv"))
    assert graph.entities.ids.to_pylist() == ["a", "b"]
