"""`satkgc kg import sparql:…` and `accept --to sparql:…`."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from commands import refusal, run

from satkgc import KnowledgeGraph, progress
from satkgc.kg import cache_folder
from sparql_server import Served, endpoint, store

TABLE = "head,relation,tail,head_name,relation_name,tail_name,score,probability,accept\n"


def secret(served: Served) -> str:
    return served.source.replace("http://", "http://me:secret@")


def test_import_and_inspect(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    with endpoint(Served(store(100), delay=0.02)) as served:
        result = run("kg", "import", secret(served), tmp_path / "ring", "--page-size", 50, "--pause", 0)
        assert result.stdout.startswith(f"{tmp_path}/ring: KnowledgeGraph('ring': 90 entities, 1 relations, ")
        shown = run("kg", "inspect", secret(served), "--pause", 0)
    assert f"Reading {served.url} …" in shown.stderr
    assert "secret" not in result.output + shown.output
    assert list((cache_folder() / "endpoints").rglob("*.nt")) == []


def test_pages_are_kept_until_the_graph_is_written(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    save = KnowledgeGraph.save
    with endpoint(Served(store(100))) as served:
        command = "kg", "import", served.source, tmp_path / "ring", "--page-size", 50, "--pause", 0
        monkeypatch.setattr(KnowledgeGraph, "save", full)
        with pytest.raises(OSError, match="No space"):
            run(*command)
        asked = len(served.pages())
        monkeypatch.setattr(KnowledgeGraph, "save", save)
        run(*command)
    assert len(served.pages()) == asked + 1  # whether there is more by now


def test_accept_to_an_endpoint(tmp_path, monkeypatch, capsys):
    table = tmp_path / "missing.csv"
    table.write_text(f"{TABLE}urn:a,urn:p,urn:b,,,,0.5,0.75,yes\nurn:c,urn:p,urn:d,,,,0.5,0.5,\n")
    with endpoint(Served(ox.Store())) as served:
        command = "accept", table, "--to", secret(served), "--model", "demo"
        printed = run(*command, "--dry-run").output
        assert "(<urn:satkgc:record:" in printed
        assert "<urn:a> <urn:p> <urn:b> 5.000000e-01 7.500000e-01)" in printed
        assert served.requests == []
        sent = run(*command, "--graph", "urn:new").output
        assert sent == "urn:new: 1 triples sent; those that it had already are there once\n"
        assert served.store.query("ASK { GRAPH <urn:new> { <urn:a> <urn:p> <urn:b> } }")
        served.status = 404
        told = refusal(monkeypatch, capsys, *command)
        assert f"{served.url}: the endpoint answered 404" in told
    assert "secret" not in printed + sent + told
    assert "--dry-run are for endpoints" in refusal(
        monkeypatch, capsys, "accept", table, tmp_path / "o.nt", "--dry-run"
    )
    assert "no URL" in refusal(
        monkeypatch, capsys, "accept", table, tmp_path / "o.nt", "--to", "http://x/", "--model", "m"
    )
    assert not (tmp_path / "o.nt").exists()
