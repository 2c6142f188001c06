"""The command line: parses, calls the API, prints. What is slow to import is imported by the command that needs it."""

from __future__ import annotations

import logging
import os
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from satkgc.cli import (
    analyse,
    check,
    classify,
    compare,
    complete,
    duplicates,
    evaluate,
    export,
    fuse,
    kg,
    mcp,
    propose,
    reproduce,
    sample,
    serve,
    train,
    update,
    verify,
)
from satkgc.cli.terminal import CleanFormatter, clean
from satkgc.errors import SatkgcError
from satkgc.files import is_full

SPIN = "10000"  # turns that a thread waits for others before it sleeps, of GNU's 300,000: cores may have other work

app = typer.Typer(
    name="satkgc",
    help="Complete knowledge graphs with fine-tuned language models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for module in (
    kg,
    sample,
    train,
    fuse,
    evaluate,
    compare,
    complete,
    propose,
    check,
    classify,
    duplicates,
    update,
    serve,
    mcp,
    export,
    verify,
    analyse,
    reproduce,
):
    module.register(app)


def _version(value: bool) -> None:
    if value:
        from satkgc.version import __version__

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
    """Run a command; an error that the user can fix is one line and exit code 2."""
    if "OMP_WAIT_POLICY" not in os.environ:  # read when torch is imported, which no command has done yet
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # other encodings than UTF-8 lack arrows and many letters
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(CleanFormatter())
    try:
        app()
    except SatkgcError as error:
        _refuse(str(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _refuse(f"{place}{error.strerror or error}; check that the place exists, has room and may be written")
    except Exception as error:
        if not is_full(error):  # as libraries say it in words of their own
            raise
        _refuse(f"the disk is full ({error}); make room and run the same command again")


def _refuse(message: str) -> NoReturn:
    Console(stderr=True).print("[bold red]error:[/] ", end="")
    print(clean(message), file=sys.stderr)
    sys.exit(2)
