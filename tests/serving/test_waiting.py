"""Who waits for whom: clients that go away, large batches beside small questions, a stop that cannot wait."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest
from running import CLIENT, running, until

from satkgc.completion import Answer, Question
from satkgc.serving import service
from satkgc.serving.app import create_app


class Held:
    """Answers with nothing, holds its first pass back until it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()
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
