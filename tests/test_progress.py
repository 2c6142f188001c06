"""Long work shows how far it is, wherever it runs."""

from __future__ import annotations

import io
import sys

from satkgc.progress import _Lines, progress_bar


def test_without_a_terminal_long_work_tells_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    times = iter([0, 1, 11, 12, 50, 72, 130])
    bar = _Lines(clock=lambda: next(times))
    with bar:
        task = bar.add_task("encoding", total=12_000)
        for _ in range(6):
            bar.advance(task, 2000)
    assert sys.stderr.getvalue().splitlines() == [
        "encoding: 4,000 of 12,000, about 22 s left",
        "encoding: 10,000 of 12,000, about 14 s left",
    ]


def test_short_work_and_work_that_is_not_to_be_shown_say_nothing(monkeypatch, capsys):
    for shown in (True, False):
        with progress_bar(shown) as bar:
            task = bar.add_task("encoding", total=3)
            bar.advance(task, 3)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("satkgc.progress.FIRST", -1.0)
    for shown, lines in ((True, 1), (False, 0)):
        with progress_bar(shown) as bar:
            bar.advance(bar.add_task("encoding", total=3))
        assert len(capsys.readouterr().err.splitlines()) == lines


def test_work_that_goes_on_counts_its_own_time_alone(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    times = iter([0, 11])
    bar = _Lines(clock=lambda: next(times))
    with bar:
        task = bar.add_task("proposing", total=1000, completed=900)
        bar.advance(task)
    assert sys.stderr.getvalue() == "proposing: 901 of 1,000, about 18 min left\n"
