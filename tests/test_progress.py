"""Long work shows how far it is, wherever it runs."""

from __future__ import annotations

import io
import re
import sys
import time

from satkgc.progress import _Lines, progress_bar


def test_without_a_terminal_long_work_tells_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("satkgc.progress.FIRST", 0.02)
    monkeypatch.setattr("satkgc.progress.EVERY", 0.02)
    with progress_bar() as bar:
        task = bar.add_task("encoding", total=12_000)
        bar.advance(task, 2000)
        wait_for(lambda: sys.stderr.getvalue().count("encoding: 2,000 of 12,000\n") >= 2)  # standing still, and said so
        bar.advance(task, 2000)
        wait_for(lambda: re.search(r"^encoding: 4,000 of 12,000, about \d s left$", sys.stderr.getvalue(), re.M))
    told = sys.stderr.getvalue()
    time.sleep(0.1)
    assert sys.stderr.getvalue() == told  # the work is over


def test_the_time_left_is_that_of_the_advances_after_the_first(monkeypatch):
    times = iter([100, 110, 130])  # what is done once took 100 s
    bar = _Lines(clock=lambda: next(times))
    task = bar.add_task("encoding", total=12_000)
    assert bar.lines() == ["encoding: 0 of 12,000"]
    bar.advance(task, 2000)
    assert bar.lines() == ["encoding: 2,000 of 12,000"]
    bar.advance(task, 2000)
    assert bar.lines() == ["encoding: 4,000 of 12,000, about 40 s left"]
    bar.advance(task, 2000)
    assert bar.lines() == ["encoding: 6,000 of 12,000, about 45 s left"]


def test_short_work_and_work_that_is_not_to_be_shown_say_nothing(monkeypatch, capsys):
    for shown in (True, False):
        with progress_bar(shown) as bar:
            task = bar.add_task("encoding", total=3)
            bar.advance(task, 3)
    monkeypatch.setattr("satkgc.progress.FIRST", 0.01)
    with progress_bar(shown=False) as bar:
        bar.advance(bar.add_task("encoding", total=3))
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


def test_work_that_goes_on_counts_its_own_time_alone():
    times = iter([5, 16])
    bar = _Lines(clock=lambda: next(times))
    task = bar.add_task("proposing", total=1000, completed=900)
    bar.advance(task)
    bar.advance(task)
    assert bar.lines() == ["proposing: 902 of 1,000, about 18 min left"]


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(sys.stderr.getvalue())
