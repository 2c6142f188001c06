"""`satkgc train`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from satkgc.errors import UNFINISHED, SatkgcError

HELP = """Train a model on a knowledge graph.

KG is a name from `satkgc kg list`, a folder, a table of triples or an RDF file.

[bold]Recipes[/bold]: satkgc (the full method), simkgc (its parts switched off), wo-saam, wo-pcl-fmt, wo-fmt, wo-pcl
(ablations), rwr, brwr-p, mcmc, mixed (other samplers), neighbours (texts that name neighbours by relation),
satkgc-authors; or a TOML file of your own that `extends` one.
Settings that suit a well-known graph are laid over the recipe; what your file says itself stands over them, and any
setting can be changed with --set.

[bold]Examples[/bold]

  satkgc train wordnet-sample --out runs/first --steps 200

  satkgc train WN18RR --recipe satkgc --set encoder.backbone=sentence-transformers/all-mpnet-base-v2

  satkgc train WN18RR --set sampling.batch_size=512 --set training.chunk_tokens=8192 --show

  satkgc train WN18RR --out runs/wn18rr --resume --set training.max_minutes=60   (exit code 3 until it is finished)

  torchrun --nproc-per-node 4 -m satkgc train WN18RR --out runs/wn18rr
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(help=HELP)(train)


def train(
    kg: Annotated[str, typer.Argument(metavar="KG", help="The graph to train on.")],
    recipe: Annotated[str | None, typer.Option(help="A recipe's name or TOML file.", show_default="satkgc")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to write.", show_default="runs/KG-RECIPE")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Short for --set training.steps=N.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Short for --set training.epochs=N.")] = None,
    seed: Annotated[int | None, typer.Option(help="Short for --set training.seed=N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that stopped, or begin it.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Leave the settings for this graph out.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print all settings as they would be, and stop.")] = False,
) -> None:
    """Parse, train, print where the run is."""
    overrides: dict[str, object] = {}
    for assignment in set_ or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SatkgcError(f"--set {assignment!r} has no value", remedy="write it as name=value")
        overrides[name.strip()] = value.strip()
    if steps is not None and epochs is not None:
        raise SatkgcError("--steps and --epochs at once", remedy="give one of them")
    overrides |= {"training.steps": steps} if steps is not None else {}
    overrides |= {"training.epochs": epochs} if epochs is not None else {}
    overrides |= {"training.seed": seed} if seed is not None else {}

    if show:
        _show(kg, recipe, overrides, plain)
        return
    from satkgc.training.trainer import EXIT_CODES, train_or_stop

    run, stopped = train_or_stop(kg, recipe, out, overrides=overrides, graph_settings=not plain, resume=resume)
    if stopped is None and os.environ.get("RANK", "0") == "0":
        _prepare(run.folder, run.config.training.device)
    print(run.folder)
    raise typer.Exit(0 if stopped is None else EXIT_CODES.get(stopped, UNFINISHED))


def _prepare(folder: Path, device: str) -> None:
    """Entity vectors, index and probabilities: what makes the run ready to be asked."""
    from satkgc.completion import Completer

    Completer.load(folder, device)


def _show(kg: str, recipe: str | None, overrides: dict[str, object], plain: bool) -> None:
    from dataclasses import asdict

    from satkgc.kg import KnowledgeGraph
    from satkgc.training import make_config
    from satkgc.training.settings import flat

    graph = KnowledgeGraph.load(kg)
    name = None if plain else graph.name
    config = make_config(recipe or "satkgc", graph=name, triples=len(graph.train), overrides=overrides)
    for name, value in flat(asdict(config)).items():
        print(f"{name} = {'none' if value is None else value}")
    print(f"# {config.total_steps(len(graph.train)):,} steps on {graph!r}")
