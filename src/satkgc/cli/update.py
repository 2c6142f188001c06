"""`satkgc update`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument
from satkgc.cli.kg import reads_a_graph, status

SPLITTING = ("name", "split", "valid", "test", "seed")  # of a graph that is read for the first time


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("update")(reads_a_graph(update, leave_out=SPLITTING))


def update(
    run: RunArgument,
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="New triples: tables, RDF files, a folder, a graph, sparql:https://…; none with --entities alone.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Write the new version there, and leave RUN as it is.")
    ] = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Names and descriptions that differ from the graph's replace them.")
    ] = False,
    new_relations: Annotated[
        bool, typer.Option("--new-relations", help="Also take in relations that the graph does not have.")
    ] = False,
    device: DeviceOption = "auto",
    *,
    options: dict[str, Any],
) -> None:
    """Take new triples, entities and texts into a run, without training, and ask about them at once.

    The triples are known answers and evidence from now on; only entities that are new or read otherwise now are
    encoded. Models that read texts answer about a new entity by its text, a path model by its triples. An embedding
    model has no vector for it until it is trained (`satkgc train RUN/graph --from RUN`): this is said, and the other
    experts of a fused run answer.

    The run is replaced in one step when all is done; `satkgc serve` goes on with the new version by itself. With --out
    both versions stay.

    What contradicts the graph is refused: another name for a known id, unless --correct, and a relation that the graph
    does not have, unless --new-relations. So is a new entity whose id looks like a mistyped one, unless a table of
    --entities lists it.

    [bold]Examples[/]

      satkgc update runs/demo new.csv

      satkgc update runs/demo new.ttl --out runs/demo-2

      satkgc update runs/demo --entities corrected.csv --correct
    """
    from satkgc.completion import update_run

    with status(f"Updating {run}"):
        done = update_run(
            run, source or [], out=out, correct=correct, new_relations=new_relations, device=device, **options
        )
    if not done.growth:
        typer.echo(f"{run}: nothing is new")
        return
    for line in done.unknown:
        typer.echo(f"note: {line}", err=True)
    typer.echo(f"{out or run}: {done.growth}; version {done.version}, {done.growth.kg}")
