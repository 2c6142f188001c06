"""A real uvicorn on a free loopback port, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from satkgc.serving.connections import Connection

CLIENT = httpx.Client(timeout=30)  # one for all: each new one reads the system's certificates again


@contextmanager
def running(app: FastAPI, ready: bool = True, drain: int = 5, http: type = Connection, port: int = 0) -> Iterator[str]:
    """Serve an application; gives its address, waits until it is ready where asked, and stops it at the end."""
    config = uvicorn.Config(
        app, "127.0.0.1", port, log_level="error", timeout_keep_alive=75, timeout_graceful_shutdown=drain, http=http
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        if ready:
            until(lambda: CLIENT.get(f"{url}/health").status_code == 200)
        yield url
    finally:
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive()


def until(condition, seconds: float = 60) -> None:  # type: ignore[no-untyped-def]
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
