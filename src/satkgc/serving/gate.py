"""What every request passes first: host name, token, size of the body; and the headers of every answer."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satkgc.serving.metrics import ServiceMetrics
from satkgc.serving.settings import (
    BODY_SECONDS,
    DECISIONS_PATH,
    FREE_BODY,
    LOOPBACK,
    MAX_BODIES,
    MAX_BODY,
    MCP_PATH,
    ServiceSettings,
)

_GUARDED = ("/api/", "/metrics", MCP_PATH)  # where a token is asked for
_NOT_KEPT = (*_GUARDED, "/health")  # by a cache
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


class _Refused(Exception):
    """A body that is not taken: status and message."""


_TOO_LARGE = _Refused(413, f"the body is larger than {MAX_BODY} bytes")


class Gate:
    """ASGI middleware: host, token, size, headers, and the count of requests."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: ServiceMetrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._held = 0  # bytes of bodies, of all requests
        self._names = LOOPBACK | {name.lower() for name in settings.allow_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, body = time.perf_counter(), 0, bytearray()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # The browser checks the page's files each time: after an upgrade nobody runs half of the old ones.
                cache = b"no-store" if scope["path"].startswith(_NOT_KEPT) else b"no-cache"
                message = {**message, "headers": [*message["headers"], *_HEADERS, (b"cache-control", cache)]}
            await send(message)

        try:
            headers = dict(scope["headers"])
            if refusal := self._refusal(scope["method"], scope["path"], headers):
                await _error(send_with_headers, *refusal)
            else:
                await self._fill(body, headers, receive)
                await self._app(scope, _replay(bytes(body), receive), send_with_headers)
        except _Refused as refused:
            await _error(send_with_headers, *refused.args)
        except asyncio.CancelledError:
            # The service is stopping, and what still runs after the time to finish is cancelled.
            if not status:
                await _error(send_with_headers, 503, "the service is stopping; ask again in a moment")
        except Exception:
            if status:
                raise
            _log.exception("error while answering %s", scope["path"])
            await _error(send_with_headers, 500, "internal error")
        finally:
            self._held -= _counted(body)
            # The route's template, not the path: ids in paths would make a label of every one.
            route = getattr(scope.get("route"), "path", None) or "other"
            self._metrics.request(scope["method"], route, status or 500, time.perf_counter() - start)

    async def _fill(self, body: bytearray, headers: dict[bytes, bytes], receive: Receive) -> None:
        """Take in the whole body, of a size, in a time and beside the others' that are bearable."""
        length = headers.get(b"content-length", b"0")
        if len(length) > 15 or (length.isdigit() and int(length) > MAX_BODY):
            raise _TOO_LARGE
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while (message := await receive())["type"] == "http.request":
                    before = _counted(body)
                    body += message.get("body", b"")
                    self._held += _counted(body) - before
                    if len(body) > MAX_BODY:
                        raise _TOO_LARGE
                    if self._held > MAX_BODIES:
                        raise _Refused(503, "too many large requests at once; ask again in a moment")
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            raise _Refused(408, f"the body took longer than {BODY_SECONDS:.0f} s") from None

    def _refusal(self, method: str, path: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        token = self._settings.token
        if token is None:
            # DNS rebinding: a page elsewhere can point its own name at 127.0.0.1 and read what is served there.
            if self._settings.local_only and _hostname(headers.get(b"host", b"")) not in self._names:
                return 421, "this service does not answer to this host name; start it with --allow-host NAME or a token"
        elif path.startswith(_GUARDED):
            scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
            same = hmac.compare_digest(credentials.strip(), token.encode())  # in constant time: the clock tells nothing
            if scheme.lower() != b"bearer" or not same:
                return 401, "a valid token is needed: send the header 'Authorization: Bearer TOKEN'"
        if method == "POST" and path == DECISIONS_PATH and not _same_origin(headers):
            return 403, "a page from elsewhere cannot decide here"
        if "\0" in path:  # no file has such a name, and not every version of starlette says so
            return 404, "Not Found"
        return None


def _same_origin(headers: dict[bytes, bytes]) -> bool:
    """Whether a request is from this service's own page, or from no page at all."""
    # Browsers say it in the first header, where the address is https or this machine; else the second has to do.
    if (site := headers.get(b"sec-fetch-site")) is not None:
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is None or origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower()


def _counted(body: bytearray) -> int:
    return max(0, len(body) - FREE_BODY)


def _replay(body: bytes, receive: Receive) -> Receive:
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _error(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 408:
        headers.append((b"connection", b"close"))
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
