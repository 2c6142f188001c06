"""What stands before every request: whose it is, how large it may be, which headers its answer carries."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satkgc.serving.metrics import Metrics
from satkgc.serving.settings import LOOPBACK, MAX_BODY, Settings

_log = logging.getLogger("uvicorn.error")  # its lines are the ones that are seen
_HEADERS = [
    # No inline script or style, nothing from elsewhere: text of the graph that reaches the page can never run.
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Gate:
    """An ASGI layer: host, token, size, headers, and the count of what was answered."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._names = LOOPBACK | {name.lower() for name in settings.names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # The page's files are asked for again each time: after an upgrade nobody runs half of the old ones.
                cache = b"no-store" if scope["path"].startswith(("/api/", "/health", "/metrics")) else b"no-cache"
                message = {**message, "headers": [*message["headers"], *_HEADERS, (b"cache-control", cache)]}
            await send(message)

        try:
            headers = dict(scope["headers"])
            if refusal := self._refusal(scope["path"], headers):
                await _error(answered, *refusal)
            elif (body := await _body(headers, receive)) is None:
                await _error(answered, 413, f"the body is larger than {MAX_BODY} bytes")
            else:
                await self._app(scope, _replay(body, receive), answered)
        except asyncio.CancelledError:
            # A stop was asked for, and what still runs after the time it had to finish is cancelled.
            if not status:
                await _error(answered, 503, "the service is stopping; ask again in a moment")
        except Exception:
            if status:
                raise
            _log.exception("a fault in answering %s", scope["path"])
            await _error(answered, 500, "internal error")
        finally:
            # The route's template, not the path: ids in paths would make a label of every one.
            route = getattr(scope.get("route"), "path", None) or "other"
            self._metrics.request(scope["method"], route, status or 500, time.perf_counter() - began)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        token = self._settings.token
        if token is None:
            # A page elsewhere can point its own name at 127.0.0.1 and read what is served there: its name tells.
            if self._settings.local_only and _hostname(headers.get(b"host", b"")) not in self._names:
                return 421, "this service does not answer to this name; start it with --allow-host NAME or with a token"
        elif path.startswith("/api/") or path == "/metrics":
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            same = hmac.compare_digest(given.strip(), token.encode())  # constant time: the clock tells nothing
            if scheme.lower() != b"bearer" or not same:
                return 401, "a valid token is needed: send the header 'Authorization: Bearer TOKEN'"
        return None


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
    """The whole body, or None when it is too large, whatever its Content-Length says."""
    length = headers.get(b"content-length", b"0")
    if len(length) > 15 or (length.isdigit() and int(length) > MAX_BODY):
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _error(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _hostname(host: bytes) -> str:
    """The Host header without its port; IPv6 stands in brackets."""
    name = host.decode("latin-1").lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
