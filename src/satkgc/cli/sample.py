"""`satkgc sample`: look at the mini-batches before training on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from satkgc.files import check_writable

if TYPE_CHECKING:
    from rich.table import Table

    from satkgc.sampling import Occurrences


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(sample)


def sample(
    graph: Annotated[str, typer.Argument(metavar="KG", help="A graph: a name, a folder, an archive, a table.")],
    sampler: Annotated[
        list[str] | None,
        typer.Option(help="brwr (default), rwr, brwr_p or random; give it several times to compare."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to draw. Default: those of one epoch.")] = None,
    batch_size: Annotated[int, typer.Option(help="Samples in a batch: half triples, half their inverses.")] = 1024,
    subgraph_triples: Annotated[int, typer.Option(help="M: a walk ends at so many distinct triples.")] = 10_000,
    walk_steps: Annotated[int, typer.Option(help="A limit to the steps of a walk; 0: as many as M takes.")] = 0,
    restart: Annotated[float, typer.Option(help="Probability of going back to the start.")] = 1 / 25,
    entity_disjoint: Annotated[bool, typer.Option("--entity-disjoint", help="No two triples share an end.")] = False,
    pick: Annotated[
        str, typer.Option(help="Which of a subgraph's triples make the batch: random, or the least-visited first.")
    ] = "random",
    random_share: Annotated[float, typer.Option(help="Share of a batch that random triples replace.")] = 0.0,
    epoch_rule: Annotated[
        str, typer.Option(help="Steps of an epoch: paper, |T|/|B|, or authors, twice as many.")
    ] = "paper",
    seed: Annotated[int, typer.Option(help="The same seed draws the same batches.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the visits into this picture.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Draw mini-batches and show what they visit: how often each triple and entity, how far, of what degree.

    [dim]Examples:[/]
      satkgc sample wordnet-sample
      satkgc sample WN18RR --sampler brwr --sampler random --steps 500 --plot visits.png
      satkgc sample FB15k-237 --batch-size 3072 --pick least-visited --json
    """
    import json as json_module

    from rich.console import Console
    from rich.progress import track

    from satkgc.kg import KnowledgeGraph
    from satkgc.sampling import Needs, Occurrences, SamplingConfig, make_sampler, plot_occurrences

    if plot is not None:
        check_writable(plot, ".png")
    configs = {
        name: SamplingConfig(
            sampler=name,
            batch_size=batch_size,
            subgraph_triples=subgraph_triples,
            walk_steps=walk_steps,
            restart=restart,
            entity_disjoint=entity_disjoint,
            pick=pick,  # type: ignore[arg-type]
            random_share=random_share,
            epoch_rule=epoch_rule,  # type: ignore[arg-type]
        )
        for name in sampler or ["brwr"]
    }
    kg = KnowledgeGraph.load(graph)
    errors = Console(stderr=True)
    occurrences: dict[str, Occurrences] = {}
    for name, config in configs.items():
        make_sampler(kg, config, seed, Needs(hops=True)).draw(0)  # compiled and in memory before the clock runs
        fresh = make_sampler(kg, config, seed, Needs(hops=True))
        count = steps or fresh.steps_per_epoch
        todo = track(range(count), f"{name}: drawing", console=errors, disable=not errors.is_terminal, transient=True)
        occurrences[name] = Occurrences.count(fresh, todo)
    if plot is not None:
        count = next(iter(occurrences.values())).steps
        plot_occurrences(plot, occurrences, f"{kg.name}: {count:,} batches of {batch_size:,}")
    if json:
        result = {name: {"settings": configs[name].model_dump(), **o.to_json()} for name, o in occurrences.items()}
        print(json_module.dumps({"graph": kg.name, "seed": seed, "samplers": result}))
    else:
        Console().print(_table(kg.name, occurrences))


def _table(name: str, occurrences: dict[str, Occurrences]) -> Table:
    """One column a sampler."""
    from rich.table import Table

    table = Table(title=f"Mini-batches of {name}", title_justify="left")
    table.add_column("")
    columns = [counted.to_json() for counted in occurrences.values()]
    for sampler in occurrences:
        table.add_column(sampler, justify="right")

    def row(label: str, texts: list[str], last: bool = False) -> None:
        table.add_row(label, *texts, end_section=last)

    row("batches", [f"{c['steps']:,}" for c in columns])
    row("batches a second", [f"{c['batches_per_second']:,.0f}" for c in columns])
    row("ends met twice, a batch", [f"{c['duplicates_per_batch']:.1f}" for c in columns], last=True)
    for key, label in (("triple_visits", "triples"), ("entity_visits", "entities")):
        visits = [c[key] for c in columns]
        row(f"visits of {label}: Gini", [f"{v['gini']:.3f}" for v in visits])
        row("  deviation / mean", [f"{v['variation']:.3f}" for v in visits])
        row("  share of the top 1 %", [f"{v['top_percent_share']:.1%}" for v in visits])
        row("  most, median, least", [f"{v['most']:,}  {v['median']:g}  {v['least']:,}" for v in visits])
        row("  never visited", [f"{v['never']:.1%}" for v in visits], last=True)
    hops = max(len(c["distances"]["hops"]) for c in columns)
    for hop in range(hops):
        shares = [c["distances"]["hops"] for c in columns]
        row(f"hops: {hop}", [f"{s[hop]:.1%}" if hop < len(s) else "" for s in shares])
    row("hops: not reached", [f"{c['distances']['unreached']:.1%}" for c in columns], last=True)
    for group in max((c["degrees"] for c in columns), key=len):
        row(f"neighbours: {group}", [f"{c['degrees'].get(group, 0):.1%}" for c in columns])
    return table
