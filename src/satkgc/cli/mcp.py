"""`satkgc mcp`."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.cli.serve import EXTRA
from satkgc.errors import SatkgcError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("mcp")(mcp)


def mcp(
    run: RunArgument,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen on; others need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: port; 0 takes a free one.")] = 8322,
    token: Annotated[
        str | None, typer.Option(envvar="SATKGC_TOKEN", help="With --http: require this token of requests.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --http: also answer to this host name, as a proxy passes it on."),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Give a language model tools to ask a trained model, by the Model Context Protocol.

    The tools search entities, complete statements, show evidence and check statements; they write nothing. A client
    starts the command itself and talks to it over standard input and output:

    \b
    {"mcpServers": {"satkgc": {"command": "satkgc", "args": ["mcp", "/path/to/runs/demo"]}}}

    With --http it is a server on its own, under /mcp:

    \b
    satkgc mcp runs/demo --http
    SATKGC_TOKEN=secret satkgc mcp runs/demo --http --host 0.0.0.0
    """
    try:
        from satkgc.serving import ServiceSettings, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {*EXTRA, "anyio", "mcp"}:
            raise SatkgcError("the protocol needs its SDK", remedy="pip install 'satkgc[mcp]'") from None
        raise
    if not http:
        serve_stdio(run, device=device)
        return
    with suppress(SatkgcError):  # the server itself refuses what is not a run
        note_unfinished(run)
    if token is None:
        token = os.environ.get("SATKGC_TOKEN")  # typer takes an empty one for none
    settings = ServiceSettings(host, port, token and token.strip(), allow_hosts=tuple(allow_host or ()))
    serve_http(run, settings, device=device)
