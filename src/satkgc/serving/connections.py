"""Connections that may not be held for nothing: uvicorn waits for ever for a request's head, and takes any number."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from satkgc.serving.settings import HEADER_SECONDS, MAX_CONNECTIONS, SPARE_FILES, WRITE_SECONDS

_BODY = json.dumps({"error": "too many connections; ask again in a moment"}).encode()
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)


class Connection(H11Protocol):
    """One that is closed where a request's head, or the reading of an answer, takes too long.

    Where all that may be open are, the one that has been idle longest makes room for a new one; where all are being
    answered, the new one gets a 503.
    """

    most = MAX_CONNECTIONS
    header_seconds: float = HEADER_SECONDS
    write_seconds: float = WRITE_SECONDS
    _since = 0.0
    _head: asyncio.TimerHandle | None = None
    _write: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, if need be in the place of an idle one."""
        super().connection_made(transport)
        self._since = time.monotonic()
        if len(self.connections) > self.most:
            idle = [c for c in self.connections if isinstance(c, Connection) and c is not self and not c.busy]
            if not idle:
                transport.write(_FULL)
                transport.close()
                return
            oldest = min(idle, key=lambda connection: connection._since)
            oldest.transport.abort()
            self.connections.discard(oldest)  # which it would leave only when the loop comes to it
        self._expect_head()

    @property
    def busy(self) -> bool:
        """Whether a request has arrived, its head at least, that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Pass it on; until a head is whole, the time runs."""
        super().data_received(data)
        if self.busy:
            _cancel(self._head)
            self._head, self._since = None, time.monotonic()
        elif self._head is None:
            self._expect_head()

    def on_response_complete(self) -> None:
        """Where it was answered before its body was there, the time for the next head runs at once."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.conn.their_state is h11.SEND_BODY:
            self._expect_head()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        super().pause_writing()
        _cancel(self._write)
        self._write = self.loop.call_later(self.write_seconds, self._reset)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        _cancel(self._write)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        _cancel(self._head)
        _cancel(self._write)
        super().connection_lost(exc)

    def _reset(self) -> None:
        """Close it at once: else the kernel keeps megabytes of answers for a client that never reads them."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _expect_head(self) -> None:
        self._head = self.loop.call_later(self.header_seconds, self.transport.abort)


def connection_class() -> type[Connection]:
    """Connections, no more of them than there are file descriptors for."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:
        return Connection
    most = max(16, min(MAX_CONNECTIONS, getrlimit(RLIMIT_NOFILE)[0] - SPARE_FILES))
    return type("Connection", (Connection,), {"most": most})


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
