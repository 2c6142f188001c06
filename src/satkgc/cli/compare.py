"""`satkgc compare`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from satkgc.errors import SatkgcError

if TYPE_CHECKING:
    from satkgc.evaluation import Difference

AGAINST = "--against"


class _SeveralAgainst(TyperCommand):
    """Lets `--against` take all files that follow it, where an option takes one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_repeated(args)))


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(cls=_SeveralAgainst)(compare)


def compare(
    files: Annotated[
        list[Path], typer.Argument(help="Two files that `satkgc evaluate --ranks` wrote; or see --against.")
    ],
    against: Annotated[
        list[Path] | None, typer.Option(AGAINST, help="The second system's files; those before are seeds of the first.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two systems question by question: is the second better by more than chance?

    Each triple counts once, by the mean of its questions; the interval and p are those of a paired t-test. They speak
    of the choice of test triples, not of the seed: train with two seeds at least before you claim a difference, and
    give all of them. They are averaged, and how far a system's seeds lie apart is shown beside it.

    Another system's ranks will do too: a Parquet file with head, relation, tail (ids), asked (head or tail) and rank.
    Of a single file the metrics are shown.

    [dim]Examples:[/]
      satkgc evaluate runs/satkgc --ranks satkgc.parquet
      satkgc evaluate runs/simkgc --ranks simkgc.parquet
      satkgc compare simkgc.parquet satkgc.parquet
      satkgc compare simkgc-1.parquet simkgc-2.parquet --against satkgc-1.parquet satkgc-2.parquet
    """
    import json as json_module
    from dataclasses import asdict

    from rich.console import Console

    from satkgc.evaluation import QuestionRanks, metrics_table
    from satkgc.evaluation import compare as compare_ranks

    if not against and len(files) > 2:
        raise SatkgcError(f"{len(files)} files", remedy="give two, or the second system's seeds after --against")
    content: Any
    if not against and len(files) == 1:
        content = QuestionRanks.read(files[0]).metrics()
        table = metrics_table(files[0].stem, content)
    else:
        first, second = (files, against) if against else (files[:1], files[1:])
        differences = compare_ranks(first, second)
        content, table = [asdict(one) for one in differences], _table(differences, first, second)
    if json:
        print(json_module.dumps(content))
    else:
        Console().print(table)


def _table(differences: list[Difference], first: list[Path], second: list[Path]) -> Any:
    """The differences; with several seeds also their spread, and a word where a difference does not exceed it."""
    from rich.table import Table

    table = Table("", padding=(0, 0 if len(first) + len(second) > 2 else 1))  # so as to fit 80 columns
    for side in (first, second):
        table.add_column("\n".join(file.stem for file in side))
        if len(side) > 1:
            table.add_column("between\nseeds")
    for name in ("difference", "95 % interval", "p"):
        table.add_column(name)
    small = []
    for one in differences:
        metric = one.metric.replace("hits", "Hits").replace("mrr", "MRR")
        figures = []
        for side, mean, spread in zip((first, second), (one.first, one.second), one.spreads, strict=True):
            figures += [f"{mean:.4f}", f"{spread:.4f}"][: 1 + (len(side) > 1)]
        table.add_row(metric, *figures, f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", f"{one.p:.2g}")
        if 0 < abs(one.difference) <= max(one.spreads):
            small.append(metric)
    if small:
        table.caption = f"{', '.join(small)}: seeds of one system differ as much as the two systems do"
    return table


def _repeated(words: list[str]) -> Iterator[str]:
    """`--against` before each of the files that follow it."""
    following = False
    for at, word in enumerate(words):
        if word.startswith("-"):
            following = word.partition("=")[0] == AGAINST
        elif following and words[at - 1] != AGAINST:
            yield AGAINST
        yield word
