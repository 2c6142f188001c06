"""The first signal is a wish, the second one acts."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from satkgc.training.interrupts import Interrupts


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_a_wish_and_handlers_come_back(number):
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        assert interrupts.signal is None
        send(number)
        assert interrupts.signal == number.name
        assert signal.getsignal(number) == before  # a second one is not held up
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_is_a_wish_too_however_often_it_is_told(number):
    said = []
    before = signal.getsignal(signal.SIGHUP)
    with Interrupts(said.append) as interrupts:
        send(number)
        send(signal.SIGHUP)
        send(signal.SIGHUP)
        assert interrupts.signal == number.name
    assert len(said) == 1
    assert ("once more" in said[0]) == (number == signal.SIGTERM)
    assert signal.getsignal(signal.SIGHUP) == before


def test_nohup_keeps_a_run_from_noticing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            send(signal.SIGHUP)
            assert interrupts.signal is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_torchrun_passes_on_again_does_no_harm(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        send(signal.SIGINT)
        send(signal.SIGINT)
        assert interrupts.signal == "SIGINT"
    assert signal.getsignal(signal.SIGINT) is before


def test_the_wish_is_acknowledged_at_once():
    said = []
    with Interrupts(said.append):
        send(signal.SIGINT)
    assert said == ["SIGINT: this step ends, then the run is saved; once more stops it at once, unsaved"]


def test_a_second_ctrl_c_stops_at_once():
    with Interrupts():
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_work_that_can_wait_ends_with_the_first_signal(number):
    said, done = [], []

    def work():
        done.append("begun")
        send(number)
        done.append("never reached")

    with Interrupts(said.append) as interrupts:
        assert interrupts.unless_signalled(lambda: 5) == 5
        assert interrupts.unless_signalled(work) is None
        assert interrupts.signal == number.name
        assert interrupts.unless_signalled(work) is None  # nor is it begun
    assert done == ["begun"]
    assert said[0].startswith(f"{number.name}: validation is left for later")


def test_and_what_follows_it_is_not_interrupted():
    with Interrupts() as interrupts:
        interrupts.unless_signalled(lambda: None)
        send(signal.SIGINT)
        assert interrupts.signal == "SIGINT"


def test_other_threads_have_no_handlers_to_set():
    signals = []

    def work():
        with Interrupts() as interrupts:
            signals.append(interrupts.signal)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert signals == [None]
