"""Relations and named graphs that are left out: as if the source did not have them."""

from __future__ import annotations

import re
from pathlib import Path

import forms
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, read

TYPE, SAME = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2002/07/owl#sameAs"
MADE = "http://m.org/madeBy"
VASE, ANN, OBJECT = "http://m.org/vase", "http://m.org/ann", "http://m.org/Object"
TRIPLES = [(VASE, MADE, ANN), (VASE, TYPE, OBJECT), (VASE, SAME, "http://other.org/1"), (ANN, TYPE, "http://m.org/P")]
SOURCE = forms.Source({"train": TRIPLES[:3], "valid": [], "test": TRIPLES[3:]}, {VASE: ("Vase", ""), ANN: ("Ann", "")})


def written(form: str, room: Path) -> tuple[Path, dict[str, Path]]:
    """The source in a form, with tables beside it where it has any; two entities alone are listed."""
    SOURCE.relations = {MADE: "made by", TYPE: "is a", SAME: "same as"}
    if form == "folder":
        return forms.folder(SOURCE, room / "g"), {}
    if form == "zip":
        return forms.zipped(SOURCE, room / "g.zip"), {}
    if form == "nt":
        (room / "g.nt").write_text(forms.nt(SOURCE))
        return room / "g.nt", {}
    tables = forms.tables(SOURCE, room, form)
    return tables["triples"], {"entities": tables["entities"], "relations": tables["relations"]}


@pytest.mark.parametrize("form", ["folder", "zip", "csv", "tsv", "parquet", "nt"])
@pytest.mark.parametrize("without", [(TYPE, SAME), ("is a", "same as"), ("rdf:type", "owl:sameAs"), ("rdf:type",) * 2])
def test_every_reader_leaves_relations_out(tmp_path: Path, form: str, without: tuple[str, ...]) -> None:
    """Entities that only the left-out triples have go with them: they are not listed, and would be refused."""
    path, tables = written(form, tmp_path)
    unlisted = "error" if len(set(without)) > 1 else "add"
    graph = forms.said(read(path, ReadOptions(split="none", without=without, unlisted=unlisted, **tables)))  # type: ignore[arg-type]
    left = {TYPE} if len(set(without)) == 1 else {TYPE, SAME}
    kept = [triple for triple in TRIPLES if triple[1] not in left]
    assert graph.splits["train"] == kept
    assert set(graph.entities) == {id for h, _, t in kept for id in (h, t)}
    assert set(graph.relations) == {r for _, r, _ in kept}


def test_a_large_table_whose_entities_are_all_listed(tmp_path: Path) -> None:
    entities = {id: (id, "") for h, _, t in TRIPLES for id in (h, t)}
    paths = forms.tables(forms.Source({"train": TRIPLES}, entities, {}), tmp_path, "parquet")
    options = ReadOptions(split="none", entities=paths["entities"], without="rdf:type")
    graph = forms.said(read(paths["triples"], options))
    assert graph.splits["train"] == [TRIPLES[0], TRIPLES[2]]
    assert set(graph.entities) == set(entities)  # listed ones stay


@pytest.mark.parametrize("form", ["folder", "parquet", "nt"])
def test_how_many_are_left_out_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str) -> None:
    path, tables = written(form, tmp_path)
    read(path, ReadOptions(split="none", without=["rdf:type", "same as"], **tables))  # type: ignore[arg-type]
    shown = path / "train.tsv" if form == "folder" else path
    assert caplog.messages == [f"{shown}: triples left out: 2 of {TYPE!r}, 1 of {SAME!r}"]


def test_a_prefix_of_the_file_and_a_name_made_from_an_id(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("@prefix m: <http://m.org/> . m:a m:madeBy m:b ; m:P2_has_type m:c ; m:of m:d .")
    graph = read(tmp_path / "g.ttl", ReadOptions(split="none", without=("m:P2_has_type", "made by")))
    assert graph.relations.ids.to_pylist() == ["http://m.org/of"]
    assert graph.entities.ids.to_pylist() == ["http://m.org/a", "http://m.org/d"]


def test_the_line_of_what_is_wrong_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("head,relation,tail\na,skip,b\na,r,b\na,skip,c\na,r,\n")
    with pytest.raises(SatkgcError, match=r"t\.csv:5: the tail of this triple is empty"):
        read(tmp_path / "t.csv", ReadOptions(without="skip"))


@pytest.mark.parametrize("form", ["folder", "parquet", "nt"])
@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("rdf:typ", r"no triple has the relation 'rdf:typ'; "),
        ("MADE_BY", r"(triples\.parquet|train\.tsv|g\.nt): no triple has .* did you mean 'made by'"),
        ("mad by", r"no triple has the relation 'mad by'; did you mean 'made by'.*\?"),
        ("zzz", r"no triple has the relation 'zzz'; `satkgc kg inspect` lists them"),
        (["made by", "is a", "same as"], "no triple is left; leave fewer relations out"),
    ],
)
def test_what_cannot_be_left_out(tmp_path: Path, form: str, without: str, message: str) -> None:
    path, tables = written(form, tmp_path)
    with pytest.raises(SatkgcError, match=message):
        read(path, ReadOptions(without=without, **tables))  # type: ignore[arg-type]


def test_a_name_of_several_relations(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\thttp://x/type\tb\na\thttp://y/type\tb\na\tr\tb\n")
    message = "t.tsv: 2 relations are called 'type'; give the id of one: 'http://x/type' or 'http://y/type'"
    with pytest.raises(SatkgcError, match=re.escape(message)):
        read(tmp_path / "t.tsv", ReadOptions(without="type"))
    graph = read(tmp_path / "t.tsv", ReadOptions(split="none", without="http://x/type"))
    assert graph.relations.ids.to_pylist() == ["http://y/type", "r"]


TRIG = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :a :plain :b .
:objects { :a :made :b . :a rdfs:label "A" } :people { :b :knows :c . :b rdfs:label "B" } _:x { :a :blank :b }
"""


def test_named_graphs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "g.trig").write_text(TRIG)

    def relations(**options: object) -> list[str]:
        graph = read(tmp_path / "g.trig", ReadOptions(split="none", **options))  # type: ignore[arg-type]
        return [id.removeprefix("http://e/") for id in graph.relations.ids.to_pylist()]

    assert relations() == ["plain", "made", "knows", "blank"]
    assert caplog.messages == []
    assert relations(graphs="http://e/people") == ["knows"]
    assert caplog.messages == [f"{tmp_path / 'g.trig'}: left out: 4 statements of other graphs"]
    assert relations(graphs=["http://e/people", "http://e/objects"]) == ["made", "knows"]
    graph = read(tmp_path / "g.trig", ReadOptions(split="none", graphs="http://e/people"))
    assert forms.said(graph).entities == {"http://e/b": ("B", ""), "http://e/c": ("c", "")}


def test_a_graph_without_a_statement_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.trig").write_text(TRIG)
    with pytest.raises(SatkgcError, match="in the graph http://e/object; did you mean http://e/objects"):
        read(tmp_path / "g.trig", ReadOptions(graphs=("http://e/people", "http://e/object")))
    (tmp_path / "g.nt").write_text(forms.nt(SOURCE))
    with pytest.raises(SatkgcError, match=r"g\.nt: no statement is in the graph http://e/g; it has 0 named graphs"):
        read(tmp_path / "g.nt", ReadOptions(graphs=("http://e/g",)))
