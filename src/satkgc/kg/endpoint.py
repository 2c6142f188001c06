"""A SPARQL endpoint: queries and updates over HTTP, tried again where that may help, one line where it does not."""

from __future__ import annotations

import base64
import http.client
import json
import logging
import re
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from satkgc.errors import SatkgcError
from satkgc.version import __version__

log = logging.getLogger("satkgc.kg")

SCHEME = "sparql:"
IRI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s\x00-\x20<>\"{}|^`\\]+", re.IGNORECASE)
PATIENCE = 6  # attempts in a row
TIMEOUT = 120.0  # seconds without a byte; public endpoints give a query 60
LONGEST_WAIT = 60.0  # seconds between two attempts, whatever the server asks for
MOST_ANSWER = 512 << 20  # bytes
PASSING = (408, 425, 429, 500, 502, 503, 504)  # answers that may be others a moment later
RDF = "application/n-triples, text/turtle;q=0.5, text/plain;q=0.1"  # the last: how older servers call N-Triples
TABLE = "application/sparql-results+json"


def is_endpoint(source: object) -> bool:
    """Whether a source is a SPARQL endpoint: `sparql:https://…`."""
    return isinstance(source, str) and source.lower().startswith(SCHEME)


def check_iri(iri: str, what: str) -> str:
    """An IRI that may stand in a query; anything else could be more than a name."""
    if not IRI.fullmatch(iri):
        raise SatkgcError(f"{what} {iri!r} is no IRI", remedy="write it in full, as https://example.org/graph")
    return iri


@dataclass(frozen=True)
class Endpoint:
    """Where to send queries and updates. The URL in full, which may hold a password, is never shown."""

    url: str = field(repr=False)
    shown: str  # without user, password, and what stands behind a question mark
    authorization: str | None = field(repr=False, default=None)
    pause: float = 1.0  # seconds before the second attempt; twice as long before each further one

    @classmethod
    def of(cls, source: str) -> Endpoint:
        """From `sparql:https://user:password@host/path`."""
        try:
            parts = urlsplit(source[len(SCHEME) :])
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if (
            not is_endpoint(source)
            or host is None
            or parts.scheme not in ("http", "https")
            or re.search(r"[\x00-\x20]", source)
        ):
            raise SatkgcError("this is no URL of a SPARQL endpoint", remedy="write sparql:https://example.org/sparql")
        host = f"[{host}]" if ":" in host else host
        place = host if port is None else f"{host}:{port}"
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        basic = "Basic " + base64.b64encode(login.encode()).decode()
        return cls(
            urlunsplit((parts.scheme, place, parts.path or "/", parts.query, "")),
            urlunsplit((parts.scheme, place, parts.path, "", "")),
            basic if parts.username is not None else None,
        )

    def construct(self, query: str) -> tuple[bytes, str]:
        """RDF that a query makes, and its media type."""
        return self._send({"query": query}, RDF)

    def select(self, query: str) -> list[dict[str, str]]:
        """The rows of a query, as the values of their variables."""
        data, kind = self._send({"query": query}, TABLE)
        try:
            rows: list[dict[str, Any]] = json.loads(data)["results"]["bindings"]
            return [{name: str(cell["value"]) for name, cell in row.items()} for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.no_answer(kind) from None

    def update(self, text: str) -> None:
        """Change what the endpoint holds. It may be sent twice: what changes things only once is safe."""
        self._send({"update": text}, "*/*")

    def no_answer(self, kind: str) -> SatkgcError:
        """What to say of an answer that is something else."""
        what = "HTML" if "html" in kind else (kind or "something without a type")
        remedy = "check the URL: endpoints often end in /sparql or /query"
        return SatkgcError(f"this is no SPARQL endpoint: it answered {what}", where=self.shown, remedy=remedy)

    def _send(self, form: dict[str, str], accept: str) -> tuple[bytes, str]:
        failure: Exception | None = None
        for attempt in range(PATIENCE):
            if failure is not None:
                time.sleep(_wait(failure, self.pause * 2 ** (attempt - 1)))
            try:
                return self._request(form, accept)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in PASSING:
                        raise self._refusal(error) from None
                failure = error
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                if isinstance(getattr(error, "reason", None), socket.gaierror):
                    what, remedy = f"there is no such host ({_said(error)})", "check the URL, and the network"
                    raise SatkgcError(what, where=self.shown, remedy=remedy) from None
                failure = error
                if "timed out" in _said(error) and attempt + 1 < PATIENCE:  # minutes have passed: say why
                    text = "%s: nothing came for %g s; trying again (%d of %d)"
                    log.warning(text, self.shown, TIMEOUT, attempt + 2, PATIENCE)
        what, remedy = _said(failure), "check the URL, or run the same command again later: it goes on from here"
        if "timed out" in what and "query" in form:
            remedy = "run the same command again later, it goes on from here; or ask for less, with --page-size"
        raise SatkgcError(f"no answer in {PATIENCE} attempts: {what}", where=self.shown, remedy=remedy) from None

    def _request(self, form: dict[str, str], accept: str) -> tuple[bytes, str]:
        headers = {
            "Accept": accept,
            "User-Agent": f"satkgc/{__version__}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        request = urllib.request.Request(self.url, urlencode(form).encode(), headers)
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            data = response.read(MOST_ANSWER + 1)
            if response.length and len(data) <= MOST_ANSWER:
                raise ConnectionError("the connection was cut")  # read() with a size does not tell
            kind = response.headers.get("Content-Type") or ""
        if len(data) > MOST_ANSWER:
            what = f"an answer of more than {MOST_ANSWER >> 20:,} MiB"
            raise SatkgcError(what, where=self.shown, remedy="ask for less at once with --page-size")
        return data, kind.partition(";")[0].strip().lower()

    def _refusal(self, error: urllib.error.HTTPError) -> SatkgcError:
        if error.code in (401, 403):
            remedy = "give a user who may do this: sparql:https://USER:PASSWORD@host/path"
        elif 300 <= error.code < 400:
            place = urlsplit(error.headers.get("Location") or "")
            other = urlunsplit((place.scheme, place.netloc.rpartition("@")[2], place.path, "", ""))
            remedy = f"if you trust it, give the address that it names: {other}"
        elif error.code == 400:
            what = f"the endpoint does not take this: {_first_line(error) or _said(error)}"
            return SatkgcError(what, where=self.shown, remedy="see whether it can do it by hand")
        else:
            remedy = "check the URL: endpoints often end in /sparql or /query"
        return SatkgcError(f"the endpoint answered {_said(error)}", where=self.shown, remedy=remedy)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another place would get the password, and a POST that has become a GET."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _said(error: Exception | None) -> str:
    """What happened, without the address."""
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    text = getattr(reason, "strerror", None) or str(reason)
    return " ".join(str(text).split()) or type(error).__name__


def _first_line(error: urllib.error.HTTPError) -> str:
    """What a server writes about a query that it does not take; of a web page nothing."""
    try:
        text = error.read(4096).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        return ""
    return "" if text.startswith("<") else text.partition("\n")[0][:200].strip()


def _wait(failure: Exception, seconds: float) -> float:
    """How long to wait: as the server asks, else longer each time."""
    asked = failure.headers.get("Retry-After") if isinstance(failure, urllib.error.HTTPError) else None
    return min(LONGEST_WAIT, float(asked) if asked and asked.isdecimal() else seconds)
