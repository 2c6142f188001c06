"""`satkgc complete`, `evidence`, `prepare` and `export`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from commands import refusal, run

from satkgc.cli.complete import _print_answers
from satkgc.completion import Answer, ExpertShare, NewEntity, Role
from satkgc.errors import SatkgcError
from satkgc.manifest import write_manifest

pytest_plugins = ["world"]


def test_json_is_a_list_of_answers(prepared, completer):
    result = run("complete", prepared, "--head", "Q1", "--relation", "near", "--k", "4", "--json")
    answers = json.loads(result.stdout)
    assert [list(a) for a in answers] == [["id", "name", "score", "probability", "known"]] * 4
    expected = completer.tails("Q1", "near", k=4)
    assert [a["score"] for a in answers] == pytest.approx([a.score for a in expected], abs=1e-5)
    assert [a["known"] for a in answers] == [a.known for a in expected]


def test_the_table_shows_names_probabilities_and_what_is_known(prepared, completer):
    result = run("complete", prepared, "--relation", "knows", "--tail", "Leonardo da Mila", "--k", "90")
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert lines[0].split()[:6] == ["#", "answer", "id", "probability", "score", "known"]
    expected = completer.heads("knows", "Q12", k=90)
    assert len(lines) == len(expected) + 1
    for line, answer in zip(lines[1:], expected, strict=True):
        assert f"{answer.probability:.1%}" in line
    assert sum(" yes" in line for line in lines) == sum(a.known for a in expected) > 0


def test_relations_of_a_pair_and_filters(prepared):
    result = run("complete", prepared, "--head", "Q1", "--tail", "Q2")
    assert all(name in result.stdout for name in ("relation", "born in", "capital of", "knows", "near"))
    kept = run("complete", prepared, "--head", "Q1", "--relation", "near", "--among", "Q2", "--among", "Q3", "--json")
    assert {a["id"] for a in json.loads(kept.stdout)} == {"Q2", "Q3"}
    options = ["--head", "Q1", "--relation", "near", "--k", "90", "--json", "--drop-known"]
    some = json.loads(run("complete", prepared, *options, "--tails-of", "born in").stdout)
    every = json.loads(run("complete", prepared, *options).stdout)
    assert 0 < len(some) < len(every)
    assert not any(a["known"] for a in every)
    none = run("complete", prepared, "--head", "Q1", "--relation", "near", "--min-score", "1.1")
    assert "no answer passes the filters" in none.stdout


def test_an_entity_in_words(prepared, completer):
    words = ["--new-name", "bora", "--new-description", "a town", "--json"]
    as_head = json.loads(run("complete", prepared, *words, "--relation", "near").stdout)
    assert len(as_head) == 10
    assert not any(a["known"] for a in as_head)
    pair = json.loads(run("complete", prepared, *words, "--head", "Q1").stdout)
    assert {a["id"] for a in pair} == {"born_in", "capital_of", "knows", "near"}
    assert pair != json.loads(run("complete", prepared, *words, "--tail", "Q1").stdout)
    turned = json.loads(run("complete", prepared, *words, "--relation", "near", "--new-side", "tail").stdout)
    asked = completer.heads("near", NewEntity("bora", "a town"))
    assert [a["id"] for a in turned] == [a.id for a in asked]
    facts = ["--new-fact", "? | near | Q4", "--new-fact", "Q5|knows|?"]
    with_facts = json.loads(run("complete", prepared, *words, *facts, "--relation", "near", "--k", "90").stdout)
    new = NewEntity("bora", "a town", facts=(Role("near", "head", "Q4"), Role("knows", "tail", "Q5")))
    assert [a["score"] for a in with_facts] == pytest.approx(
        [a.score for a in completer.tails(new, "near", k=90)], abs=1e-5
    )
    assert [a["id"] for a in with_facts if a["known"]] == ["Q4"]


def test_evidence_in_words_and_as_json(prepared, completer):
    triple = {"head": "Q3", "relation": "knows", "tail": "Q41"}
    options = [word for part, value in triple.items() for word in (f"--{part}", value)]
    expected = completer.evidence(*triple.values(), k=3)
    printed = json.loads(run("evidence", prepared, *options, "--k", "3", "--json").stdout)
    fields = json.loads(json.dumps(asdict(expected)))
    numbers = {part: (printed.pop(part), fields.pop(part)) for part in ("score", "probability")}
    assert all(mine == pytest.approx(other, abs=1e-5) for mine, other in numbers.values())
    for mine, other in zip(printed["similar"], fields["similar"], strict=True):
        assert mine.pop("similarity") == pytest.approx(other.pop("similarity"), abs=1e-5)
    assert printed == fields
    text = run("evidence", prepared, *options, "--k", "3").stdout
    chance = f"probability {expected.probability:.1%} as the missing tail\n"
    assert text.startswith(f"not in the graph; score {expected.score:.3f}, {chance}")
    for part in ("head", "relation"):
        other = completer.evidence(*triple.values(), k=1, asked=part)
        other_text = run("evidence", prepared, *options, "--k", "1", "--asked", part).stdout
        assert f"score {other.score:.3f}, probability {other.probability:.1%} as the missing {part}\n" in other_text
        assert other.query_text in other_text
    for similar in expected.similar:
        assert f"{similar.head_name} → {similar.tail_name}  ({similar.head}, {similar.tail})" in text
    assert expected.query_text in text
    assert expected.entity_text in text
    assert expected.path
    (way,) = [line for line in text.splitlines() if line.startswith(f"  {expected.path[0].source_name} ")]
    at = 0
    for step in expected.path:  # its stops, in their order
        at = way.index(f" {step.target_name}", at + 1)
    assert way.endswith(expected.path[-1].target_name)


def test_arrows_on_a_terminal_that_has_none(prepared):
    command = [
        sys.executable,
        "-m",
        "satkgc",
        "evidence",
        prepared,
        "--head",
        "Q3",
        "--relation",
        "knows",
        "--tail",
        "Q41",
    ]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"}, check=True)
    assert b"\\u2192" in done.stdout


def test_a_file_of_questions(prepared, tmp_path):
    (tmp_path / "q.tsv").write_text("Q1\tnear\t?\n?\tknows\tQ2\n")
    printed = run("complete", prepared, "--questions", tmp_path / "q.tsv", "--k", "3").stdout.splitlines()
    assert [len(json.loads(line)["answers"]) for line in printed] == [3, 3]
    run("complete", prepared, "--questions", tmp_path / "q.tsv", "--k", "3", "--out", tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text().splitlines() == printed


def test_answers_are_not_written_over_a_file_or_into_a_table(tmp_path, monkeypatch, capsys):
    for name, told in (
        ("a.jsonl", "a.jsonl: the file is there already; choose another name, or remove it"),
        ("a.csv", "'a.csv' does not end in .jsonl"),
    ):
        (tmp_path / "a.jsonl").write_text("the only copy")
        (tmp_path / "q.tsv").write_text("Q1\tnear\t?\n")
        command = ["complete", tmp_path / "no run", "--questions", tmp_path / "q.tsv", "--out", tmp_path / name]
        assert told in refusal(monkeypatch, capsys, *command)
    assert (tmp_path / "a.jsonl").read_text() == "the only copy"


def test_prepare_and_export_tell_what_they_measured(run_copy, tmp_path):
    facts = json.loads(run("prepare", run_copy, "--json").stdout)
    assert (facts["entities"], facts["index"]) == (90, "exact")
    assert 0 <= facts["calibration error"] < 1
    assert "entities: 90" in run("prepare", run_copy).stdout
    assert "90" in run("export", run_copy, tmp_path / "v", "--format", "npy").stdout
    assert (tmp_path / "v" / "README.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--head", "Lenardo", "--relation", "near"],
            "unknown entity 'Lenardo'; did you mean 'Leonardo da Mila'",
        ),
        (["--head", "Q1", "--relation", "nere"], "unknown relation 'nere'; did you mean 'near'?"),
        (["--head", "Mercury", "--relation", "near"], "2 entities are called 'Mercury'; give the id of one: Q"),
        (["--head", "Q1"], "a question gives two of head, relation and tail"),
        (["--head", "Q1", "--relation", "near", "--tail", "Q2"], "leave one out"),
        (["--head", "Q1", "--relation", "near", "--k", "0"], "ask for 1 to 1000 answers"),
        (["--head", "Q1", "--relation", "near", "--heads-of", "near", "--tails-of", "near"], "give one of them"),
        (
            ["--head", "Q1", "--tail", "Q2", "--new-name", "x"],
            "for the tail, which is given too",
        ),
        (
            ["--head", "Q1", "--new-side", "head", "--new-name", "x", "--relation", "near"],
            "leave --head out",
        ),
        (["--head", "Q1", "--new-side", "tail", "--relation", "near"], "--new-side without --new-name"),
        (["--new-name", "x", "--new-fact", "? | near", "--relation", "near"], "is not a triple with one ?"),
        (
            ["--new-name", "x", "--new-fact", "Q1 | near | Q2", "--relation", "near"],
            "is not a triple with one ?",
        ),
        (["--new-name", "x", "--new-fact", "? | near | Qx", "--relation", "near"], "unknown entity 'Qx'"),
        (["--head", "Q1", "--new-fact", "? | near | Q2", "--relation", "near"], "--new-fact without --new-name"),
        (["--head", "Q1", "--relation", "near", "--out", "x"], "--out is for a file of questions"),
        (["--head", "Q1", "--questions", "q.tsv"], "a question and a file of questions at once"),
        (["--new-fact", "x", "--questions", "q.tsv"], "a question and a file of questions at once"),
        (["--head", "Q1", "--relation", "near", "--new-description", "x"], "--new-description without --new-name"),
        (["--questions", "none.tsv"], "none.tsv: cannot read the questions"),
    ],
)
def test_bad_questions_are_one_line(prepared, monkeypatch, capsys, arguments, message):
    assert message in refusal(monkeypatch, capsys, "complete", prepared, *arguments)


def test_bad_folders_are_one_line(run_copy, tmp_path, monkeypatch, capsys):
    for command in (["complete", tmp_path, "--head", "a", "--relation", "b"], ["prepare", tmp_path / "nowhere"]):
        assert "no run here; give a folder that `satkgc train` wrote" in refusal(monkeypatch, capsys, *command)
    file = run_copy / "index" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "model": "0" * 64}))
    write_manifest(run_copy / "index")
    asked = ["complete", run_copy, "--head", "Q1", "--relation", "near"]
    assert "the index does not belong to this run's model; make it anew" in refusal(monkeypatch, capsys, *asked)
    assert "this is there already" in refusal(monkeypatch, capsys, "export", run_copy, tmp_path)
    assert "index.json: there is a file of this name" in refusal(monkeypatch, capsys, "export", run_copy, file / "x")
    propose = ["propose", run_copy, tmp_path / "x.docx"]
    run("prepare", run_copy)
    assert "cannot tell the form of 'x.docx'" in refusal(monkeypatch, capsys, *propose)


def test_an_unfinished_answer_file_is_not_left_behind(prepared, tmp_path, monkeypatch):
    (tmp_path / "q.tsv").write_text("Q1\tnear\t?\n")
    monkeypatch.setattr("satkgc.completion.question_files.outcome_to_json", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("complete", prepared, "--questions", tmp_path / "q.tsv", "--out", tmp_path / "a.jsonl")
    assert [file.name for file in tmp_path.iterdir()] == ["q.tsv"]


def test_a_bad_line_of_questions_is_found_before_a_model_is_loaded(tmp_path, monkeypatch, capsys):
    (tmp_path / "q.tsv").write_text("Q1\tnear\t?\nQ2\tnear\n")
    command = ["complete", tmp_path / "no run", "--questions", tmp_path / "q.tsv", "--out", tmp_path / "a.jsonl"]
    assert "q.tsv:2: 2 columns" in refusal(monkeypatch, capsys, *command)


def test_a_file_of_questions_with_an_unknown_name(prepared, tmp_path):
    (tmp_path / "q.tsv").write_text("Q1\tnear\t?\nnobody here\tnear\t?\n")
    command = ["complete", prepared, "--questions", tmp_path / "q.tsv", "--out", tmp_path / "a.jsonl"]
    with pytest.raises(SatkgcError, match=r"q\.tsv: 1 of 2 questions could not be answered"):
        run(*command)
    first, second = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert len(first["answers"]) == 10
    assert "q.tsv:2: unknown entity 'nobody here'" in second["error"]


def test_what_is_missing_of_an_index_and_wrong_devices_are_one_line(run_copy, monkeypatch, capsys):
    asked = ["complete", run_copy, "--head", "Q1", "--relation", "near"]
    assert "unknown device 'gpu'; set it to auto, cpu or cuda" in refusal(
        monkeypatch, capsys, *asked, "--device", "gpu"
    )
    for file in ("index/entities.npy", "index/names.npy", "index/calibration.json"):
        whole = (run_copy / file).read_bytes()
        (run_copy / file).unlink()
        assert "the index is damaged (" in refusal(monkeypatch, capsys, *asked)
        if file == "index/entities.npy":
            (run_copy / file).write_bytes(whole[:-100])
            assert "make it anew with `satkgc prepare" in refusal(monkeypatch, capsys, *asked)
        (run_copy / file).write_bytes(whole)
    assert run(*asked).exit_code == 0


def test_folders_to_write_in_are_made_and_files_in_their_place_refused(prepared, tmp_path, monkeypatch, capsys):
    (tmp_path / "q.tsv").write_text("Q1\tnear\t?\n")
    run("complete", prepared, "--questions", tmp_path / "q.tsv", "--out", tmp_path / "a" / "b" / "answers.jsonl")
    assert len((tmp_path / "a" / "b" / "answers.jsonl").read_text().splitlines()) == 1
    run("propose", prepared, tmp_path / "c" / "some.tsv", "--n", "3")
    assert (tmp_path / "c" / "some.tsv").exists()
    for out in (tmp_path / "q.tsv" / "some.tsv", tmp_path / "a"):
        error = refusal(monkeypatch, capsys, "propose", prepared, out, "--n", "3")
        assert "there is a file of this name" in error or "this is a folder" in error


def test_a_share_against_an_answer_is_explained(capsys):
    for share, told in ((-0.11, True), (0.11, False)):
        experts = (ExpertShare("text", share, 1), ExpertShare("complex", 0.89, 1))
        _print_answers([Answer("Q1", "one", "", -1.0, None, False, experts=experts)], False)
        assert ("below 0% speaks against the answer" in capsys.readouterr().out) is told
