"""Questions from files: three forms, one meaning; every bad line is named."""

from __future__ import annotations

import json
import re

import pytest

from satkgc.completion import NewEntity, Question, Role
from satkgc.completion import question_files as module
from satkgc.completion.question_files import answer_file, count_questions, outcome_to_json, read_questions
from satkgc.errors import SatkgcError

pytest_plugins = ["world"]

EXPECTED = [
    Question(head="Q1", relation="born in", k=3),
    Question(relation="near", tail="Leonardo da Mila", k=3),
    Question(head="Q3", tail="Q4", k=3),
]


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("q.tsv", "Q1\tborn in\t?\n\tnear\tLeonardo da Mila\nQ3\t?\tQ4\n", [1, 2, 3]),
        (
            "q.tsv",
            "\ufeffhead\trelation\ttail\r\nQ1\tborn in\t\r\n\r\n?\tnear\tLeonardo da Mila\r\nQ3\t\tQ4",
            [2, 4, 5],
        ),
        ("q.csv", 'Q1,born in,?\n?,near,"Leonardo da Mila"\nQ3,,Q4\n', [1, 2, 3]),
        ("q.csv", 'source,relation,target\nQ1,born in,?\n?,near,"Leonardo da Mila"\nQ3,,Q4\n', [2, 3, 4]),
        (
            "q.jsonl",
            '{"head": "Q1", "relation": "born in"}\n\n{"relation": "near", "tail": "Leonardo da Mila"}\n'
            '{"head": "Q3", "tail": "Q4"}',
            [1, 3, 4],
        ),
    ],
)
def test_three_forms_one_meaning(tmp_path, name, text, lines):
    found = list(read_questions(write(tmp_path, name, text), k=3))
    assert [question for _, question in found] == EXPECTED
    assert [line for line, _ in found] == lines


def test_objects_may_say_more(tmp_path):
    line = {
        "head": {
            "name": "bora",
            "description": "a town",
            "facts": [{"relation": "near", "side": "head", "other": "Q4"}],
        },
        "relation": "near",
        "k": 7,
        "among": ["Q1", "Q2"],
        "role": {"relation": "near", "side": "tail"},
        "min_score": 0.5,
    }
    ((_, question),) = read_questions(write(tmp_path, "q.jsonl", json.dumps(line)), k=3, drop_known=True)
    assert question == Question(
        head=NewEntity("bora", "a town", facts=(Role("near", "head", "Q4"),)),
        relation="near",
        k=7,
        drop_known=True,
        among=("Q1", "Q2"),
        role=Role("near", "tail"),
        min_score=0.5,
    )


def test_answers_come_in_the_order_of_the_file_whatever_the_batches(completer, tmp_path, monkeypatch):
    file = write(tmp_path, "q.tsv", "".join(f"Q{i}\tnear\t?\n" for i in range(9)))
    monkeypatch.setattr(module, "BATCH", 4)
    found = list(answer_file(completer, file, k=2))
    assert [question.head for question, _ in found] == [f"Q{i}" for i in range(9)]
    for question, answers in found:
        assert [a.score for a in answers] == pytest.approx(
            [a.score for a in completer.tails(question.head, "near", k=2)]
        )
    record = json.loads(outcome_to_json(*found[3]))
    assert record["question"] == {"head": "Q3", "relation": "near", "k": 2}  # what is not as usual
    assert set(record["answers"][0]) == {"id", "name", "score", "probability", "known"}


def test_files_are_streamed(completer, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    file = write(tmp_path, "q.tsv", "Q1\tnear\t?\nQ2\tnear\t?\nQ3\tno such relation\t?\n")
    answers = answer_file(completer, file)
    assert next(answers)[0].head == "Q1"
    assert next(answers)[0].head == "Q2"
    assert "q.tsv:3: unknown relation 'no such relation'" in str(next(answers)[1])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('"k": 2.5', "k is 2.5; give a whole number"),
        ('"k": true', "k is True; give a whole number"),
        ('"role": "x"', "role is 'x'; give a Role"),
        ('"min_score": "a"', "min_score is 'a'; give a number"),
        ('"drop_known": "no"', "drop_known is 'no'; give true or false"),
        ('"min_score": NaN', "min_score is nan; give a number that is finite"),
        ('"min_probability": -Infinity', "min_probability is -inf; give a number that is finite"),
        ('"min_probability": 70', "min_probability is 70; give one from 0 to 1"),
        ('"among": "Q1"', "among is a text; give a list of ids or names"),
    ],
)
def test_fields_of_other_types(tmp_path, more, message):
    file = write(tmp_path, "q.jsonl", f'{{"head": "Q1", "relation": "near", {more}}}\n')
    with pytest.raises(SatkgcError, match=re.escape(f"{file}:1: {message}")):
        list(read_questions(file))


def test_empty_rows_are_passed_over_and_quotes_must_close(tmp_path):
    file = write(tmp_path, "q.csv", "\nhead;relation;tail\nQ1;near;?\n;;\n")
    ((line, question),) = read_questions(file)
    assert (line, question.head) == (3, "Q1")
    with pytest.raises(SatkgcError, match=r"open\.csv: not a table \(.*\); look for a quote"):
        list(read_questions(write(tmp_path, "open.csv", 'Q1,"near,?\nQ2,near,?\n')))


def test_a_file_without_questions_is_refused(tmp_path):
    assert count_questions(write(tmp_path, "q.tsv", "Q1\tnear\t?\nnobody\tnear\t?\n")) == 2
    for name, text in (("a.tsv", "head\trelation\ttail\n\n"), ("b.jsonl", "")):
        with pytest.raises(SatkgcError, match=rf"{name}: no questions; write head, relation and tail"):
            count_questions(write(tmp_path, name, text))


def test_a_name_that_is_unknown_does_not_stop_the_others(completer, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    file = write(tmp_path, "q.csv", "head;relation;tail\nQ1;near;?\nnobody;near;?\n?;near;Q3\n")
    (_, first), (asked, error), (_, last) = answer_file(completer, file, k=2)
    assert first == completer.tails("Q1", "near", k=2)
    assert last == completer.heads("near", "Q3", k=2)
    assert asked.head == "nobody"
    record = json.loads(outcome_to_json(asked, error))
    assert record["question"] == {"head": "nobody", "relation": "near", "k": 2}
    assert record["error"].startswith(f"{file}:3: unknown entity 'nobody'")
    assert "answers" not in record


def test_half_a_character_can_be_written(completer, tmp_path):
    ((asked, error),) = answer_file(completer, write(tmp_path, "q.jsonl", '{"head": "\\ud800", "relation": "near"}'))
    line = outcome_to_json(asked, error).encode("utf-8")
    assert json.loads(line)["question"]["head"] == "\ud800"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.tsv", "Q1\tnear\n", r"q\.tsv:1: 2 columns; give head, relation and tail"),
        ("q.tsv", "Q1\tnear\t?\nQ1\t?\t?\n", r"q\.tsv:2: a question gives two"),
        ("q.csv", "Q1,near,Q2\n", r"q\.csv:1: a question gives two"),
        ("q.jsonl", '{"head": "Q1", "relation": "near"}\n{"head": \n', r"q\.jsonl:2: not JSON"),
        ("q.jsonl", "[" * 100_000, r"q\.jsonl:1: not JSON"),
        ("q.jsonl", '["Q1"]\n', r"q\.jsonl:1: not a question"),
        (
            "q.jsonl",
            '{"head": "Q1", "relation": "near", "colour": 1}\n',
            r"q\.jsonl:1: not a question; fields are head",
        ),
        ("q.jsonl", '{"head": {"nom": "x"}, "relation": "near"}\n', r"q\.jsonl:1: not a question"),
        ("q.jsonl", '{"head": "Q1", "relation": "near", "k": 0}\n', r"q\.jsonl:1: k is 0"),
        ("q.jsonl", '{"head": "Q1", "relation": "near", "k": "5"}\n', r"q\.jsonl:1: k is .5.; give a whole number"),
        ("q.jsonl", '{"head": 7, "relation": "near"}\n', r"q\.jsonl:1: head is 7"),
        ("q.jsonl", '{"head": {"name": 7}, "relation": "near"}\n', r"q\.jsonl:1: name is 7"),
        ("q.jsonl", '{"head": {"name": "x", "facts": 7}, "relation": "near"}\n', r"q\.jsonl:1: not a question"),
        ("q.jsonl", '{"head": {"name": "x", "facts": ["Q4"]}, "relation": "near"}\n', r"q\.jsonl:1: 'Q4' is no fact"),
        ("q.jsonl", '{"head": {"name": "x", "facts": [{"a": 1}]}, "relation": "near"}\n', r"no fact; its fields are"),
        (
            "q.jsonl",
            '{"head": {"name": "x", "facts": [{"relation": "near", "side": "head"}]}, "relation": "near"}\n',
            r"q\.jsonl:1: .* is no fact",
        ),
        ("q.xml", "<q/>", r"q\.xml: cannot tell the form"),
    ],
)
def test_a_bad_line_is_named(tmp_path, name, text, message):
    with pytest.raises(SatkgcError, match=message):
        list(read_questions(write(tmp_path, name, text)))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(SatkgcError, match="No such file"):
        list(read_questions(tmp_path / "none.tsv"))
    (tmp_path / "latin.tsv").write_bytes("Q1\tr\xe9gion\t?\n".encode("latin-1"))
    with pytest.raises(SatkgcError, match="not UTF-8"):
        list(read_questions(tmp_path / "latin.tsv"))
