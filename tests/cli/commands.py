"""Commands, run as a user would."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner, Result

from satkgc.cli import app, main


def run(*arguments: object) -> Result:
    """A command in this process; its errors are raised."""
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on stderr of a command that ends with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["satkgc", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err
