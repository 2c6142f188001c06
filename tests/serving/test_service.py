"""The model behind the API: micro-batches, loading, clients that go away, a stop that cannot wait."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import CLIENT, running, until

from satkgc.completion import Answer, Question
from satkgc.errors import SatkgcError
from satkgc.serving import service
from satkgc.serving.app import create_app
from satkgc.serving.service import Batcher, Busy

# The queue between requests and the model


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
    parts = list(batcher.split(weights))
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


# What the service says before it can answer


def test_health_says_loading_until_the_model_is_there_and_the_api_says_why() -> None:
    go = Event()

    class Nothing:
        """Stands for a completer while only its arrival matters."""

        def texts_read(self, question):  # type: ignore[no-untyped-def]
            return 1

        def ask_each(self, questions):  # type: ignore[no-untyped-def]
            return [[] for _ in questions]

    def load():  # type: ignore[no-untyped-def]
        go.wait(30)
        return Nothing()

    with running(create_app(load), ready=False) as url:
        health = CLIENT.get(f"{url}/health")
        assert (health.status_code, health.json()) == (503, {"status": "loading"})
        answer = CLIENT.post(f"{url}/api/v1/complete", json={"head": "a", "relation": "b"})
        assert (answer.status_code, answer.json()) == (503, {"error": "the model is still loading"})
        assert CLIENT.get(f"{url}/").status_code == 200  # the page is there and shows that it waits
        assert "satkgc_ready 0.0" in CLIENT.get(f"{url}/metrics").text
        go.set()
        until(lambda: CLIENT.get(f"{url}/health").json() == {"status": "ready"})
        assert CLIENT.post(f"{url}/api/v1/complete", json={"head": "a", "relation": "b"}).json()["answers"] == []
        assert "satkgc_ready 1.0" in CLIENT.get(f"{url}/metrics").text


def test_a_model_that_cannot_be_loaded_is_told_and_hides_its_paths() -> None:
    failed = Event()

    def load():  # type: ignore[no-untyped-def]
        raise SatkgcError("broken", where="/secret/run")

    app = create_app(load)
    app.state.service.on_failure = failed.set
    with running(app, ready=False) as url:
        assert failed.wait(30)
        health = CLIENT.get(f"{url}/health")
        assert (health.status_code, health.json()) == (503, {"status": "failed"})
        answer = CLIENT.get(f"{url}/api/v1/relations")
        assert answer.status_code == 503
        assert "secret" not in answer.text


# Clients that go away, large batches beside small questions, a stop that cannot wait


class Held:
    """Answers with nothing, holds its first pass back until it may go on, and keeps its questions."""

    def __init__(self) -> None:
        self.began, self.go = Event(), Event()
        self.passes: list[list[str]] = []

    def texts_read(self, question: Question) -> int:
        return 20 if question.relation is None else 1

    def ask_each(self, questions: list[Question]) -> list[list[Answer]]:
        self.passes.append([str(question.head) for question in questions])
        self.began.set()
        self.go.wait(30)
        return [[] for _ in questions]


def asks(name: str, count: int) -> dict[str, list[dict[str, str]]]:
    return {"questions": [{"head": name, "relation": "r"}] * count}


def send(url: str, path: str, body: object) -> socket.socket:
    """A request whose answer is not waited for."""
    where, content = urlsplit(url), json.dumps(body)
    line = socket.create_connection((where.hostname, where.port), 10)
    head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    line.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
    return line


def metric(url: str, name: str) -> float:
    lines = CLIENT.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def gone(url: str, path: str) -> bool:
    return metric(url, f'satkgc_requests_total{{method="POST",route="/api/v1/{path}",status="499"}}') == 1


def test_what_a_client_that_went_away_has_asked_is_not_computed() -> None:
    held = Held()
    with running(create_app(lambda: held)) as url, ThreadPoolExecutor() as clients:
        many = send(url, "batch", asks("many", 100))
        assert held.began.wait(30)
        one = send(url, "complete", {"head": "one", "relation": "r"})
        until(lambda: metric(url, "satkgc_waiting_questions") == 1)
        for line in (many, one):
            line.close()
        until(lambda: gone(url, "batch") and gone(url, "complete"))
        last = clients.submit(CLIENT.post, f"{url}/api/v1/complete", json={"head": "last", "relation": "r"})
        held.go.set()
        assert last.result(30).status_code == 200
    asked = [name for one_pass in held.passes for name in one_pass]
    assert asked.count("many") == 32  # the pass that had begun
    assert asked[32:] == ["last"]


@pytest.mark.parametrize(
    ("body", "first"), [(asks("many", 100), 32), ({"questions": [{"head": "many", "tail": "t"}] * 10}, 2)]
)
def test_a_large_batch_lets_others_in_between_and_much_work_sooner(body, first: int) -> None:  # type: ignore[no-untyped-def]
    held = Held()
    with running(create_app(lambda: held)) as url, ThreadPoolExecutor() as clients:
        many = clients.submit(CLIENT.post, f"{url}/api/v1/batch", json=body)
        assert held.began.wait(30)
        one = clients.submit(CLIENT.post, f"{url}/api/v1/complete", json={"head": "one", "relation": "r"})
        until(lambda: metric(url, "satkgc_waiting_questions") >= 1)
        held.go.set()
        assert one.result(30).status_code == 200
        assert len(many.result(30).json()["results"]) == len(body["questions"])
    assert held.passes[0] == ["many"] * first
    assert "one" in held.passes[1]


def test_what_did_not_fit_into_the_queue_is_refused_as_a_whole(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(service, "MAX_WAITING", 8)
    held = Held()
    with running(create_app(lambda: held)) as url, ThreadPoolExecutor() as clients:
        first = clients.submit(CLIENT.post, f"{url}/api/v1/complete", json={"head": "one", "relation": "r"})
        assert held.began.wait(30)
        assert CLIENT.post(f"{url}/api/v1/batch", json=asks("many", 9)).status_code == 503
        held.go.set()
        assert first.result(30).status_code == 200
    assert held.passes == [["one"]]


@pytest.mark.parametrize("path", ["complete", "batch"])
def test_what_is_not_done_when_a_stop_cannot_wait_longer_is_told_to_come_back(path: str, capfd) -> None:  # type: ignore[no-untyped-def]
    held, answers = Held(), Future[httpx.Response]()
    body = asks("many", 100) if path == "batch" else {"head": "one", "relation": "r"}

    def ask(url: str) -> None:
        answers.set_result(CLIENT.post(f"{url}/api/v1/{path}", json=body))
        held.go.set()

    with running(create_app(lambda: held), drain=1) as url:
        threading.Thread(target=ask, args=[url]).start()
        assert held.began.wait(30)
    answer = answers.result(30)
    assert (answer.status_code, list(answer.json())) == (503, ["error"])
    assert int(answer.headers["retry-after"]) > 0
    assert "Traceback" not in capfd.readouterr().err
