"""What was accepted, sent to a SPARQL endpoint that is served here."""

from __future__ import annotations

import csv
import re
from datetime import datetime

import pyoxigraph as ox
import pytest

from satkgc import SatkgcError
from satkgc.completion import ACCEPTED, accepted_updates, send_accepted
from satkgc.completion import endpoint_update as module
from satkgc.completion.proposals import COLUMNS
from satkgc.kg import DECISIONS, Decision, Decisions
from satkgc.kg import endpoint as http
from sparql_server import Served, endpoint

pytest_plugins = ["world"]

RECORD = """PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> PREFIX prov: <http://www.w3.org/ns/prov#>
SELECT ?s ?p ?o ?model ?time ?score ?probability WHERE { GRAPH ?g {
  ?r rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; prov:wasAttributedTo ?model ; prov:generatedAtTime ?time .
  OPTIONAL { ?r <urn:satkgc:score> ?score } OPTIONAL { ?r <urn:satkgc:probability> ?probability } } }"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.01)


@pytest.fixture
def reviewed(tmp_path):
    """Seven accepted, one of them twice, one of them no IRI; the last without a probability; and one not accepted."""
    rows = [
        (f"http://example.org/{i}", "urn:p", f"urn:{i}", "", "", "", f"{-i / 7:.6f}", 0.5 + i / 20) for i in range(5)
    ]
    rows += [
        rows[0],
        ('a "thing" }', "is a", "x>y", "", "", "", "1.5", 0.9),
        ("urn:a", "urn:p", "urn:b", *"   ", 2, ""),
    ]
    with (tmp_path / "reviewed.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "accept"])
        writer.writerows([*row, "yes"] for row in rows)
        writer.writerow(["urn:no", "urn:p", "urn:no", "", "", "", 1, 1, ""])
    return tmp_path / "reviewed.csv"


def quads(store: ox.Store) -> set[str]:
    return {str(quad) for quad in store}


def test_statements_and_where_they_come_from_are_written_once(reviewed, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    with endpoint(Served(ox.Store(), drop_every=2)) as served:
        assert send_accepted(reviewed, served.source, model="a model") == 7
        assert served.dropped >= 1
        first = quads(served.store)
        monkeypatch.setattr(module, "datetime", _Later)
        assert send_accepted(reviewed, served.source, model="a model") == 7
        assert quads(served.store) == first
        records = list(served.store.query(RECORD))
    there = served.store.quads_for_pattern(None, None, None, ox.NamedNode(ACCEPTED))
    plain = {(q.subject.value, q.predicate.value, q.object.value) for q in there}
    wanted = {(f"http://example.org/{i}", "urn:p", f"urn:{i}") for i in range(5)} | {("urn:a", "urn:p", "urn:b")}
    wanted |= {("urn:satkgc:entity:a%20%22thing%22%20%7D", "urn:satkgc:relation:is%20a", "urn:satkgc:entity:x%3Ey")}
    assert plain == wanted
    assert {(r["s"].value, r["p"].value, r["o"].value) for r in records} == wanted
    assert len(records) == 7
    assert {r["model"].value for r in records} == {"urn:satkgc:model:a%20model"}
    [third] = [r for r in records if r["o"].value == "urn:3"]
    assert float(third["score"].value) == pytest.approx(-3 / 7, abs=1e-6)
    assert float(third["probability"].value) == pytest.approx(0.65)
    assert datetime.fromisoformat(third["time"].value).tzinfo is not None
    [last] = [r for r in records if r["o"].value == "urn:b"]
    assert last["probability"] is None


class _Later(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime(2999, 1, 1, tzinfo=tz)


def test_another_model_that_says_the_same_is_recorded_too(reviewed):
    with endpoint(Served(ox.Store())) as served:
        for model in ("one", "two"):
            send_accepted(reviewed, served.source, "http://example.org/new", model)
    graphs = [quad.graph_name.value for quad in served.store]
    assert graphs.count("http://example.org/new") == 7
    assert set(graphs) == {"http://example.org/new", "http://example.org/new/provenance"}
    assert len(list(served.store.query(RECORD))) == 14


def test_a_reviewed_run_is_the_model(prepared, tmp_path):
    decisions = Decisions(prepared / DECISIONS)
    try:
        decisions.add(Decision("a", "near", "b", "accept", score=0.5, probability=0.25))
        [(update, count)] = accepted_updates(prepared)
    finally:
        (prepared / DECISIONS).unlink()
    assert count == 1
    assert re.search(rf"wasAttributedTo <urn:satkgc:model:{prepared.name}-[0-9a-f]{{12}}>", update)
    assert "5.000000e-01 2.500000e-01" in update


def test_what_cannot_be_sent_is_told(reviewed, monkeypatch):
    monkeypatch.setattr(http, "PATIENCE", 2)
    with pytest.raises(SatkgcError, match="nothing says which model proposed these; name the run"):
        list(accepted_updates(reviewed))
    with pytest.raises(SatkgcError, match="is no IRI"):
        list(accepted_updates(reviewed, "urn:x> { } } ; DROP ALL ; #", "m"))
    with pytest.raises(SatkgcError, match="this is no URL of a SPARQL endpoint") as wrong:
        send_accepted(reviewed, "https://me:secret@example.org/update", model="m")
    assert "secret" not in str(wrong.value)
    with endpoint(Served(ox.Store(), login="Basic eA==")) as served, pytest.raises(SatkgcError, match="401"):
        send_accepted(reviewed, served.source, model="m")
    assert quads(served.store) == set()
