"""What comes from data cannot steer the terminal, and what the system refuses is one line."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import subprocess
import sys

import pyarrow as pa
import pytest
from commands import refusal, run
from hypothesis import given
from hypothesis import strategies as st

from little_world import write_run
from satkgc.cli import SPIN
from satkgc.cli.terminal import CleanFormatter, clean
from satkgc.export import FORMATS
from satkgc.kg import KnowledgeGraph, Vocabulary

pytest_plugins = ["world"]

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
NASTY = "a\x1b]0;title\x07\x9b31m\u202eb\r"


@given(st.recursive(st.text(), st.lists))
def test_json_stays_the_same_json(content):
    text = clean(json.dumps(content, ensure_ascii=False))
    assert json.loads(text) == content
    assert not RAW.search(text)


def test_names_are_printed_without_what_steers_a_terminal(tmp_path, tiny_backbone, capsys, monkeypatch):
    ids = [f"{i}{NASTY}" for i in range(12)]
    entities = Vocabulary.build("entity", *(pa.array(ids) for _ in range(3)))
    relations = Vocabulary.build("relation", *(pa.array([NASTY]) for _ in range(3)))
    kg = KnowledgeGraph.from_arrays(NASTY, entities, relations, [(i, 0, (i + 1) % 12) for i in range(12)])
    folder = write_run(tmp_path / "run", kg, tiny_backbone)
    ask = ["--head", ids[0], "--relation", NASTY]
    outputs = [run("complete", folder, *ask), run("complete", folder, *ask, "--json")]
    outputs += [run("evidence", folder, *ask, "--tail", ids[1], *more) for more in ([], ["--json"])]
    outputs += [run("kg", "inspect", folder / "graph", *more) for more in ([], ["--json"])]
    for output in outputs:
        assert "\\u001b" in output.stdout
        assert not RAW.search(output.stdout)
    assert outputs[0].stdout.count(clean(ids[2])) == 2  # id and description are whole: written out they are longer
    told = refusal(monkeypatch, capsys, "complete", tmp_path / NASTY, *ask)
    assert "\\u001b" in told
    assert not RAW.search(told)
    record = logging.LogRecord("satkgc", logging.WARNING, "", 1, "%s", (NASTY,), None)
    assert not RAW.search(CleanFormatter().format(record))


def test_what_is_read_is_not_written_over(prepared, tmp_path, monkeypatch, capsys):
    file = tmp_path / "q.jsonl"
    file.write_text('{"head": "Q1", "relation": "near"}\n')
    (tmp_path / "link.jsonl").symlink_to(file)
    for out in (file, tmp_path / "link.jsonl"):
        told = refusal(monkeypatch, capsys, "complete", prepared, "--questions", file, "--out", out)
        assert "this file is read and written at once; choose another name" in told
    assert file.read_text() == '{"head": "Q1", "relation": "near"}\n'


def test_two_exports_to_one_name_leave_one_of_them_and_one_line(prepared, tmp_path, monkeypatch, capsys):
    real, out = FORMATS["npy"], tmp_path / "vectors"

    def slow(folder, part, device):
        checks = real(folder, part, device)
        command = [sys.executable, "-m", "satkgc", "export", str(prepared), str(out), "--format", "npy"]
        subprocess.run(command, check=True, capture_output=True)
        return checks

    monkeypatch.setitem(FORMATS, "npy", slow)
    told = refusal(monkeypatch, capsys, "export", prepared, out, "--format", "npy")
    assert "another export was written here meanwhile; choose another name" in told
    assert os.listdir(tmp_path) == ["vectors"]
    assert sorted(os.listdir(out)) == ["README.md", "entities.npy", "ids.txt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_what_the_system_refuses_is_one_line(prepared, tmp_path, monkeypatch, capsys, number):
    def refuse(*_args, **_options):
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr("satkgc.files.os.replace", refuse)
    told = refusal(monkeypatch, capsys, "propose", prepared, tmp_path / "p.csv", "-n", 5)
    assert os.strerror(number) in told
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "spin"), [({}, SPIN), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)]
)
def test_threads_wait_for_a_short_time_unless_the_user_has_said_how_long(given, spin):
    """Before torch is imported, whose threads read it once."""
    ask = """
import os, sys
from satkgc.cli import main
sys.argv = ["satkgc", "--help"]
try:
    main()
except SystemExit:
    assert "torch" not in sys.modules
    print(os.environ.get("GOMP_SPINCOUNT"))
"""
    rest = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command = [sys.executable, "-c", ask]
    found = subprocess.run(command, capture_output=True, text=True, env=rest | given, check=True)
    assert found.stdout.splitlines()[-1] == str(spin)
