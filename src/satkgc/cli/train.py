"""`satkgc train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.errors import UNFINISHED, SatkgcError

HELP = """Train a model on a knowledge graph.

KG is a name from `satkgc kg list`, a folder, a table of triples or an RDF file.

Without a GPU the recipe is quick, unless you name one: a frozen encoder with small trained heads, minutes on a laptop.
On a GPU it is satkgc-adjusted, which trains the encoders. What a run will take is printed before it starts.

[bold]Recipes[/bold]: quick, frozen (its text model alone); satkgc (the paper), satkgc-authors (the authors' program),
simkgc; satkgc-adjusted and simkgc-adjusted (with our changes), neighbours (texts that name neighbours by relation);
wo-saam, wo-pcl-fmt, wo-fmt, wo-pcl (ablations), rwr, brwr-p, mcmc, mixed (other samplers); complex, distmult, transe,
rotate, rotate-saam, tucker, compounde (embeddings, no text); paths (message passing along the graph, no text); star,
star-saam (a siamese encoder), star-ensemble (with rotate); fused (text, embeddings and paths as one); or a TOML file of
your own that `extends` one.
A recipe may have settings for a well-known graph; your own file overrides them, and --set overrides everything.

[bold]Examples[/bold]

  satkgc train wordnet-sample --out runs/first --steps 200

  satkgc train WN18RR --recipe satkgc --set model.encoder.backbone=sentence-transformers/all-mpnet-base-v2

  satkgc train WN18RR --recipe simkgc --set sampling.batch_size=512 --set model.encoder.chunk_tokens=8192 --show

  satkgc train WN18RR --out runs/wn18rr --resume --set training.max_minutes=60   (exit code 3 until it is finished)

  satkgc train grown --from runs/wn18rr --out runs/grown   (trains on, a third as long)

  torchrun --nproc-per-node 4 -m satkgc train WN18RR --out runs/wn18rr
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(help=HELP)(train)


def train(
    kg: Annotated[str, typer.Argument(metavar="KG", help="The graph to train on.")],
    recipe: Annotated[
        str | None, typer.Option(help="A recipe's name or TOML file.", show_default="quick, on a GPU satkgc-adjusted")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to write.", show_default="runs/KG-RECIPE")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Override a setting; may be repeated.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Short for --set training.steps=N.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Short for --set training.epochs=N.")] = None,
    seed: Annotated[int | None, typer.Option(help="Short for --set training.seed=N.")] = None,
    device: Annotated[
        str | None, typer.Option(help="auto: the GPU if there is one; cpu, cuda, cuda:1.", show_default="auto")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that stopped, or begin it.")] = False,
    from_run: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Begin from the weights of this finished run, on a graph that has grown: entities and relations are "
            "matched by id. Without --recipe its settings are taken, and a third of its length unless you give one.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Ignore the recipe's settings for this graph.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Leave the checkpoints of the finished run where they are.")
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print all settings and stop.")] = False,
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
    options = {"training.steps": steps, "training.epochs": epochs, "training.seed": seed, "training.device": device}
    overrides |= {name: value for name, value in options.items() if value is not None}
    if keep_checkpoints:
        overrides["training.keep_checkpoints"] = True
    if show and from_run is not None:
        raise SatkgcError("--show and --from at once", remedy="leave --show out: the settings are those of the run")
    if show:
        _show(kg, recipe, overrides, plain)
        return

    from satkgc.api import train_or_stop
    from satkgc.training import EXIT_CODES

    options_ = {"graph_settings": not plain, "resume": resume, "from_run": from_run}
    run, stopped = train_or_stop(kg, recipe, out, overrides=overrides, **options_)
    print(run.folder)
    raise typer.Exit(0 if stopped is None else EXIT_CODES.get(stopped, UNFINISHED))


def _show(kg: str, recipe: str | None, overrides: dict[str, object], plain: bool) -> None:
    from satkgc.kg import KnowledgeGraph
    from satkgc.settings import flatten
    from satkgc.training import OF_FUSED, default_recipe, make_config

    graph = KnowledgeGraph.load(kg)
    benchmark, triples = (None, None) if plain else (graph.benchmark, len(graph.train))
    chosen = recipe or default_recipe(str(overrides.get("training.device", "auto")))
    config = make_config(chosen, benchmark=benchmark, triples=triples, overrides=overrides)
    for name, value in flatten(config.model_dump()).items():
        if not config.experts or name in OF_FUSED or not name.startswith(("training.", "sampling.")):
            print(f"{name} = {'none' if value is None else value}")
    for title, part in {f" of {name}": part for name, part in config.experts.items()}.items() or [("", config)]:
        print(f"# {part.total_steps(len(graph.train)):,} steps{title} on {graph!r}")
