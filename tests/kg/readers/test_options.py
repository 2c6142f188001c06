"""Relations that are excluded: as if the source did not have their triples."""

from __future__ import annotations

import re
from pathlib import Path

import forms
import pytest

from satkgc.errors import SatkgcError
from satkgc.kg.readers import ReadOptions, read_graph

TYPE, SAME = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2002/07/owl#sameAs"
MADE = "http://m.org/madeBy"
VASE, ANN, OBJECT = "http://m.org/vase", "http://m.org/ann", "http://m.org/Object"
TRIPLES = [(VASE, MADE, ANN), (VASE, TYPE, OBJECT), (VASE, SAME, "http://other.org/1"), (ANN, TYPE, "http://m.org/P")]
SOURCE = forms.Source({"train": TRIPLES[:3], "valid": [], "test": TRIPLES[3:]}, {VASE: ("Vase", ""), ANN: ("Ann", "")})


def written(form: str, folder: Path) -> tuple[Path, dict[str, Path]]:
    """The source in a form, with tables beside it where it has any; two entities alone are listed."""
    SOURCE.relations = {MADE: "made by", TYPE: "is a", SAME: "same as"}
    if form == "folder":
        return forms.folder(SOURCE, folder / "g"), {}
    if form == "zip":
        return forms.zipped(SOURCE, folder / "g.zip"), {}
    if form == "nt":
        (folder / "g.nt").write_text(forms.nt(SOURCE))
        return folder / "g.nt", {}
    tables = forms.tables(SOURCE, folder, form)
    return tables["triples"], {"entities": tables["entities"], "relations": tables["relations"]}


@pytest.mark.parametrize("form", ["folder", "zip", "csv", "tsv", "parquet", "nt"])
@pytest.mark.parametrize("exclude", [(TYPE, SAME), ("is a", "same as"), ("rdf:type", "owl:sameAs"), ("rdf:type",) * 2])
def test_every_reader_excludes_relations(tmp_path: Path, form: str, exclude: tuple[str, ...]) -> None:
    """Entities that only the excluded triples have go with them: they are not listed, and would be refused."""
    path, tables = written(form, tmp_path)
    unlisted = "error" if len(set(exclude)) > 1 else "add"
    options = {"exclude": exclude} | ({} if form == "nt" else {"unlisted": unlisted} | tables)
    graph = forms.said(read_graph(path, ReadOptions(split="none", **options)))  # type: ignore[arg-type]
    left = {TYPE} if len(set(exclude)) == 1 else {TYPE, SAME}
    kept = [triple for triple in TRIPLES if triple[1] not in left]
    assert graph.splits["train"] == kept
    assert set(graph.entities) == {id for h, _, t in kept for id in (h, t)}
    assert set(graph.relations) == {r for _, r, _ in kept}


def test_a_large_table_whose_entities_are_all_listed(tmp_path: Path) -> None:
    entities = {id: (id, "") for h, _, t in TRIPLES for id in (h, t)}
    paths = forms.tables(forms.Source({"train": TRIPLES}, entities, {}), tmp_path, "parquet")
    options = ReadOptions(split="none", entities=paths["entities"], exclude="rdf:type")
    graph = forms.said(read_graph(paths["triples"], options))
    assert graph.splits["train"] == [TRIPLES[0], TRIPLES[2]]
    assert set(graph.entities) == set(entities)  # listed ones stay


@pytest.mark.parametrize("form", ["folder", "parquet", "nt"])
def test_how_many_triples_are_excluded_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str) -> None:
    path, tables = written(form, tmp_path)
    read_graph(path, ReadOptions(split="none", exclude=["rdf:type", "same as"], **tables))  # type: ignore[arg-type]
    shown = path / "train.tsv" if form == "folder" else path
    assert caplog.messages == [f"{shown}: triples left out: 2 of {TYPE!r}, 1 of {SAME!r}"]


def test_a_prefix_of_the_file_and_a_name_made_from_an_id(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("@prefix m: <http://m.org/> . m:a m:madeBy m:b ; m:P2_has_type m:c ; m:of m:d .")
    graph = read_graph(tmp_path / "g.ttl", ReadOptions(split="none", exclude=("m:P2_has_type", "made by")))
    assert graph.relations.ids.to_pylist() == ["http://m.org/of"]
    assert graph.entities.ids.to_pylist() == ["http://m.org/a", "http://m.org/d"]


def test_the_line_of_what_is_wrong_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("head,relation,tail\na,skip,b\na,r,b\na,skip,c\na,r,\n")
    with pytest.raises(SatkgcError, match=r"t\.csv:5: the tail of this triple is empty"):
        read_graph(tmp_path / "t.csv", ReadOptions(exclude="skip"))


@pytest.mark.parametrize("form", ["folder", "parquet", "nt"])
@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        ("rdf:typ", r"no triple has the relation 'rdf:typ'; "),
        ("MADE_BY", r"(triples\.parquet|train\.tsv|g\.nt): no triple has .* did you mean 'made by'"),
        ("mad by", r"no triple has the relation 'mad by'; did you mean 'made by'.*\?"),
        ("zzz", r"no triple has the relation 'zzz'; `satkgc kg inspect` lists them"),
        (["made by", "is a", "same as"], "no triple is left; exclude fewer relations"),
    ],
)
def test_what_cannot_be_excluded(tmp_path: Path, form: str, exclude: str, message: str) -> None:
    path, tables = written(form, tmp_path)
    with pytest.raises(SatkgcError, match=message):
        read_graph(path, ReadOptions(exclude=exclude, **tables))  # type: ignore[arg-type]


def test_a_name_of_several_relations(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\thttp://x/type\tb\na\thttp://y/type\tb\na\tr\tb\n")
    message = "t.tsv: 2 relations are called 'type'; give the id of one: 'http://x/type' or 'http://y/type'"
    with pytest.raises(SatkgcError, match=re.escape(message)):
        read_graph(tmp_path / "t.tsv", ReadOptions(exclude="type"))
    graph = read_graph(tmp_path / "t.tsv", ReadOptions(split="none", exclude="http://x/type"))
    assert graph.relations.ids.to_pylist() == ["http://y/type", "r"]
