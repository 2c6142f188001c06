"""Graphs from SPARQL endpoints, served here by pyoxigraph over HTTP, as badly as it gets."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import cache_folder
from satkgc.kg import endpoint as module
from satkgc.kg.readers.construct import Construct
from sparql_server import Served, endpoint, store

GRAPH = "http://example.org/graph"


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    """No waiting between attempts, and a cache of its own."""
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.01)
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "cache"))


def load(served: Served, **options) -> KnowledgeGraph:
    return KnowledgeGraph.load(served.source, **{"page_size": 100, "pause": 0, "split": "none", **options})


def triples(kg: KnowledgeGraph) -> set[tuple[str, str, str]]:
    return {(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.train.tolist()}


def expected(count: int) -> set[tuple[str, str, str]]:
    """The links of `store(count)`."""
    links, thing = count - count // 10, "http://example.org/thing/{}".format
    return {(thing(i), "http://example.org/next", thing((i + 1) % links)) for i in range(links)}


def kept() -> list[Path]:
    return sorted((cache_folder() / "endpoints").rglob("*.nt"))


def test_all_of_a_graph_comes_from_a_server_that_drops_requests(caplog):
    with endpoint(Served(store(1000), drop_every=3)) as served:
        kg = load(served)
    assert triples(kg) == expected(1000)
    assert kg.entities.name(kg.entities.index("http://example.org/thing/7")) == "thing 7"
    assert served.dropped > 3
    assert caplog.messages == []  # neither duplicates nor changes
    assert kept() == []


def test_named_graphs_are_read_one_after_the_other():
    data = store(200, GRAPH)
    data.update("INSERT DATA { <urn:a> <urn:p> <urn:b> . GRAPH <urn:g> { <urn:c> <urn:p> <urn:d> } }")
    with endpoint(Served(data)) as served:
        assert triples(load(served, graphs=GRAPH)) == expected(200)
        assert triples(load(served, graphs=[GRAPH, "urn:g"])) == expected(200) | {("urn:c", "urn:p", "urn:d")}
        assert triples(load(served)) == {("urn:a", "urn:p", "urn:b")}


def test_a_query_chooses_statements(tmp_path):
    query = """PREFIX ex: <http://example.org/#>  # { not a brace }
        CONSTRUCT { ?b ex:before ?a . ?a ex:after ?b } WHERE { ?a <http://example.org/next> ?b . FILTER("}" != "{") }"""
    (tmp_path / "ring.rq").write_text(query)
    with endpoint(Served(store(500))) as served:
        kg = load(served, query=tmp_path / "ring.rq")
        assert triples(kg) == triples(load(served, query=query))
    links = expected(500)
    base = "http://example.org/#"
    assert triples(kg) == {(t, f"{base}before", h) for h, _, t in links} | {(h, f"{base}after", t) for h, _, t in links}


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("CONSTRUCT WHERE { ?x a $y }", "CONSTRUCT WHERE { ?x a $y }\nORDER BY ?x ?y LIMIT 5 OFFSET 10"),
        (
            "construct { ?x a ?y } where { ?x a ?y, ?z } order by ?z",
            "construct { ?x a ?y } where { ?x a ?y, ?z } order by ?z\nLIMIT 5 OFFSET 10",
        ),
    ],
)
def test_a_query_is_cut_into_pages(query, page):
    assert Construct.of(query).page(10, 5) == page


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT * WHERE { ?s ?p ?o }", "this is no CONSTRUCT query"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 5", "LIMIT stands after the pattern"),
        ("CONSTRUCT { <a:a> <a:b> <a:c> } WHERE { ?s ?p ?o }", "this query has no variable"),
        ("nowhere.rq", "nowhere.rq: cannot read the query"),
    ],
)
def test_what_is_no_such_query_is_refused(query, told):
    with pytest.raises(SatkgcError, match=told):
        Construct.of(query)


def test_a_server_that_gives_less_at_once_than_asked_for():
    with endpoint(Served(store(500), cap=64)) as served:
        assert triples(load(served, page_size=200)) == expected(500)


KILLED = "import sys; from satkgc.cli import main; main()"


@pytest.mark.parametrize("altered", [False, True])
def test_a_killed_import_goes_on(tmp_path, caplog, altered):
    def kill(served: Served) -> None:
        if len(served.pages()) == 5 and process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)

    with endpoint(Served(store(1000), meanwhile=kill)) as served:
        options = [served.source, str(tmp_path / "kg"), "--page-size", "100", "--pause", "0"]
        process = subprocess.Popen([sys.executable, "-c", KILLED, "kg", "import", *options])
        assert process.wait() == -signal.SIGKILL
        pages = len(kept())
        assert 3 <= pages <= 4
        if altered:
            kept()[1].write_bytes(kept()[1].read_bytes().replace(b"thing/1", b"thing/7", 1))
            pages = 1
        asked = len(served.pages())
        kg = load(served, page_size=100 if altered else 150)  # pages may have another size now
    assert triples(kg) == expected(1000)
    assert f"OFFSET {100 * pages}" in served.pages()[asked]
    assert f"{100 * pages} of 1,000 rows are here already" in caplog.text


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <http://example.org/a> <urn:p> <urn:b> }",  # one more
        "DELETE WHERE { <http://example.org/thing/0> ?p ?o }",
        "INSERT DATA { <http://example.org/a> <urn:p> <urn:b> }; DELETE WHERE { <http://example.org/thing/899> ?p ?o }",
    ],
)
def test_changes_between_pages_are_told(update, caplog):
    def change(served: Served) -> None:
        if len(served.pages()) == 4 and served.meanwhile is change:
            served.meanwhile = lambda _: None
            served.store.update(update)

    with endpoint(Served(store(1000), meanwhile=change)) as served:
        kg = load(served)
    assert len(triples(kg) & expected(1000)) >= 898  # what was read is there
    [line] = [line for line in caplog.messages if "changed between pages" in line]
    assert "1,000 rows before the first" in line
    assert not caplog.text.count("here already")


def test_statements_of_blank_nodes_are_told(caplog):
    data = store(100)
    data.update("INSERT DATA { <urn:a> <urn:p> [ <urn:q> <urn:b> ] }")
    with endpoint(Served(data)) as served:
        load(served, page_size=60)
    assert "2 statements of blank nodes, which are others on every page" in caplog.text
    assert "changed" not in caplog.text


@pytest.mark.parametrize(
    ("manners", "told"),
    [
        ({"html": True}, "this is no SPARQL endpoint: it answered HTML; check the URL"),
        ({"delay": 0.3}, "no answer in 2 attempts: timed out; run the same command again later, it goes on"),
        ({"status": 503}, "no answer in 2 attempts: 503 Service Unavailable"),
        ({"status": 404}, "the endpoint answered 404 Not Found; check the URL"),
        (
            {"status": 302, "headers": {"Location": "https://elsewhere.org/sparql?key=1"}},
            "302 Found; if you trust it, give the address that it names: https://elsewhere.org/sparql",
        ),
        ({"login": "Basic eDp5"}, "answered 401 Unauthorized; give a user"),
    ],
)
def test_an_endpoint_that_does_not_answer_is_told_in_one_line_and_nothing_is_lost(manners, told, monkeypatch, caplog):
    monkeypatch.setattr(module, "PATIENCE", 2)

    def spoil(served: Served) -> None:
        if len(served.pages()) == 3 and "delay" in manners:
            monkeypatch.setattr(module, "TIMEOUT", 0.1)  # from the next page on: a busy machine is slow
        if len(served.pages()) == 4:
            for name, value in manners.items():
                setattr(served, name, value)

    with endpoint(Served(store(1000), meanwhile=spoil)) as served:
        with pytest.raises(SatkgcError) as error:
            load(served)
        assert told in str(error.value)
        assert str(error.value).startswith(served.url)
        assert "key=1" not in str(error.value)
        assert len(kept()) == 3
        assert ("nothing came for 0.1 s; trying again (2 of 2)" in caplog.text) == ("delay" in manners)
        monkeypatch.setattr(module, "TIMEOUT", 60)
        served.meanwhile, served.html, served.delay, served.status, served.login = lambda _: None, False, 0, 200, None
        assert triples(load(served)) == expected(1000)


@pytest.mark.parametrize(("asked", "waits"), [({}, [1, 2, 4, 8, 16]), ({"Retry-After": "7"}, [7] * 5)])
def test_attempts_are_ever_further_apart_or_as_the_server_asks(asked, waits, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(module, "LONGEST_WAIT", 60)
    monkeypatch.setattr(module.time, "sleep", slept.append)
    with endpoint(Served(store(100), status=503, headers=asked)) as served, pytest.raises(SatkgcError):
        load(served)
    assert [wait for wait in slept if wait] == waits  # the server sleeps, too, for no time


def test_a_server_without_offset_is_told():
    class Stubborn(Served):
        def answer(self, form):
            return super().answer({name: [re.sub(r"OFFSET \d+", "", text)] for name, [text] in form.items()})

    with (
        endpoint(Stubborn(store(1000))) as served,
        pytest.raises(SatkgcError, match="the same 100 statements for each page"),
    ):
        load(served)


def test_an_answer_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_ANSWER", 5_000)
    with endpoint(Served(store(1000))) as served:
        with pytest.raises(SatkgcError, match=r"an answer of more than .* ask for less at once with --page-size"):
            load(served)
        assert triples(load(served, page_size=30)) == expected(1000)


def test_what_the_endpoint_says_of_a_query_is_passed_on():
    with (
        endpoint(Served(store(100))) as served,
        pytest.raises(SatkgcError, match=r"does not take this: .*Prefix not found"),
    ):
        load(served, query="CONSTRUCT { ?s ?p ?o } WHERE { ?s nope:p ?o }")


def test_where_there_is_nothing_the_graphs_are_named():
    with endpoint(Served(store(100, GRAPH))) as served:
        with pytest.raises(SatkgcError, match=f"nothing in the default graph; it has the graphs {GRAPH}"):
            load(served)
        with pytest.raises(SatkgcError, match="nothing in this graph; it has the graphs"):
            load(served, graphs="urn:other")


@pytest.mark.parametrize("source", ["sparql:", "sparql:example.org", "sparql:file:///etc/passwd", "sparql:http://[x"])
def test_what_is_no_url_is_refused(source):
    with pytest.raises(SatkgcError, match="this is no URL of a SPARQL endpoint"):
        KnowledgeGraph.load(source)


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 2)
    with pytest.raises(SatkgcError, match=r"http://127.0.0.1:9/sparql: no answer in 2 attempts: Connection refused"):
        KnowledgeGraph.load("sparql:http://me:secret@127.0.0.1:9/sparql?key=hidden")
    with pytest.raises(SatkgcError, match=r"^http://no.host.invalid/sparql: there is no such host"):
        KnowledgeGraph.load("sparql:http://me:secret@no.host.invalid/sparql")


def test_no_graph_name_gets_into_a_query():
    with pytest.raises(SatkgcError, match="is no IRI"):
        KnowledgeGraph.load("sparql:http://127.0.0.1:9/", graphs="urn:g> { ?s ?p ?o } } #")


def test_the_password_is_sent_and_never_shown(caplog):
    wanted = "Basic " + b64encode(b"me:s@cret").decode()
    with endpoint(Served(store(300), login=wanted)) as served:
        source = served.source.replace("http://", "http://me:s%40cret@") + "?key=hidden"
        kg = KnowledgeGraph.load(source, page_size=100, pause=0, split="none")
        with pytest.raises(SatkgcError) as wrong:
            KnowledgeGraph.load(source.replace("cret", "cretive"), page_size=100)
        with pytest.raises(SatkgcError) as unknown:
            KnowledgeGraph.load(source, page_size=100, pause=0, exclude="nothing")
    assert triples(kg) == expected(300)
    written = b"".join(path.read_bytes() for path in cache_folder().rglob("*") if path.is_file()).decode()
    assert "CONSTRUCT" in written
    assert len(kept()) == 3  # they need not be asked for again, once the option is mended
    for text in (str(wrong.value), str(unknown.value), caplog.text, written, repr(module.Endpoint.of(source))):
        assert "cret" not in text
        assert "hidden" not in text


def test_an_endpoint_is_read_by_itself(tmp_path):
    with pytest.raises(SatkgcError, match="an endpoint is read by itself"):
        KnowledgeGraph.load(["sparql:http://127.0.0.1:9/", "more.ttl"])
    (tmp_path / "table.csv").write_text("a,b,c\n")
    with pytest.raises(SatkgcError, match="--page-size says nothing of tables"):
        KnowledgeGraph.load(tmp_path / "table.csv", page_size=5)
