"""A real HTTP server that serves files in ranges, and cuts connections when told to."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Site:
    """What is served, how it misbehaves, and what it was asked."""

    files: dict[str, bytes]
    url: str = ""
    cut_after: int | None = None  # bytes a connection brings at most
    ranges: bool = True
    marks: bool = True  # whether it sends an ETag
    lengths: bool = True  # whether it says how long a file is
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def etag(self, path: str) -> str:
        return f'"{hash(self.files[path])}"'


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, self.headers["Range"]))
            data = site.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            start = 0
            unchanged = self.headers["If-Range"] in (None, site.etag(self.path))
            if site.ranges and self.headers["Range"] and unchanged:
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                if start >= len(data):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            if site.marks:
                self.send_header("ETag", site.etag(self.path))
            if site.lengths:
                self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:][: site.cut_after])

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
