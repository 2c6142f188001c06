"""`satkgc kg import bolt://…` and `accept --to bolt://…`."""

from __future__ import annotations

import pytest
from commands import refusal, run

from bolt_server import Playback, playback, reviewed


@pytest.fixture(autouse=True)
def _login(monkeypatch):
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", "playwithdata")


def test_import(tmp_path):
    with playback(Playback()) as server:
        result = run("kg", "import", server.address, tmp_path / "kg", "--page-size", 3, "--exclude", "rdf:type")
    assert result.stdout.startswith(f"{tmp_path}/kg: KnowledgeGraph('kg': 4 entities, 3 relations, ")
    assert "playwithdata" not in result.output


def test_accept(tmp_path, monkeypatch, capsys):
    table = reviewed(tmp_path / "reviewed.csv")
    with playback(Playback()) as server:
        command = "accept", table, "--to", server.address
        assert run(*command, "--model", "m", "--dry-run").output.count("MERGE (h)") == 3
        assert not [query for query, _ in server.sent if "MERGE" in query]
        sent = run(*command, "--model", "m").stdout
        assert "--graph is for SPARQL endpoints" in refusal(monkeypatch, capsys, *command, "--graph", "urn:x")
        other = "accept", table, tmp_path / "o.nt", "--to", "sparql:http://x/", "--id", "x"
        assert "--id is for property graphs" in refusal(monkeypatch, capsys, *other)
        told = refusal(monkeypatch, capsys, "accept", table, tmp_path / "o.nt", "--to", "bolt://me:secret@x")
    assert sent == f"{server.address}: 2 of 3 relationships are new; the others were there\n"
    assert "leave it out and set NEO4J_USERNAME" in told
    assert "secret" not in told
    assert not (tmp_path / "o.nt").exists()
