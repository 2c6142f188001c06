"""The examples in docs/graphs.md, tried as a reader would."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from satkgc.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_the_five_minutes_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.csv").write_text(blocks("csv")[0])
    commands = [line for block in blocks("console") for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "satkgc"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, command
    for name in ("films/meta.json", "degrees.png", "data/wordnet-sample/train.tsv"):
        assert (tmp_path / name).is_file()
    done = subprocess.run([sys.executable, "-c", blocks("python")[0]], capture_output=True, text=True)
    assert done.stdout == "['Jack Lemmon']\n", done.stderr
