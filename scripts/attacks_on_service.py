"""Clients that hold connections and bodies: the part of scripts/attacks.py that needs a service."""

from __future__ import annotations

import http.client
import re
import resource
import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FILES = 256  # file descriptors that the service may have


def attack_service(a: Any) -> None:
    """A service with few file descriptors: half-open connections, slow bodies, and how long an answer takes."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))  # noqa: E731
    command = [sys.executable, "-m", "satkgc", "serve", "run", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=a.room, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit
    )
    try:
        assert server.stdout is not None
        port = int(re.findall(r":(\d+)", server.stdout.readline())[0])
        while health(port)[0] != 200:
            time.sleep(0.5)
        shown = f"satkgc serve run, {FILES} file descriptors"
        half = hold(port, 1000, b"GET /health HTTP/1.1\r\nHost: x")
        status, seconds = health(port)
        said = f"1,000 half-open connections: /health {status} in {1000 * seconds:.0f} ms"
        time.sleep(25)
        left = still_open(half)
        a.add(
            "service: half-open connections", shown, f"{said}; after 25 s {left} are open", status == 200 and left == 0
        )
        before = resident(server.pid)
        head = b"POST /api/v1/complete HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: 1048576\r\n\r\n"
        slow = hold(port, 800, head + b" " * 1_000_000)
        status, seconds = health(port)
        grown = resident(server.pid) - before
        said = f"800 slow bodies of 1 MB: {grown:+.0f} MB, /health {status} in {1000 * seconds:.0f} ms"
        time.sleep(65)
        left = still_open(slow)
        a.add(
            "service: slow bodies",
            shown,
            f"{said}; after 65 s {left} are open",
            status == 200 and grown < 200 and left == 0,
        )
        connection, times = http.client.HTTPConnection("127.0.0.1", port, timeout=600), []
        for _ in range(200):
            began = time.perf_counter()
            connection.request("GET", "/health")
            connection.getresponse().read()
            times.append(1000 * (time.perf_counter() - began))
        median = statistics.median(times)
        a.add(
            "service: TCP_NODELAY",
            shown,
            f"200 times /health on one connection: {median:.1f} ms at the median",
            median < 40,
        )
    finally:
        server.terminate()
        server.wait(600)


def hold(port: int, count: int, sent: bytes) -> list[socket.socket]:
    """Connections that have sent something and then nothing; those that the service does not take count too."""
    held = []
    for _ in range(count):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", port))
        held.append(connection)
    rest = dict.fromkeys(held, sent)
    until = time.monotonic() + 15
    while rest and time.monotonic() < until:
        poll = select.poll()
        by_number = {connection.fileno(): connection for connection in rest}
        for number in by_number:
            poll.register(number, select.POLLOUT)
        for number, _ in poll.poll(500):
            connection = by_number[number]
            try:
                rest[connection] = rest[connection][connection.send(rest[connection]) :]
            except OSError:
                rest[connection] = b""
            if not rest[connection]:
                del rest[connection]
    return held


def still_open(held: list[socket.socket]) -> int:
    """How many the service has not closed."""
    count = 0
    for connection in held:
        try:
            while data := connection.recv(65536):
                del data
        except BlockingIOError:
            count += 1
        except OSError:
            pass
        connection.close()
    return count


def health(port: int) -> tuple[int, float]:
    """Its status and how long it took."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", "/health")
    status = connection.getresponse().status
    connection.close()
    return status, time.perf_counter() - began


def resident(pid: int) -> float:
    """Memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
