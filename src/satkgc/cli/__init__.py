"""The command line: parses, calls the API, prints. One module a command, imported only when it is asked for."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console

from satkgc.cli import analyse, compare, complete, evaluate, export, kg, reproduce, sample, serve, train
from satkgc.errors import SatkgcError

app = typer.Typer(
    name="satkgc",
    help="Complete knowledge graphs with fine-tuned language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for module in (kg, sample, train, evaluate, compare, complete, serve, export, analyse, reproduce):
    module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from satkgc import __version__

        print(f"satkgc {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Complete knowledge graphs with fine-tuned language models."""


def main() -> None:
    """Run a command; what the user can put right is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, TextIOWrapper
        ):  # a terminal or pipe of another encoding lacks arrows, and much of the world
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except SatkgcError as error:
        Console(stderr=True).print("[bold red]error:[/] ", end="")
        print(error, file=sys.stderr)
        sys.exit(2)
