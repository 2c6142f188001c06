"""Clients that hold what they do not use: connections, bodies, answers. Everybody else is answered all the while."""

from __future__ import annotations

import json
import resource
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
from running import CLIENT, running, until

from satkgc.serving import gate
from satkgc.serving.app import create_app
from satkgc.serving.connections import Connection, connection_class

ASK = json.dumps({"head": "dog", "relation": "hypernym"}).encode()


def connect(url: str, first: bytes = b"") -> socket.socket:
    address = urlsplit(url)
    connection = socket.create_connection((address.hostname, address.port), 30)
    connection.sendall(first)
    return connection


def closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it; it has 30 s to do so."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def post(body: bytes, length: int | None = None) -> bytes:
    head = f"POST /api/v1/complete HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length or len(body)}\r\n"
    return head.encode() + b"content-type: application/json\r\n\r\n" + body


@pytest.mark.parametrize("first", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: y"])
def test_a_head_that_does_not_come_is_not_waited_for(completer, first: bytes) -> None:  # type: ignore[no-untyped-def]
    quick = type("Quick", (Connection,), {"header_seconds": 0.3})
    with running(create_app(lambda: completer), http=quick) as url, connect(url, first) as half:
        assert closed(half)
        with connect(url, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n") as second:  # after an answer, too
            assert second.recv(1 << 16).startswith(b"HTTP/1.1 200")
            second.sendall(first or b"GET")
            assert closed(second)


def test_an_idle_connection_is_kept_and_a_slow_answer_is_not_cut(completer) -> None:  # type: ignore[no-untyped-def]
    class Slow:
        texts_read = completer.texts_read

        def ask_each(self, questions):  # type: ignore[no-untyped-def]
            time.sleep(0.6)
            return completer.ask_each(questions)

    quick = type("Quick", (Connection,), {"header_seconds": 0.2})
    with running(create_app(Slow), http=quick) as url, httpx.Client(base_url=url, timeout=30) as client:
        ports = set()
        for _ in range(2):
            with client.stream(
                "POST", "/api/v1/complete", content=ASK, headers={"content-type": "application/json"}
            ) as answer:
                ports.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
                assert answer.status_code == 200
                assert len(answer.read()) > 100
            time.sleep(0.5)
        assert len(ports) == 1


def test_idle_connections_make_room_and_busy_ones_do_not(completer) -> None:  # type: ignore[no-untyped-def]
    few = type("Few", (Connection,), {"most": 8, "header_seconds": 300.0})  # or the clock would close them, too
    with running(create_app(lambda: completer), http=few) as url, ExitStack() as stack:
        half = [stack.enter_context(connect(url, b"GET /he")) for _ in range(30)]
        for _ in range(5):
            with connect(url, b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n") as good:
                assert good.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert all(closed(connection) for connection in half[:20])
        slow: list[socket.socket] = []

        def full() -> bool:
            """Take one more whose head is whole and whose body does not come, until there is no room for it."""
            slow.append(stack.enter_context(connect(url, post(b"{", 100))))
            slow[-1].settimeout(0.2)
            try:
                return slow[-1].recv(1 << 16).startswith(b"HTTP/1.1 503")
            except TimeoutError:
                return False

        until(full)
        assert len(slow) >= 8


def test_there_are_no_more_connections_than_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert connection_class().most == 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_body_that_does_not_come_is_not_waited_for(completer, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.3)
    with running(create_app(lambda: completer)) as url, connect(url, post(b"{", 100)) as slow:
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")
        assert closed(slow)


def test_a_body_that_does_not_come_after_its_answer_is_not_waited_for(completer) -> None:  # type: ignore[no-untyped-def]
    quick = type("Quick", (Connection,), {"header_seconds": 0.3})
    with running(create_app(lambda: completer), http=quick) as url:
        with connect(url, post(b"{", gate.MAX_BODY + 1)) as early:
            assert early.recv(1 << 16).startswith(b"HTTP/1.1 413")
            assert closed(early)
        with connect(url, post(b"{", gate.MAX_BODY + 1)) as late:  # who sends the body after all is answered again
            late.sendall(b" " * gate.MAX_BODY + b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answers = b""
            while answers.count(b"HTTP/1.1 ") < 2:
                answers += (more := late.recv(1 << 16))
                assert more, answers
            assert b"HTTP/1.1 413" in answers
            assert b"HTTP/1.1 200" in answers


def test_bodies_are_bounded_together_and_small_ones_always_get_in(completer, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(gate, "MAX_BODIES", 1 << 20)
    large = b" " * 300_000
    with running(create_app(lambda: completer)) as url, ExitStack() as stack:
        slow = [stack.enter_context(connect(url, post(large, 1 << 20))) for _ in range(12)]
        slow[-1].settimeout(30)
        with connect(url, post(large, 1 << 20)) as refused:
            assert refused.recv(1 << 16).startswith(b"HTTP/1.1 503")
        answer = CLIENT.post(f"{url}/api/v1/complete", content=ASK, headers={"content-type": "application/json"})
        assert answer.status_code == 200
        for connection in slow:
            connection.close()
        padded = ASK + b" " * 900_000  # what was held is let go

        def fits() -> bool:
            headers = {"content-type": "application/json"}
            return CLIENT.post(f"{url}/api/v1/complete", content=padded, headers=headers).status_code == 200

        until(fits)


def test_a_client_that_does_not_read_is_not_waited_for(completer) -> None:  # type: ignore[no-untyped-def]
    quick = type("Quick", (Connection,), {"write_seconds": 0.3})
    with running(create_app(lambda: completer), http=quick) as url, connect(url) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        request = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"

        def send() -> bool:
            try:
                deaf.sendall(request * 50)
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False

        until(send)
