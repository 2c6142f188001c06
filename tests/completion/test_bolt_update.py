"""What was accepted, merged into the property graph of a Bolt server."""

from __future__ import annotations

import logging
import re

import pytest

from bolt_server import Playback, arcadedb, fill, playback, real_server, reviewed
from satkgc import SatkgcError
from satkgc.completion import bolt_merges, send_to_bolt


@pytest.fixture(autouse=True)
def _login(monkeypatch):
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", "playwithdata")


@pytest.fixture
def table(tmp_path):
    return reviewed(tmp_path / "reviewed.csv")


def test_relationships_are_merged_once(table, caplog):
    with playback(Playback()) as server, caplog.at_level(logging.WARNING):
        assert send_to_bolt(table, server.address, model="m") == (2, 3)
        assert send_to_bolt(table, server.address, model="m") == (0, 3)
    assert "left out: 1 accepted labels of nodes (rdf:type)" in caplog.text
    merges = [(query, message) for query, message in server.sent if "MERGE" in query]
    assert [re.findall("r:(`.*`)]", query)[0] for query, _ in merges[:3]] == [
        "`WROTE ABOUT`",
        "`KNOWS`",
        "`is ``kin```",
    ]
    assert merges[0][1].count(b"\x84head") == 1  # it stands in the table twice


def test_a_dry_run_prints_what_would_be_run(table):
    with playback(Playback()) as server:
        first, second, _ = (merge.text for merge in bolt_merges(table, server.address, model="m"))
        assert not [query for query, _ in server.sent if "MERGE" in query]
    assert first.startswith('// ["2", "WROTE ABOUT", "engine"]\nUNWIND [\n  {head: "#')
    assert "score: -0.5, probability: 0.75}\n] AS row\nMATCH (h)" in first
    assert 'r.satkgc_model = "m", r.satkgc_time = datetime("20' in first
    assert "score: 1.5, probability: null}" in second
    assert "$" not in first


def test_what_cannot_be_sent_is_told(table):
    with playback(Playback()) as server:
        with pytest.raises(SatkgcError, match="nothing says which model proposed these"):
            bolt_merges(table, server.address)
        with pytest.raises(SatkgcError, match="no node for 3 of 4 entities, such as '2'; say which property has their"):
            send_to_bolt(table, server.address, "name", "m")
    assert not [query for query, _ in server.sent if "MERGE" in query]


def test_a_real_server(table, tmp_path):
    if arcadedb() is None:
        pytest.skip("needs arcadedb-embedded, a real server")
    import neo4j

    with real_server(tmp_path) as address:
        fill(address)
        place, _, database = address.rpartition("/")
        with neo4j.GraphDatabase.driver(place, auth=("root", "playwithdata")) as driver:

            def relationships() -> set[tuple[object, ...]]:
                query = "MATCH (h)-[r]->(t) RETURN h.name, type(r), t.name, properties(r)"
                rows = driver.execute_query(query, database_=database).records
                return {(*row.values()[:3], *sorted(row[3].items())) for row in rows}

            before = relationships()
            assert send_to_bolt(table, address, model="m") == (2, 3)
            after = relationships()
            assert send_to_bolt(table, address, model="other") == (0, 3)
            assert relationships() == after
            by_hand = [merge.text for merge in bolt_merges(table, address, model="m")]
            for text in by_hand:
                assert not driver.execute_query(text, database_=database).summary.counters.relationships_created
    new = {row[:3]: dict(row[3:]) for row in after - before}
    assert before < after
    assert new.keys() == {
        ("Charles Babbage", "WROTE ABOUT", "Analytical Engine"),
        ("Nobody", "is `kin`", "Ada Lovelace"),
    }
    record = new["Charles Babbage", "WROTE ABOUT", "Analytical Engine"]
    assert (record["satkgc_model"], record["satkgc_score"], record["satkgc_probability"]) == ("m", -0.5, 0.75)
    assert record["satkgc_time"].tzinfo is not None
    assert "satkgc_probability" not in new["Nobody", "is `kin`", "Ada Lovelace"]
