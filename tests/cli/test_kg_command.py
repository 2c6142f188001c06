"""`satkgc kg`, run as a user would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.cli import app, main
from satkgc.kg import CATALOGUE, Counts, cache_folder, expand, find_entry, shorten

TRIPLES = "subject,verb,object\nanna,knows,ben\nben,knows,cleo\ncleo,knows,anna\nanna,likes,cleo\nben,likes,anna\n"
PEOPLE = "key,called,about\nanna,Anna,a baker\nben,Ben,\ncleo,Cleo,a queen\n"
COLUMNS = ["--head", "subject", "--relation", "verb", "--tail", "object", "--id", "key", "--label", "called"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("SATKGC_DATA", raising=False)


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """The arguments that read two CSV files whose columns have names of their own."""
    (tmp_path / "triples.csv").write_text(TRIPLES)
    (tmp_path / "people.csv").write_text(PEOPLE)
    options = [*COLUMNS, "--description", "about", "--entities", str(tmp_path / "people.csv")]
    return [str(tmp_path / "triples.csv"), *options]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["kg", *arguments], catch_exceptions=False)


def test_import_maps_columns_and_splits_by_the_seed(tables: list[str], tmp_path: Path) -> None:
    source, *options = tables
    result = run("import", source, str(tmp_path / "graph"), *options, "--split", "none", "--name", "people")
    assert "5/0/0 train/valid/test triples" in result.stdout
    graph = KnowledgeGraph.load(tmp_path / "graph")
    assert (graph.name, graph.entities.name(1), graph.entities.description(2)) == ("people", "Ben", "a queen")
    run("import", source, str(tmp_path / "split"), *options, "--valid", "0", "--test", "0.2", "--seed", "1")
    assert len(KnowledgeGraph.load(tmp_path / "split").test) == 1
    assert KnowledgeGraph.load(tmp_path / "split").name == "split"  # the folder's name, where none is given


@pytest.mark.parametrize("flags", [[], ["--force", "--head", "subject"]])
def test_one_argument_of_import_is_a_source_without_a_folder(tables: list[str], flags: list[str]) -> None:
    remedy = rf"name it last: satkgc kg import {re.escape(tables[0])} FOLDER$"
    with pytest.raises(SatkgcError, match=rf"^the folder to write, OUT, is missing; {remedy}"):
        run("import", *flags, tables[0])
    assert "SOURCE" in CliRunner().invoke(app, ["kg", "import"]).stderr


def test_import_takes_some_graphs_and_leaves_relations_out(tmp_path: Path) -> None:
    statements = "<e:a> <e:knows> <e:b> <e:g> .\n<e:a> <e:likes> <e:b> <e:g> .\n<e:a> <e:sees> <e:b> <e:h> .\n"
    (tmp_path / "g.nq").write_text(statements + "<e:a> <e:owns> <e:b> .\n<e:b> <e:knows> <e:a> <e:h> .\n")
    flags = ["--graph", "e:g", "--graph", "e:h", "--exclude", "likes", "--exclude", "e:sees", "--split", "none"]
    result = run("import", str(tmp_path / "g.nq"), str(tmp_path / "graph"), *flags)
    assert "2 entities, 1 relations, 2/0/0" in result.stdout


def test_inspect_describes_a_source_as_it_is(tables: list[str], tmp_path: Path) -> None:
    figures = json.loads(run("inspect", *tables, "--json", "--test", "0.2").stdout)
    expected = {"entities": 3, "relations": 2, "train": 5, "valid": 0, "test": 0, "described_entities": 2}
    expected |= {"mean_degree": 2.0, "max_degree": 2, "components": 1}
    assert {key: figures[key] for key in expected} == expected
    split = json.loads(run("inspect", *tables, "--json", "--split", "transductive", "--test", "0.2").stdout)
    assert split["train"] + split["valid"] + split["test"] == 5
    assert split["test"] == 1


def test_inspect_shows_a_table_and_draws(tmp_path: Path) -> None:
    result = run("inspect", "wordnet-sample", "--plot", str(tmp_path / "degrees.png"))
    for text in (
        "wordnet-sample",
        "3,654",
        "mean degree",
        "N-1 relations",
        "words in a description",
        "leaks into test",
    ):
        assert text in result.stdout
    assert (tmp_path / "degrees.png").stat().st_size > 10_000


def test_inspect_shows_relations_the_most_frequent_and_the_rarest(tmp_path: Path) -> None:
    rows = [f"a{i},[/r{relation}],b" for relation in range(40) for i in range(40 - relation)]  # brackets: no markup
    (tmp_path / "g.csv").write_text("\n".join(["head,relation,tail", *rows]))
    shown = run("inspect", str(tmp_path / "g.csv")).stdout
    listed = [line.split() for line in shown.partition("triples    relation")[2].splitlines()[1:27]]
    assert [line[0] for line in listed] == [*map(str, range(40, 20, -1)), "…", *map(str, range(5, 0, -1))]
    assert listed[0][-1] == "[/r0]"
    assert listed[20][1:3] == ["15", "more,"]
    assert "named like their id" in shown
    figures = json.loads(run("inspect", str(tmp_path / "g.csv"), "--json").stdout)
    assert [relation["triples"] for relation in figures["relation_triples"]] == list(range(40, 0, -1))


def test_inspect_tells_relations_apart_that_begin_alike_in_80_columns(tmp_path: Path) -> None:
    long = "http://vocabulary.example.org/ontology/of/very/long/addresses"
    relations = {
        "http://www.w3.org/2004/02/skos/core#narrowMatch": "skos:narrowMatch",
        "http://www.w3.org/2004/02/skos/core#exactMatch": "skos:exactMatch",
        f"{long}#hasTopic": "…hasTopic",
        f"{long}/one#part": "one#part",  # two that end alike
        f"{long}/two#part": "two#part",
    }
    rows = "".join(f"<{long}/a> <{relation}> <{long}/b> .\n" for relation in relations)
    (tmp_path / "g.nt").write_text(
        rows + f"<{long}#hasTopic> <{expand('rdf:type')}> <{expand('owl:SymmetricProperty')}> .\n"
    )
    shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["kg", "inspect", str(tmp_path / "g.nt")]).stdout
    table, _, logic = shown.partition("triples    relation")[2].partition("property")
    ids = [line.split()[-1] for line in table.splitlines() if line.strip()]
    assert all(any(id.endswith(end) for id in ids) for end in relations.values())
    assert ["…hasTopic", "symmetric", "stated"] in [line.split() for line in logic.splitlines()]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("text", ["skos:broader", "rdf:type", "http://e/x", "broader", "a:b"])
def test_a_shortened_iri_expands_to_itself(text: str) -> None:
    assert shorten(expand(text)) == text
    assert expand(shorten(expand(text))) == expand(text)


def test_inspect_looks_at_every_byte_of_the_binary_form(tables: list[str], tmp_path: Path) -> None:
    source, *options = tables
    run("import", source, str(tmp_path / "graph"), *options)
    edges = tmp_path / "graph" / "adjacency_edges.npy"
    edges.write_bytes(edges.read_bytes()[:-1] + b"\x07")
    with pytest.raises(SatkgcError, match=r"adjacency_edges\.npy: the content does not match the checksum"):
        run("inspect", str(tmp_path / "graph"))


def test_list_names_every_graph() -> None:
    result = run("list")
    for entry in CATALOGUE:
        assert entry.name in result.stdout
    assert "bundled" in result.stdout
    graphs = {graph.pop("name"): graph for graph in json.loads(run("list", "--json").stdout)}
    assert graphs.keys() == {entry.name for entry in CATALOGUE}
    counts = graphs["wordnet-sample"]
    assert counts.pop("from") in ("bundled", "cached")
    assert Counts(**counts) == find_entry("wordnet-sample").counts


def test_one_bad_archive_does_not_keep_the_list_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATKGC_DATA", str(tmp_path))
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "UMLS.tar.xz").write_bytes(b"cut short")
    assert "damaged" in run("list").stdout
    found = {graph["name"]: graph["from"] for graph in json.loads(run("list", "--json").stdout)}
    assert found == {e.name: "bundled" if e.bundled else "download" for e in CATALOGUE} | {"UMLS": "damaged"}
    with pytest.raises(SatkgcError, match=r"UMLS\.tar\.xz: not the published archive of UMLS"):
        run("get", "UMLS")


def test_get_keeps_a_graph_and_writes_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("get", "wordnet-sample", "--to", str(tmp_path))
    assert str(cache_folder()) in result.stdout
    graph = KnowledgeGraph.load(tmp_path / "wordnet-sample")
    assert Counts.of(graph) == find_entry("wordnet-sample").counts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "WN18R"], "did you mean WN18RR"),
        (["get", "nothing-like-it"], "`satkgc kg list` shows the names"),
        (["import", "wordnet-sample", "{room}"], "so it is not overwritten; choose another name"),
        (["import", "wordnet-sample", "{room}", "--force"], "so it is not overwritten; choose another name"),
        (["import", "wordnet-sample", "{room}/triples.csv"], "so it is not overwritten; choose another name"),
        (["inspect", "{room}/triples.csv", "--head", "nobody"], "there is no column 'nobody'"),
        (["inspect", "{room}/triples.csv", "--split", "sideways"], "split cannot be 'sideways'"),
        (
            ["inspect", "{room}/triples.csv", "--plot", "{room}/x.foo"],
            "'x.foo' does not end in .png; choose such a name",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "triples.csv").write_text(TRIPLES)
    before = sorted(os.listdir(tmp_path))
    monkeypatch.setattr(sys, "argv", ["satkgc", "kg", *(argument.format(room=tmp_path) for argument in arguments)])
    with pytest.raises(SystemExit) as exit:
        main()
    printed = capsys.readouterr()
    assert exit.value.code == 2
    assert message in printed.err
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert sorted(os.listdir(tmp_path)) == before


def test_help_teaches_by_example_and_needs_nothing_heavy() -> None:
    script = "import sys; from satkgc.cli import app; app(['kg', 'import', '--help'], standalone_mode=False); "
    script += "assert not {'torch', 'numba', 'transformers', 'scipy', 'matplotlib'} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "satkgc kg import my-folder my-graph" in done.stdout
    assert "--entities-file" in done.stdout


def test_long_work_is_named_where_there_is_no_terminal(tables: list[str], tmp_path: Path, monkeypatch) -> None:
    assert run("import", *tables, str(tmp_path / "short")).stderr == ""
    monkeypatch.setattr("satkgc.progress.FIRST", 0.0)
    assert "Reading " in run("import", *tables, str(tmp_path / "long")).stderr


def test_an_imported_archive_keeps_the_name_by_which_its_settings_are_found(tmp_path: Path) -> None:
    (tmp_path / "UMLS").mkdir()
    (tmp_path / "UMLS" / "train.tsv").write_text("a\tr\tb\nb\tr\tc\n")
    shutil.make_archive(str(tmp_path / "UMLS"), "gztar", tmp_path, "UMLS")
    run("import", str(tmp_path / "UMLS.tar.gz"), str(tmp_path / "mine"), "--split", "none", "--textless", "allow")
    assert KnowledgeGraph.load(tmp_path / "mine").name == "UMLS"


def test_several_sources_and_what_relations_mean(tmp_path: Path) -> None:
    tree = [(f"n{i}", f"n{(i - 1) // 2}") for i in range(1, 40)]
    (tmp_path / "up.csv").write_text("from,to,type\n" + "".join(f"{h},{t},parent\n" for h, t in tree))
    (tmp_path / "down.csv").write_text("source,target,relation\n" + "".join(f"{t},{h},child\n" for h, t in tree))
    files = [str(tmp_path / "up.csv"), str(tmp_path / "down.csv")]
    result = run("import", *files, str(tmp_path / "graph"), "--split", "none")
    assert "'graph': 40 entities, 2 relations, 78/0/0" in result.stdout
    (tmp_path / "export").mkdir()
    shutil.copy(files[0], tmp_path / "export")
    folder = run("import", str(tmp_path / "export"), str(tmp_path / "tree"), "--split", "none")
    assert "'tree': 40 entities, 1 relations" in folder.stdout
    figures = json.loads(run("inspect", *files, "--json", "--logic", str(tmp_path / "logic.toml")).stdout)
    said = {(entry["id"], entry["property"], *entry["others"]) for entry in figures["relation_logic"]}
    assert {("parent", "inverse", "child"), ("parent", "hierarchy"), ("child", "hierarchy")} <= said
    assert 'inverse = "child"' in (tmp_path / "logic.toml").read_text()
    (tmp_path / "logic.toml").write_text("# edited\n")
    with pytest.raises(SatkgcError, match=r"logic\.toml: the file is there already"):
        run("inspect", *files, "--logic", str(tmp_path / "logic.toml"))
    assert (tmp_path / "logic.toml").read_text() == "# edited\n"
    shown = " ".join(run("inspect", str(tmp_path / "graph")).stdout.split())
    assert "parent inverse child 39 triples" in shown
