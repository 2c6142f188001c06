"""Run the service on a port until it is told to stop."""

from __future__ import annotations

import json
import signal
import threading
import webbrowser
from pathlib import Path

import uvicorn

from satkgc.completion import Completer
from satkgc.errors import SatkgcError
from satkgc.server.app import create_app
from satkgc.server.settings import Settings

DRAIN = 30  # seconds that requests in flight get to finish after a stop was asked for


def serve(run: Path, settings: Settings, *, open_page: bool = False) -> None:
    """Serve a run folder. SIGTERM and Ctrl-C stop it once the requests in flight are answered."""
    _check(run)
    app = create_app(lambda: Completer.load(run), settings, failed=lambda: setattr(server, "should_exit", True))
    config = uvicorn.Config(
        app, settings.host, settings.port, log_level="warning", server_header=False, timeout_graceful_shutdown=DRAIN
    )
    server = _Server(config, open_page=open_page)
    for stop in (signal.SIGINT, signal.SIGTERM):
        # uvicorn handles them while it runs and sends them again when it has stopped: that second one is nobody's.
        signal.signal(stop, signal.SIG_IGN)
    try:
        server.run()
    except SystemExit:  # uvicorn's way to say that it could not bind; it has logged why
        raise SatkgcError(
            f"cannot listen on {settings.host}:{settings.port}", remedy="choose another --port or --host"
        ) from None
    failure = app.state.service.failure
    if failure is not None:
        raise failure


def _check(run: Path) -> None:
    """Refuse at once what is no run folder, before a port is opened for it."""
    try:
        json.loads((run / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        raise SatkgcError(
            "this is no run folder", where=run, remedy="give the folder that `satkgc train` wrote"
        ) from None


class _Server(uvicorn.Server):
    """uvicorn, which says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, open_page: bool) -> None:
        super().__init__(config)
        self._open_page = open_page

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.should_exit or not self.servers:
            return
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        print(f"satkgc serves {address} (stop with Ctrl-C)", flush=True)
        if self._open_page:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
