"""`satkgc check` and `classify`."""

from __future__ import annotations

import json

from commands import refusal, run

pytest_plugins = ["world"]


def test_check_as_table_json_and_file(prepared, completer, tmp_path) -> None:
    doubts = completer.check(n=3, relations=["near"])
    table = run("check", prepared, "--n", 3, "--relation", "near").stdout.splitlines()
    assert len([line for line in table if line.lstrip()[:1] in "123" and "near" in line]) == 3
    assert f"{doubts[0].head_name} – near – {doubts[0].tail_name}" in table[1]
    printed = json.loads(run("check", prepared, "--n", 3, "--relation", "near", "--json").stdout)
    assert [(row["head"], row["tail"]) for row in printed] == [(doubt.head, doubt.tail) for doubt in doubts]
    out = tmp_path / "doubts.json"
    assert run("check", prepared, out, "--n", 3, "--relation", "near").stdout.endswith("doubts.json: 3 statements\n")
    assert json.loads(out.read_text()) == printed


def test_what_cannot_be_written_is_told_before_a_model_is_loaded(tmp_path, monkeypatch, capsys) -> None:
    command = ["check", tmp_path / "no run", tmp_path / "x.docx"]
    assert "cannot tell the form of 'x.docx'" in refusal(monkeypatch, capsys, *command)
    command = ["check", tmp_path / "no run", "--n", "0"]
    assert "n is 0; ask for 1 to" in refusal(monkeypatch, capsys, *command)


def test_classify(prepared, completer, tmp_path) -> None:
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("".join(f"Q{i}\tnear\tQ{i + 1}\n" for i in range(30)))
    printed = run("classify", prepared, "--valid-negatives", wrong, "--test-negatives", wrong).stdout
    assert printed.startswith(f"{len(completer.kg.test):,} right and 30 wrong test triples\naccuracy 0.")
    told = json.loads(run("classify", prepared, "--valid-negatives", wrong, "--test-negatives", wrong, "--json").stdout)
    assert f"AUC      {told['auc']:.4f}" in printed
    assert set(told["thresholds"]) == {"born_in", "capital_of", "knows", "near"}
