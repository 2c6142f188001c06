"""`satkgc serve`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.errors import SatkgcError

EXTRA = {"fastapi", "prometheus_client", "starlette", "uvicorn"}  # what `pip install satkgc[serve]` brings


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("serve")(serve)


def serve(
    run: RunArgument,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 opens it to the network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8321,
    token: Annotated[
        str | None, typer.Option(envvar="SATKGC_TOKEN", help="Require this token of API requests.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also answer to this host name, as a proxy passes it on; may be repeated."),
    ] = None,
    proposals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .csv or .tsv of `satkgc propose`, to accept and reject on the page; decisions are kept in the run.",
        ),
    ] = None,
    access_log: Annotated[bool, typer.Option("--access-log", help="Print a line for every request.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    batching: Annotated[bool, typer.Option(help="Answer concurrent questions with one pass of the model.")] = True,
    device: DeviceOption = "auto",
) -> None:
    """Serve a trained model: a web page to ask it, and a REST API.

    \b
    satkgc serve runs/demo --open
    satkgc serve runs/demo --proposals missing.csv
    SATKGC_TOKEN=secret satkgc serve runs/demo --host 0.0.0.0
    curl -s localhost:8321/api/v1/complete -H 'Content-Type: application/json' \\
         -d '{"head": "dog", "relation": "hypernym", "k": 5}'
    """
    try:
        from satkgc.serving import ServiceSettings
        from satkgc.serving import serve as run_service
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in EXTRA:
            raise SatkgcError("the service needs FastAPI and uvicorn", remedy="pip install 'satkgc[serve]'") from None
        raise
    if token is None:
        token = os.environ.get("SATKGC_TOKEN")  # typer takes an empty one for none
    settings = ServiceSettings(
        host,
        port,
        token and token.strip(),
        allow_hosts=tuple(allow_host or ()),
        access_log=access_log,
        proposals=proposals,
    )
    with suppress(SatkgcError):  # the service itself refuses what is not a run
        note_unfinished(run)
    settings = settings if batching else settings.without_batching()
    run_service(run, settings, device=device, open_page=open_page)
