"""`satkgc compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(compare)


def compare(
    first: Annotated[Path, typer.Argument(help="Ranks of one system, as `satkgc evaluate --ranks` writes them.")],
    second: Annotated[Path, typer.Argument(help="Ranks of another for the same questions.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two systems question by question: is the second better by more than chance?

    Each triple counts once, by the mean of its questions; the interval and p are those of a paired t-test. They speak
    of the choice of test triples, not of the seed: train with two seeds at least before you claim a difference.

    Another system's ranks will do too: a Parquet file with head, relation, tail (ids), asked (head or tail) and rank.

    [dim]Examples:[/]
      satkgc evaluate runs/satkgc --ranks satkgc.parquet
      satkgc evaluate runs/simkgc --ranks simkgc.parquet
      satkgc compare simkgc.parquet satkgc.parquet
    """
    import json as json_module
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from satkgc.evaluation import compare as compare_ranks

    found = compare_ranks(first, second)
    if json:
        print(json_module.dumps([asdict(one) for one in found]))
        return
    table = Table("", first.stem, second.stem, "difference", "95 % interval", "p")
    for one in found:
        interval = f"{one.low:+.4f} to {one.high:+.4f}"
        figures = (f"{one.first:.4f}", f"{one.second:.4f}", f"{one.difference:+.4f}", interval, f"{one.p:.2g}")
        table.add_row(one.metric.replace("hits", "Hits").replace("mrr", "MRR"), *figures)
    Console().print(table)
