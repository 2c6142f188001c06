"""Several files, folders of files, patterns and URLs make one graph."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forms
import pytest

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg.readers import ReadOptions, read_graph, sources

TURTLE = "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "


@pytest.fixture
def thesaurus(tmp_path: Path) -> Path:
    """Turtle and N-Triples in a tree of folders, with a file that is neither."""
    folder = tmp_path / "thesaurus"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.ttl").write_text(TURTLE + ':a :in :b ; rdfs:label "Ann" . _:x rdfs:label "X" . :a :has _:x .')
    (folder / "deep" / "b.nt").write_text("<http://e/b> <http://e/in> <http://e/c> .\n")
    (folder / "deep" / "c.ttl").write_text(TURTLE + ':b rdfs:label "Bob" . _:x rdfs:label "Y" . :a :has _:x .')
    (folder / "README.md").write_text("read me")
    (folder / ".hidden.ttl").write_text("not Turtle")
    return folder


def check_thesaurus(graph: KnowledgeGraph) -> None:
    said = forms.said(graph)
    triples = [("a", "in", "b"), ("a", "has", "_:b0"), ("b", "in", "c"), ("a", "has", "_:b1")]
    e = "http://e/"
    assert said.splits["train"] == [(f"{e}{h}", f"{e}{r}", t if t[0] == "_" else f"{e}{t}") for h, r, t in triples]
    names = {id.removeprefix(e): name for id, (name, _) in said.entities.items()}
    assert names == {"a": "Ann", "b": "Bob", "_:b0": "X", "c": "c", "_:b1": "Y"}  # _:x of two files is two nodes


def test_rdf_of_a_folder_a_list_and_a_pattern(thesaurus: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = KnowledgeGraph.load(thesaurus, split="none")
    check_thesaurus(graph)
    assert graph.name == "thesaurus"
    assert caplog.messages == [f"{thesaurus}: 1 file of other kinds not read"]
    files = [thesaurus / "a.ttl", str(thesaurus / "deep" / "b.nt"), thesaurus / "deep" / "c.ttl"]
    check_thesaurus(KnowledgeGraph.load(files, split="none"))
    check_thesaurus(KnowledgeGraph.load([*files, files[0]], split="none"))  # each file once
    check_thesaurus(KnowledgeGraph.load([files[0], str(thesaurus / "d*" / "[bc].*")], split="none"))
    with pytest.raises(SatkgcError, match="no file is called so; check the pattern"):
        KnowledgeGraph.load(str(thesaurus / "*.owl"))


def test_tables_of_nodes_and_edges(tmp_path: Path) -> None:
    """Tables without two ends list entities, each table with columns of its own."""
    (tmp_path / "films.csv").write_text("id,title\n1,Ran\n2,Ikiru\n")
    (tmp_path / "people.csv").write_text("id,name,description\n7,Kurosawa,a director\n8,Mifune,\n")
    (tmp_path / "made.csv").write_text("from,to,type\n7,1,directed\n7,2,directed\n")
    (tmp_path / "z.tsv").write_text("source\ttarget\n8\t1\n")
    edges = [("7", "directed", "1"), ("7", "directed", "2")]
    names = ("films.csv", "people.csv", "made.csv")
    graph = forms.said(read_graph([tmp_path / name for name in names], ReadOptions(split="none")))
    assert graph.splits["train"] == edges
    people = {"7": ("Kurosawa", "a director"), "8": ("Mifune", "")}
    assert graph.entities == {"1": ("Ran", ""), "2": ("Ikiru", ""), **people}
    options = ReadOptions(split="none", relation_name="acted in")  # of the table without relations
    whole = forms.said(read_graph(tmp_path, options))
    assert whole.splits["train"] == [*edges, ("8", "acted in", "1")]
    with pytest.raises(SatkgcError, match=r"2 relation names for 1 table of triples without relations, z\.tsv; give"):
        read_graph(tmp_path, ReadOptions(relation_name=("directed", "acted in")))
    (tmp_path / "made.csv").write_text("from,to,type\n7,1,directed\n7,,directed\n")
    with pytest.raises(SatkgcError, match=r"made\.csv:3: the tail of this triple is empty"):
        read_graph([tmp_path / name for name in names])


@pytest.mark.parametrize("memory", [None, 1])
def test_a_relation_name_leaves_tables_with_relations_alone(tmp_path: Path, memory: int | None) -> None:
    (tmp_path / "a.csv").write_text("source,relation,target,weight\na,knows,b,1\n")
    (tmp_path / "b.csv").write_text("from,to\nb,c\n")
    (tmp_path / "c.tsv").write_text("a\tsees\tb\nb\tsees\ta\n")
    (tmp_path / "d.csv").write_text("subject,object,kind\nc,d,x\n")
    own, sees = ("a", "knows", "b"), [("a", "sees", "b"), ("b", "sees", "a")]
    graph = read_graph(tmp_path, ReadOptions(split="none", relation_name="likes", memory=memory))
    assert forms.said(graph).splits["train"] == [own, ("b", "likes", "c"), *sees, ("c", "likes", "d")]
    graph = read_graph(tmp_path, ReadOptions(split="none", relation_name=("likes", "has"), memory=memory))
    assert forms.said(graph).splits["train"] == [own, ("b", "likes", "c"), *sees, ("c", "has", "d")]
    taken = "--relation-name likes would take the place of the relations in"
    for name, where in (("a.csv", "the column 'relation'"), ("c.tsv", "its second column")):
        with pytest.raises(SatkgcError, match=rf"{name}: {taken} {where}; leave it out"):
            read_graph(tmp_path / name, ReadOptions(relation_name="likes", memory=memory))


def test_tables_of_a_database_with_keys_of_their_own(tmp_path: Path) -> None:
    """Of several columns each table takes the first that it has, and none twice."""
    tables = {
        "referred.csv": "billID,committeeID\nhr1,AG\nhr2,AG\n",
        "subjects.csv": "billID,title\nhr1,Farming\n",
        "members.csv": "committeeID,legislatorID,rank\nAG,B1,1\n",
        "bills.csv": "billID,active,officialTitle\nhr1,True,To feed\nhr2,False,To drink\n",
        "committees.csv": "type,name,thomasID,jurisdiction\nhouse,Agriculture,AG,farms\n",
        "people.csv": "thomasID,bioguideID,wikipediaID\n00136,B1,Sherrod Brown\n",
    }
    for name, text in tables.items():
        (tmp_path / name).write_text(text)
    options: dict[str, Any] = {
        "head": ["billID", "committeeID"],
        "tail": ["committeeID", "title", "legislatorID"],
        "relation_name": ["referred to", "subject", "member"],
        "id": ["billID", "bioguideID", "thomasID"],
        "label": ["name", "wikipediaID"],
        "description": ["officialTitle", "jurisdiction"],
        "split": "none",
        "unlisted": "add",
    }
    files = [tmp_path / name for name in tables]
    graph = forms.said(read_graph(files, ReadOptions(**options)))
    assert graph.splits["train"] == [
        ("hr1", "referred to", "AG"),
        ("hr2", "referred to", "AG"),
        ("hr1", "subject", "Farming"),
        ("AG", "member", "B1"),
    ]
    bills = {"hr1": ("hr1", "To feed"), "hr2": ("hr2", "To drink")}
    others = {"AG": ("Agriculture", "farms"), "B1": ("Sherrod Brown", ""), "Farming": ("Farming", "")}
    assert graph.entities == {**bills, **others}
    large = forms.said(read_graph(files, ReadOptions(**options, memory=1)))
    assert (large.splits, large.entities) == (graph.splits, graph.entities)
    unnamed = {name: value for name, value in options.items() if name not in ("id", "description")}
    of = r"subjects\.csv, members\.csv, bills\.csv; give .* --id, --label and --description of entities$"
    with pytest.raises(SatkgcError, match=rf"3 relation names for 4 tables of triples, referred\.csv, {of}"):
        read_graph(files, ReadOptions(**unnamed))
    with pytest.raises(SatkgcError, match="no table has the column 'billId'; check --head"):
        read_graph(files, ReadOptions(**{**options, "head": ["billId", "committeeID"]}))
    with pytest.raises(SatkgcError, match=r"subjects\.csv: there is no column 'committeeID' for the tail"):
        read_graph(files[1], ReadOptions(head="billID", tail="committeeID", relation_name="x"))


def test_files_called_after_splits(tmp_path: Path) -> None:
    for name, row in (("train", "a,r,b"), ("valid", "b,r,a"), ("test", "b,r,b")):
        (tmp_path / f"{name}.csv").write_text(f"head,relation,tail\n{row}\n")
    graph = forms.said(read_graph(tmp_path))
    assert graph.splits == {"train": [("a", "r", "b")], "valid": [("b", "r", "a")], "test": [("b", "r", "b")]}


def test_kinds_are_not_mixed(tmp_path: Path, thesaurus: Path) -> None:
    (tmp_path / "t.csv").write_text("head,relation,tail\na,r,b\n")
    with pytest.raises(SatkgcError, match="tables and RDF make no graph together; give files of one kind"):
        KnowledgeGraph.load([thesaurus, tmp_path / "t.csv"])
    (tmp_path / "g.zip").write_bytes(b"")
    with pytest.raises(SatkgcError, match="archives are read one at a time"):
        KnowledgeGraph.load([tmp_path / "g.zip", tmp_path / "t.csv"])
    with pytest.raises(SatkgcError, match=r"no\.csv: there is no such file"):
        KnowledgeGraph.load([tmp_path / "t.csv", tmp_path / "no.csv"])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("t.csv", {"languages": "de"}, "--languages says nothing of tables; leave it out; it is for RDF"),
        ("t.csv", {"graphs": "http://e/g"}, "--graph says nothing of tables"),
        ("t.csv", {"label": "x"}, "--label names a column of a table of entities, and there is none; .* --entities"),
        ("g.nt", {"head": "x"}, "--head says nothing of RDF; leave it out; it is for tables"),
        ("g.nt", {"duplicates": "first"}, "--duplicates says nothing of RDF; .* for a folder of train.tsv and tables"),
        ("folder", {"relation_name": "x"}, "--relation-name says nothing of a folder of train.tsv; .* for tables"),
    ],
)
def test_a_flag_that_does_not_apply_is_refused(
    tmp_path: Path, name: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.tsv").write_text("a\tr\tb\n")
    (tmp_path / "t.csv").write_text("head,relation,tail\na,r,b\n")
    (tmp_path / "g.nt").write_text("<http://e/a> <http://e/r> <http://e/b> .\n")
    with pytest.raises(SatkgcError, match=f"{name}: {message}"):
        KnowledgeGraph.load(tmp_path / name, **options)  # type: ignore[arg-type]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the files in `tmp_path`."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_urls(thesaurus: Path, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"{served}/thesaurus"
    urls = [f"{base}/a.ttl", f"{base}/deep/b.nt", f"{base}/deep/c.ttl?download=1"]
    check_thesaurus(KnowledgeGraph.load(urls, split="none"))
    check_thesaurus(KnowledgeGraph.load([urls[0], thesaurus / "deep"], split="none"))
    assert KnowledgeGraph.load(urls[1], split="none").name == "b"
    source = forms.Source({"train": [("a", "r", "b")]}, {"a": ("A", ""), "b": ("B", "")}, {"r": "r"})
    forms.zipped(source, tmp_path / "g.zip")
    assert forms.said(KnowledgeGraph.load(f"{served}/g.zip", split="none")).splits["train"] == [("a", "r", "b")]
    (tmp_path / "bad.nt").write_text("<http://e/b> <http://e/in> .\n")
    for url, message in (
        (f"{served}/no.ttl", "no.ttl: the server answered 404"),
        (f"{served}/bad.nt", r"bad\.nt:1: not N-Triples"),  # the place is the URL's, not a temporary one
        (f"{served}/g.zip.docx", "the server answered 404"),
        (f"{base}/README.md", "README.md: this kind of file is not known"),
    ):
        with pytest.raises(SatkgcError, match=f"^{served}.*{message}"):
            KnowledgeGraph.load(url)
    monkeypatch.setattr(sources, "MOST_DOWNLOAD", 20)
    with pytest.raises(
        SatkgcError, match=r"a\.ttl: the file has more than 0 MiB; if you trust it, download it yourself"
    ):
        KnowledgeGraph.load(urls[0])
