"""`satkgc duplicates`, and `accept` of its tables."""

from __future__ import annotations

import csv

from commands import refusal, run

from satkgc.kg import KnowledgeGraph

pytest_plugins = ["world"]


def test_from_a_run_to_a_merged_graph(prepared, completer, tmp_path) -> None:
    found = completer.duplicates(n=5, min_score=0)
    table = tmp_path / "same.csv"
    assert run("duplicates", prepared, table, "--n", 5, "--min-score", 0).stdout.endswith("same.csv: 5 pairs\n")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["entity"], row["duplicate"]) for row in rows] == [(one.entity, one.duplicate) for one in found]
    rows[0]["accept"] = "yes"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    completer.kg.save(tmp_path / "graph")
    result = run("accept", table, tmp_path / "same.nt", "--into", tmp_path / "graph")
    assert "same.nt: 1 of 5 pairs\n" in result.stdout
    assert "graph: 1 entities merged; KnowledgeGraph('little world': 89 entities" in result.stdout
    assert KnowledgeGraph.load(tmp_path / "graph").entities.find(found[0].duplicate) is None


def test_what_cannot_be_written_is_told_before_a_model_is_loaded(tmp_path, monkeypatch, capsys) -> None:
    command = ["duplicates", tmp_path / "no run", tmp_path / "x.docx"]
    assert "'x.docx' does not end in .csv" in refusal(monkeypatch, capsys, *command)
    (tmp_path / "there.csv").write_text("")
    assert "there already" in refusal(monkeypatch, capsys, "duplicates", tmp_path / "no run", tmp_path / "there.csv")


def test_duplicates_are_not_sent_to_an_endpoint(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "same.csv").write_text("entity,duplicate,accept\na,b,yes\n")
    command = ["accept", tmp_path / "same.csv", "--to", "sparql:http://localhost:1/update"]
    assert "--to is for proposals; write duplicates as .nt" in refusal(monkeypatch, capsys, *command)
