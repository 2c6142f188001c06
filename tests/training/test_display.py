"""A bar on a terminal, lines elsewhere, nothing from other ranks."""

from __future__ import annotations

import io
import os
import pty
import re
import sys

import pytest

from satkgc.progress import duration, progress_bar
from satkgc.training.display import Display

METRICS = {"temperature": 0.05, "beta": 1e-4, "hard_share": 0.123456}
RECORD = {"loss": 1.25, "lr": 5e-5, "triples_per_second": 4321.0, "data_wait": 0.02, "metrics": METRICS}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, first=True, columns=200):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    display = Display(first)
    display.start(3, 10)
    display.advance(4)
    display.advance(5, RECORD)
    display.say("[step 5] validation")
    display.stop()
    return stream.getvalue()


def test_a_terminal_shows_the_numbers(monkeypatch):
    text = shown(monkeypatch, Terminal())
    numbers = ["loss 1.250", "lr 5.0e-05", "4,321 triples/s", "wait 2%", "5/10", "ETA"]
    for part in [*numbers, "temperature 0.05", "beta 0.0001", "hard share 0.123"]:  # whatever metrics a model has
        assert part in text
    assert "[step 5] validation" in text


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_a_narrow_terminal_keeps_steps_and_times(monkeypatch, columns):
    last = shown(monkeypatch, Terminal(), columns=columns).split("training ")[-1]
    assert "5/10" in last
    assert re.search(r"0:00:0\d.* ETA .*(-:--:--|0:00:\d\d)", last)
    assert "loss 1.250" in last
    assert "…" not in last


@pytest.mark.parametrize(("first", "expected"), [(True, "step 4 of 10\n[step 5] validation\n"), (False, "")])
def test_elsewhere_lines_are_told_and_by_one_rank(monkeypatch, first, expected):
    assert shown(monkeypatch, io.StringIO(), first) == expected


def test_elsewhere_there_is_a_sign_of_life_every_minute(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    times = iter([0, 30, 61, 100, 5000, 5001])
    display = Display(clock=lambda: next(times))
    display.start(100, 500)
    display.advance(101)
    display.advance(102)
    display.advance(103)
    display.advance(104, RECORD)
    display.advance(105)
    display.advance(500)
    assert sys.stderr.getvalue().splitlines() == [
        "step 101 of 500",
        "step 103 of 500: about 3.4 h left",  # 397 steps of 30.5 s
        "step 105 of 500: loss 1.250, 4,321 triples/s, about 137.2 h left",
    ]


@pytest.mark.parametrize(("left", "said"), [(0.4, "0 s"), (89, "89 s"), (700, "12 min"), (5400, "1.5 h")])
def test_times_left(left, said):
    assert duration(left) == said


def test_the_bar_makes_room_and_comes_back(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    display = Display()
    display.start(3, 10)
    with display.paused():
        assert not display.progress.live.is_started
        with progress_bar() as other:
            other.advance(other.add_task("ranking", total=2))
    assert display.progress.live.is_started
    display.advance(4, RECORD)
    display.stop()
    assert "ranking" in sys.stderr.getvalue()
    assert "4/10" in sys.stderr.getvalue().split("ranking")[-1]


def test_a_terminal_that_is_closed_does_not_end_the_run(monkeypatch):
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        display = Display()
        display.start(0, 10)
        display.progress.live._refresh_thread.stop()  # the bar is drawn by nobody else now
        os.close(ours)
        with pytest.raises(OSError, match="Input/output"):
            os.write(theirs, b"x")
        display.say("nobody reads this")
        display.advance(1)
        display.stop()
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), theirs)  # so that closing it has where to put the rest
