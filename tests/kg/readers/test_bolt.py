"""Property graphs from a Bolt server: a real one where it is installed, and what it said, played back."""

from __future__ import annotations

import logging

import pytest

from bolt_server import PAGE, QUERIES, Playback, arcadedb, fill, playback, real_server
from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import BoltServer
from satkgc.kg import bolt as module
from satkgc.kg.readers.bolt import EDGES, NODES

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LINKS = {("1", "KNOWS", "2"), ("2", "DESIGNED", "engine"), ("1", "WROTE ABOUT", "engine")}
KINDS = {("1", TYPE, ":Person"), ("2", TYPE, ":Person"), ("engine", TYPE, ":Idea"), ("engine", TYPE, ":Machine")}
KINDS |= {("Nobody", TYPE, ":Person")}


@pytest.fixture(autouse=True)
def _login(monkeypatch, tmp_path):
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", "playwithdata")
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture(scope="module", params=["played back", "arcadedb"])
def address(request, tmp_path_factory):
    """A server that has the graph."""
    if request.param == "played back":
        with playback(Playback()) as server:
            yield server.address
    elif arcadedb() is None:
        pytest.skip("needs arcadedb-embedded, a real server")
    else:
        with real_server(tmp_path_factory.mktemp("arcadedb")) as place:
            fill(place)
            yield place


def load(address: str, **options: object) -> KnowledgeGraph:
    return KnowledgeGraph.load(address, **{"split": "none", "page_size": PAGE, **options})


def triples(kg: KnowledgeGraph) -> set[tuple[str, str, str]]:
    return {(kg.entities.id(h), kg.relations.id(r), kg.entities.id(t)) for h, r, t in kg.train.tolist()}


def test_the_whole_graph(address, caplog):
    with caplog.at_level(logging.WARNING):
        kg = load(address)
    assert kg.name == "test"
    assert triples(kg) == LINKS | KINDS
    ada = kg.entities.index("1")
    assert (kg.entities.name(ada), kg.entities.description(ada)) == ("Ada Lovelace", "English mathematician")
    assert "left out of the graph: 4 values (2 of languages, " in caplog.text
    assert "changed" not in caplog.text
    assert "3 kinds of nodes became 5 triples of rdf:type" in caplog.text


def test_properties_that_are_chosen(address):
    kg = load(address, literals="all", exclude="rdf:type", id="name")
    said = {kg.entities.id(i): kg.entities.description(i) for i in range(kg.num_entities)}
    assert said == {
        "Ada Lovelace": "English mathematician; born 1815-12-10; id 1",
        "Charles Babbage": "id 2; languages en; languages fr",
        "Analytical Engine": "id engine; weight 13.5",
        "Nobody": "",
    }
    assert triples(load(address, exclude="rdf:type")) == LINKS
    with pytest.raises(SatkgcError, match=r"no statement has the predicate bron; did you mean born\?"):
        load(address, literals="bron")


def test_a_query_chooses_nodes_and_relationships(address, tmp_path):
    designed, paths, without_nodes, wrong = QUERIES
    assert triples(load(address, query=designed, exclude="rdf:type")) == {("2", "DESIGNED", "engine")}
    (tmp_path / "knows.cypher").write_text(paths)
    assert triples(load(address, query=tmp_path / "knows.cypher", exclude="rdf:type")) == {("1", "KNOWS", "2")}
    with pytest.raises(SatkgcError, match=r"returns 2 relationships without the nodes that they join; RETURN n, r, m"):
        load(address, query=without_nodes)
    with pytest.raises(SatkgcError, match=r"the server does not take this: .*try it there by hand"):
        load(address, query=wrong)
    with pytest.raises(SatkgcError, match=r"nowhere\.cypher: cannot read the query"):
        load(address, query="nowhere.cypher")


def test_a_stream_that_breaks_off_begins_again(caplog):
    with playback(Playback(cuts={NODES: 1, EDGES: 1})) as server:
        kg = load(server.address)
    assert server.cuts == {NODES: 0, EDGES: 0}
    assert triples(kg) == LINKS | KINDS
    assert "changed" not in caplog.text
    assert "1 duplicate triple dropped" in caplog.text  # as it is: two people know each other twice
    assert [query for query, _ in server.sent].count(NODES) == 2


def test_a_graph_that_changes_meanwhile_is_told(caplog):
    with playback(Playback(replies={EDGES: QUERIES[2]})) as server:  # two relationships only
        load(server.address)
    assert "it changed meanwhile (4 nodes and 4 relationships before, 4 and 2 read, 4 and 4 after)" in caplog.text


def test_who_may_read(monkeypatch, tmp_path):
    with playback(Playback(login=False)) as server, pytest.raises(SatkgcError) as refused:
        load(server.address)
    assert str(refused.value).startswith(f"{server.address}: the server does not let us in (")
    assert "correct the login: set NEO4J_USERNAME" in str(refused.value)
    assert "playwithdata" not in str(refused.value) + repr(BoltServer.of(server.address))
    monkeypatch.delenv("NEO4J_PASSWORD")
    with pytest.raises(SatkgcError, match="NEO4J_USERNAME is set and NEO4J_PASSWORD is not"):
        BoltServer.of("bolt://example.org")
    monkeypatch.delenv("NEO4J_USERNAME")
    assert BoltServer.of("bolt://example.org").login is None
    logins = tmp_path / "netrc"
    logins.write_text("machine example.org login ada password engine\ndefault login all password of-them\n")
    monkeypatch.setenv("NETRC", str(logins))
    assert BoltServer.of("neo4j+s://example.org:7687/x").login == ("ada", "engine")
    assert BoltServer.of("bolt://elsewhere.org").login is None  # the default is for no server in particular


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("bolt://me:secret@example.org:7687/x", "the address has a user in it"),
        ("bolt://example.org:port", "this is no address of a Bolt server"),
        ("bolt://", "this is no address of a Bolt server"),
        ("bolt://example.org/a/b", "this is no address of a Bolt server"),
        ("bolt://127.0.0.1:1", r"bolt://127.0.0.1:1: no connection: Connection refused; check host and port"),
    ],
)
def test_addresses_that_lead_nowhere(source, told):
    with pytest.raises(SatkgcError, match=told) as refused:
        load(source)
    assert "secret" not in str(refused.value)


def test_what_is_no_bolt_server_is_told(monkeypatch):
    with playback(Playback()) as server:
        monkeypatch.setattr(server, "serve", lambda stream: stream.write(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        with pytest.raises(SatkgcError, match="no connection: a web server answers there"):
            load(server.address)
    with pytest.raises(SatkgcError, match="--pause says nothing of Bolt servers; leave it out; it is for endpoints"):
        load(server.address, pause=2)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(SatkgcError, match=r"Bolt needs neo4j, the driver; pip install 'satkgc\[bolt\]'"):
        load(server.address)
