"""A real SPARQL endpoint over pyoxigraph, for queries and updates, that misbehaves when told to."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import pyoxigraph as ox


@dataclass
class Served:
    """What is served, how it misbehaves, and what it was asked."""

    store: ox.Store
    url: str = ""
    drop_every: int = 0  # of every so many requests one is cut: by turns before the answer, and in the middle of it
    html: bool = False
    delay: float = 0.0  # seconds before an answer
    cap: int = 10**9  # statements in an answer at most
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    meanwhile: Callable[[Served], None] = lambda served: None  # called before each answer
    login: str | None = None  # the header that is wanted
    requests: list[str] = field(default_factory=list)  # queries and updates
    dropped: int = 0

    @property
    def source(self) -> str:
        return f"sparql:{self.url}"

    def pages(self) -> list[str]:
        return [query for query in self.requests if "OFFSET" in query]

    def answer(self, form: dict[str, list[str]]) -> tuple[str, bytes]:
        if "update" in form:
            self.store.update(form["update"][0])
            return "text/plain", b""
        found = self.store.query(form["query"][0])
        if isinstance(found, ox.QueryTriples):
            lines = found.serialize(format=ox.RdfFormat.N_TRIPLES).splitlines(keepends=True)
            return "application/n-triples", b"".join(lines[: self.cap])
        return "application/sparql-results+json", found.serialize(format=ox.QueryResultsFormat.JSON)


@contextmanager
def endpoint(served: Served) -> Iterator[Served]:
    """Serves it at `served.url`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            served.requests.append(next(iter(form.values()))[0])
            number = len(served.requests)
            drop = served.drop_every and number % served.drop_every == 0
            served.dropped += bool(drop)
            served.meanwhile(served)
            time.sleep(served.delay)
            status = 401 if served.login and self.headers["Authorization"] != served.login else served.status
            kind, data = "text/html; charset=utf-8", b"<html><body>Welcome</body></html>"
            if status == 200 and not served.html:
                try:
                    kind, data = served.answer(form)
                except SyntaxError as error:
                    status, kind, data = 400, "text/plain", str(error).encode()
            if drop and served.dropped % 2:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **served.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # nobody waits any more
                self.wfile.write(data[: len(data) // 2] if drop else data)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}/sparql"
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def store(count: int, graph: str | None = None) -> ox.Store:
    """`count` statements: links of a ring of things, and a label for every tenth."""
    made = ox.Store()
    name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    label = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")

    def thing(number: int) -> ox.NamedNode:
        return ox.NamedNode(f"http://example.org/thing/{number}")

    labels = count // 10
    links = count - labels
    step = ox.NamedNode("http://example.org/next")
    made.bulk_extend(ox.Quad(thing(i), step, thing((i + 1) % links), name) for i in range(links))
    made.bulk_extend(ox.Quad(thing(i), label, ox.Literal(f"thing {i}", language="en"), name) for i in range(labels))
    return made
