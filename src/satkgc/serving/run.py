"""Run the service on a port until it is stopped."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from rich.console import Console
from starlette.applications import Starlette

from satkgc.errors import SatkgcError
from satkgc.serving.app import create_app
from satkgc.serving.connections import connection_class
from satkgc.serving.service import Service
from satkgc.serving.settings import LOOPBACK, ServiceSettings

if TYPE_CHECKING:
    from satkgc.completion import Completer

KEEP_ALIVE = 75  # seconds that an idle connection stays open: a page left alone for a moment need not reconnect
WAITING = 2048  # connections that the system holds until they are taken
AT_ONCE = 16  # taken before others are closed for them: asyncio takes as many as its backlog, and files would run out
M_ARENA_MAX = -8  # of glibc's mallopt
DRAIN = 30  # seconds that requests in flight have to finish after a signal to stop


def serve(run: Path, settings: ServiceSettings, *, device: str = "auto", open_page: bool = False) -> None:
    """Serve a run folder. SIGTERM and Ctrl-C stop it once the requests in flight are answered."""
    check_run(run)
    if settings.proposals is not None and not settings.proposals.is_file():
        remedy = f"make it with `satkgc propose {run} {settings.proposals}`"
        raise SatkgcError("no proposals here", where=settings.proposals, remedy=remedy)
    if settings.token is None and settings.host not in LOOPBACK:
        print("warning: no token is set: anyone who reaches this address can use it (see --token)", file=sys.stderr)

    def report(progress: str) -> None:
        app.state.service.progress = progress

    app = create_app(lambda: open_completer(run, device, report), settings, lambda: version_of(run))
    run_server(app, app.state.service, open_page=open_page)


def run_server(app: Starlette, service: Service, *, path: str = "/", open_page: bool = False) -> None:
    """Run an application over a service on its port until it is stopped, or its model could not be loaded."""
    settings = service.settings
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=settings.access_log,
        server_header=False,
        http=connection_class(),
        backlog=AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
    )
    if settings.access_log:
        logging.getLogger("uvicorn.access").setLevel(logging.INFO)
    server = _Server(config, path, open_page)

    def stop() -> None:
        server.should_exit = True

    service.on_failure = stop
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn handles them while it runs and raises them again when it has stopped: ignore the second one.
        signal.signal(number, signal.SIG_IGN)
    with _listen(settings) as listener:
        server.run([listener])
    end_service(service)


def end_service(service: Service) -> None:
    """Break off what still loads, and raise what kept the model from loading."""
    if service.loading:
        # A thread is still inside torch, which crashes if the interpreter ends around it.
        Console(stderr=True).show_cursor()  # a progress bar may have hidden it
        sys.stdout.flush()
        os._exit(0)
    if service.failure is not None:
        raise service.failure


def open_completer(run: Path, device: str, report: Callable[[str], None]) -> Completer:
    """Load a run in the background, and report progress where that takes long."""
    limit_arenas()
    # They import torch: after the port is open.
    from satkgc.completion import Completer, is_prepared
    from satkgc.training import RunFolder

    run = run.resolve()  # a link may lead elsewhere later
    if not is_prepared(run):
        print(
            f"this run has no index yet: its {RunFolder.load(run).kg.num_entities:,} entities are encoded first; "
            f"`satkgc prepare {run}` does that beforehand",
            file=sys.stderr,
            flush=True,
        )
    _leave_a_core()
    completer = Completer.load(run, device, on_progress=report)
    completer.info()  # of this version, as long as it lies there
    with suppress(SatkgcError):  # the first question is slow: no user should wait for it
        completer.tails(completer.kg.entities.id(0), completer.kg.relations.id(0))
    return completer


@cache
def _leave_a_core() -> None:
    """To the connections: where both share one, each waits for the other."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))


def version_of(run: Path) -> tuple[str, int, int] | None:
    """What tells one version of a run from another: which index lies there, the last thing that an update writes; None
    where there is none."""
    try:
        file = (run / "index" / "index.json").stat()
        return str(run.resolve()), file.st_ino, file.st_mtime_ns
    except OSError:
        return None


def limit_arenas() -> None:
    """Let all threads allocate from two arenas, where the C library is glibc.

    It gives each thread one of its own, up to eight for each core, and each keeps what its thread needed at most: the
    memory of a service grew for an hour. MALLOC_ARENA_MAX of the environment goes before.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError, TypeError):  # another library, another system
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def check_run(run: Path) -> None:
    """Refuse what is not a run folder before a port is opened for it."""
    try:
        json.loads((run / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        raise SatkgcError("no run here", where=run, remedy="give a folder that `satkgc train` wrote") from None


def _listen(settings: ServiceSettings) -> socket.socket:
    """Open the port here: if it cannot be opened, uvicorn would log that and end the process."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=WAITING)
        # Connections inherit it. Without it every answer after the first of a connection waits 40 ms for the client's
        # acknowledgement; asyncio sets it on sockets that it has made itself.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise SatkgcError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
            remedy="choose another --port or --host",
        ) from None


class _Server(uvicorn.Server):
    """uvicorn that prints its address once it listens."""

    def __init__(self, config: uvicorn.Config, path: str, open_page: bool) -> None:
        super().__init__(config)
        self._path, self._open_page = path, open_page

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.should_exit or not sockets:
            return
        sockets[0].listen(WAITING)  # asyncio has made it as short as what it takes at once
        host, port = sockets[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}{self._path}"
        print(f"satkgc serves {address} (stop with Ctrl-C)", flush=True)
        if self._open_page:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
