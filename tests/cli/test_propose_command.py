"""`satkgc propose` and `accept`."""

from __future__ import annotations

import csv

from commands import refusal, run

pytest_plugins = ["world"]


def test_propose_by_precision(prepared, completer, tmp_path):
    precision = max(completer._engine.calibration.entities.curve.precision) - 0.01
    result = run("propose", prepared, tmp_path / "out.tsv", "--n", "20", "--relation", "near", "--precision", precision)
    count = int(result.stdout.split()[1])
    rows = (tmp_path / "out.tsv").read_text().splitlines()[1:]
    assert len(rows) == count
    least = completer.threshold(precision)
    assert all(float(row.split("\t")[7]) >= least - 1e-6 for row in rows)


def test_a_file_of_proposals_that_cannot_be_written_is_told_before_a_model_is_loaded(tmp_path, monkeypatch, capsys):
    command = ["propose", tmp_path / "no run", tmp_path / "x.docx"]
    assert "cannot tell the form of 'x.docx'" in refusal(monkeypatch, capsys, *command)


def test_accept(prepared, tmp_path):
    run("propose", prepared, tmp_path / "missing.csv", "--n", "3", "--relation", "near")
    with (tmp_path / "missing.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    rows[0][header.index("accept")] = "yes"
    with (tmp_path / "reviewed.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    result = run("accept", tmp_path / "reviewed.csv", tmp_path / "accepted.nt")
    assert result.stdout.endswith("accepted.nt: 1 of 3 triples\n")
    assert len((tmp_path / "accepted.nt").read_text().splitlines()) == 1
