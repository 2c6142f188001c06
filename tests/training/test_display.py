"""A bar on a terminal, lines elsewhere, nothing from other ranks."""

from __future__ import annotations

import io
import re
import sys

import pytest

from satkgc.training.display import Display

RECORD = {"loss": 1.25, "lr": 5e-5, "tau": 0.05, "beta": 1e-4, "triples_per_second": 4321.0, "data_wait": 0.02}


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
    for part in ("loss 1.250", "lr 5.0e-05", "τ 0.0500", "β 1.0e-04", "4,321 triples/s", "wait 2%", "5/10", "ETA"):
        assert part in text
    assert "[step 5] validation" in text


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_a_narrow_terminal_keeps_steps_and_times(monkeypatch, columns):
    last = shown(monkeypatch, Terminal(), columns=columns).split("training ")[-1]
    assert "5/10" in last
    assert re.search(r"0:00:0\d.* ETA .*(-:--:--|0:00:\d\d)", last)
    assert "loss 1.250" in last
    assert "…" not in last


@pytest.mark.parametrize(("first", "expected"), [(True, "[step 5] validation\n"), (False, "")])
def test_elsewhere_only_events_are_told_and_by_one_rank(monkeypatch, first, expected):
    assert shown(monkeypatch, io.StringIO(), first) == expected
