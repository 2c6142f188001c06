"""The stream: same order for any number of workers, bounded, and always cleanly closed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from test_saam import assert_same

from graphs import random_graph
from satkgc.sampling import Needs, SamplingConfig, Stream, make_sampler

KG = random_graph(5)
CONFIG = SamplingConfig(batch_size=20, subgraph_triples=30)


def sampler():
    return make_sampler(KG, CONFIG, 1, Needs(hops=True, negatives=2))


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("satkgc")]


def test_one_two_and_four_workers_give_the_same_stream():
    plain = sampler()
    expected = [plain.draw(step) for step in range(60)]

    def slow(batch):
        time.sleep(0.001 * (batch.step % 4))  # so that workers overtake one another
        return batch

    for workers in (1, 2, 4):
        with Stream(sampler(), 0, 60, slow, workers=workers) as stream:
            for batch, other in zip(stream, expected, strict=True):
                assert_same(batch, other)
    assert not threads()


def test_without_a_transform_batches_come_as_they_are():
    with Stream(sampler(), 0, 3) as stream:
        assert [batch.step for batch in stream] == [0, 1, 2]
        assert next(stream, None) is None


def test_an_empty_range_is_an_empty_stream():
    with Stream(sampler(), 5, 5) as stream:
        assert list(stream) == []


def test_the_state_in_mid_stream_leads_to_the_rest_of_it():
    plain = sampler()
    expected = [plain.draw(step) for step in range(80)]
    for taken in (0, 1, 30):
        with Stream(sampler(), 0, 80, workers=2, depth=6) as stream:
            for _ in range(taken):
                next(stream)
            deadline = time.monotonic() + 5
            while len(stream._work.pending) < 6 and time.monotonic() < deadline:
                time.sleep(0.005)  # let it run ahead
            state = stream.state()
        ahead = state["pending_steps"].tolist()
        assert ahead == list(range(taken, taken + len(ahead)))  # those handed over are not kept
        resumed = sampler()
        resumed.restore(state)
        with Stream(resumed, taken, 80) as stream:
            for batch, other in zip(stream, expected[taken:], strict=True):
                assert_same(batch, other)


def test_it_runs_ahead_by_its_depth_and_no_further():
    source, steps = sampler(), []
    draw = source.draw
    source.draw = lambda step: steps.append(step) or draw(step)
    with Stream(source, 0, 1000, depth=3) as stream:
        next(stream)
        deadline = time.monotonic() + 5
        while len(steps) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert steps == [0, 1, 2, 3, 4]  # one taken, three waiting, one in hand


def fails_at_seven(batch):
    if batch.step == 7:
        raise ValueError("seven")
    return batch.step


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failing_worker_reaches_the_consumer_with_its_traceback(workers):
    with (
        Stream(sampler(), 0, 50, fails_at_seven, workers=workers) as stream,
        pytest.raises(ValueError, match="seven") as caught,
    ):
        list(stream)
    assert next(stream, None) is None
    assert "fails_at_seven" in "".join(traceback.format_exception(caught.value))
    assert not threads()


def test_what_came_before_the_failure_was_delivered():
    with Stream(sampler(), 0, 50, fails_at_seven) as stream:
        assert [next(stream) for _ in range(7)] == list(range(7))
        with pytest.raises(ValueError, match="seven"):
            next(stream)


def test_a_failure_stops_the_threads_even_outside_a_with_statement():
    stream = Stream(sampler(), 0, 50, fails_at_seven)
    with pytest.raises(ValueError, match="seven"):
        list(stream)
    assert not threads()


def test_a_failing_draw_reaches_the_consumer_too():
    source = sampler()
    draw = source._draw

    def broken(step):
        if step == 3:
            raise RuntimeError("no batch today")
        return draw(step)

    source._draw = broken
    with Stream(source, 0, 10) as stream:
        assert [next(stream).step for _ in range(3)] == [0, 1, 2]
        with pytest.raises(RuntimeError, match="no batch today") as caught:
            next(stream)
    assert "broken" in "".join(traceback.format_exception(caught.value))
    assert not threads()


def test_leaving_early_stops_the_threads():
    with Stream(sampler(), 0, 10_000, workers=2) as stream:
        for batch in stream:
            if batch.step == 5:
                break
    assert not threads()
    stream.close()  # twice does no harm
    with pytest.raises(ZeroDivisionError), Stream(sampler(), 0, 10_000):
        raise ZeroDivisionError
    assert not threads()


def test_a_stream_nobody_holds_closes_itself():
    stream = Stream(sampler(), 0, 10_000)
    next(stream)
    del stream
    gc.collect()
    assert not threads()


def test_waiting_is_counted():
    with Stream(sampler(), 0, 4, lambda batch: time.sleep(0.05)) as stream:
        list(stream)
        slow = stream.waited
    assert slow >= 0.15
    with Stream(sampler(), 0, 4) as stream:
        next(stream)
        time.sleep(0.05)
        before = stream.waited
        list(stream)
        assert stream.waited - before < slow  # they were ready


CTRL_C = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from graphs import random_graph
from satkgc.sampling import SamplingConfig, Stream, make_sampler
sampler = make_sampler(random_graph(5), SamplingConfig(batch_size=20), 1)
try:
    with Stream(sampler, 0, 10**9, workers=2) as stream:
        for batch in stream:
            if batch.step == 10:
                print("running", flush=True)
except KeyboardInterrupt:
    left = [t.name for t in threading.enumerate() if t.name.startswith("satkgc")]
    print("left", left, flush=True)
    sys.exit(7)
"""


def test_ctrl_c_ends_cleanly():
    command = [sys.executable, "-c", CTRL_C, str(Path(__file__).parents[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        os.kill(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, "left []\n"), errors
    assert "Traceback" not in errors


def test_hops_reach_the_consumer_as_arrays():
    with Stream(sampler(), 0, 2, lambda batch: batch.hops) as stream:
        assert all(hops.shape == (20,) and hops.dtype == np.int32 for hops in stream)
