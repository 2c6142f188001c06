"""The queue between requests and the model: nothing lost, nothing mixed up, faults kept to their own question."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.serving.batching import Batcher, Busy


def _batcher(answer, size=8, wait=0.0, capacity=1000, observe=lambda size: None):  # type: ignore[no-untyped-def]
    return Batcher(answer, size=size, wait=wait, capacity=capacity, observe=observe)


@settings(max_examples=25)
@given(st.lists(st.integers(), max_size=60), st.integers(1, 9))
def test_each_question_gets_its_own_answer_whatever_the_batches(questions: list[int], size: int) -> None:
    sizes: list[int] = []
    batcher = _batcher(lambda batch: [3 * q for q in batch], size=size, observe=sizes.append)
    with ThreadPoolExecutor(4) as clients:
        futures = list(clients.map(batcher.submit, questions))
    assert [future.result(5) for future in futures] == [3 * q for q in questions]
    batcher.close()
    assert sum(sizes) == len(questions)
    assert all(1 <= s <= size for s in sizes)


def test_what_arrives_during_a_batch_is_the_next_batch() -> None:
    started, go, seen = Event(), Event(), []

    def answer(batch: list[int]) -> list[int]:
        seen.append(list(batch))
        started.set()
        go.wait(5)
        return batch

    batcher = _batcher(answer, size=4)
    futures = [batcher.submit(0)]
    started.wait(5)
    futures += [batcher.submit(i) for i in range(1, 7)]
    go.set()
    wait(futures, 5)
    batcher.close()
    assert seen == [[0], [1, 2, 3, 4], [5, 6]]


def test_a_question_waits_for_company_but_not_for_long() -> None:
    sizes: list[int] = []
    batcher = _batcher(lambda batch: batch, size=3, wait=30.0, observe=sizes.append)
    futures = [batcher.submit(i) for i in range(3)]  # full: answered at once, long before the wait is over
    assert [future.result(5) for future in futures] == [0, 1, 2]
    assert sizes == [3]
    batcher.close()


def test_a_fault_reaches_only_the_question_that_caused_it() -> None:
    def answer(batch: list[int]) -> list[float]:
        return [1 / q for q in batch]

    batcher = _batcher(answer, size=5, wait=0.2)
    futures = [batcher.submit(q) for q in (1, 2, 0, 4)]
    assert [futures[i].result(5) for i in (0, 1, 3)] == [1, 0.5, 0.25]
    with pytest.raises(ZeroDivisionError):
        futures[2].result(5)
    assert batcher.submit(5).result(5) == 0.2  # and the thread goes on
    batcher.close()


def test_a_full_queue_refuses_instead_of_growing() -> None:
    started, go = Event(), Event()

    def answer(batch: list[int]) -> list[int]:
        started.set()
        go.wait(5)
        return batch

    batcher = _batcher(answer, size=1, capacity=2)
    first = batcher.submit(0)
    started.wait(5)
    rest = [batcher.submit(1), batcher.submit(2)]
    assert batcher.waiting() == 2
    with pytest.raises(Busy):
        batcher.submit(3)
    go.set()
    assert [future.result(5) for future in [first, *rest]] == [0, 1, 2]
    batcher.close()


def test_closing_answers_what_waits_and_cancelled_questions_cost_nothing() -> None:
    started, go, seen = Event(), Event(), []

    def answer(batch: list[int]) -> list[int]:
        started.set()
        go.wait(5)
        seen.extend(batch)
        return batch

    batcher = _batcher(answer, size=2)
    futures = [batcher.submit(0)]
    started.wait(5)
    futures += [batcher.submit(i) for i in range(1, 6)]
    assert futures[3].cancel()
    go.set()
    batcher.close()
    assert seen == [0, 1, 2, 4, 5]
    assert [f.result(0) for f in futures if not f.cancelled()] == seen


@settings(max_examples=50)
@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 12))
def test_no_pass_is_heavier_than_its_size_by_more_than_its_last_question(weights: list[int], size: int) -> None:
    passes: list[list[int]] = []
    go = Event()

    def answer(batch: list[int]) -> list[int]:
        go.wait(5)
        passes.append(list(batch))
        return batch

    batcher = Batcher(answer, weight=lambda q: q, size=size, wait=0.0, capacity=100)
    futures = [batcher.submit(q) for q in weights]
    go.set()
    assert [future.result(5) for future in futures] == weights
    batcher.close()
    parts = list(batcher.slices(weights))
    assert [weight for part in parts for weight in part] == weights
    for part in passes + parts:
        assert sum(part[:-1]) < size
    assert all(sum(part) >= size for part in parts[:-1])


def test_an_answer_that_is_an_error_is_its_own_questions_and_costs_no_pass() -> None:
    passes: list[list[int]] = []

    def answer(batch: list[int]) -> list[int | Exception]:
        passes.append(list(batch))
        return [q if q % 2 else KeyError(q) for q in batch]

    batcher = _batcher(answer, size=4, wait=5.0)
    futures = [batcher.submit(q) for q in range(4)]
    assert [type(future.exception(5)) for future in futures[::2]] == [KeyError, KeyError]
    assert [future.result(5) for future in futures[1::2]] == [1, 3]
    assert passes == [[0, 1, 2, 3]]
    batcher.close()
