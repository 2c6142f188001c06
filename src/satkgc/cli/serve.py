"""`satkgc serve`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.notes import note_unfinished
from satkgc.errors import SatkgcError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("serve")(serve)


def serve(
    run: Annotated[Path, typer.Argument(help="The run folder that `satkgc train` wrote.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 opens it to the network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8321,
    token: Annotated[str | None, typer.Option(envvar="SATKGC_TOKEN", help="Ask API requests for this token.")] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Answer to this name of the host too, which a proxy passes on; repeatable."),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for every request.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    batching: Annotated[bool, typer.Option(help="Answer concurrent questions with one pass of the model.")] = True,
) -> None:
    """Serve a trained model: a web page to ask it, and a REST API.

    \b
    satkgc serve runs/demo --open
    SATKGC_TOKEN=secret satkgc serve runs/demo --host 0.0.0.0
    curl -s localhost:8321/api/v1/complete -H 'Content-Type: application/json' \\
         -d '{"head": "dog", "relation": "hypernym", "k": 5}'
    """
    try:
        from satkgc.serving import run as server
        from satkgc.serving.settings import Settings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"fastapi", "uvicorn", "prometheus_client", "pydantic", "starlette"}:
            raise SatkgcError("the service needs FastAPI and uvicorn", remedy="pip install 'satkgc[serve]'") from None
        raise
    if token is None:
        token = os.environ.get("SATKGC_TOKEN")  # typer takes an empty one for none
    settings = Settings(host, port, token and token.strip(), names=tuple(allow_host or ()), access_log=access_log)
    with suppress(SatkgcError):  # what is no run the service refuses itself
        note_unfinished(run)
    server.serve(run, settings if batching else settings.without_batching(), open_page=open_page)
