"""`satkgc kg`: read graphs, look at them, and fetch the benchmarks."""

from __future__ import annotations

import inspect
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from satkgc.cli.terminal import clean
from satkgc.errors import SatkgcError
from satkgc.files import check_new, check_writable

kg = typer.Typer(help="Read graphs, look at them, and fetch the benchmarks.", no_args_is_help=True)

Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A name from `satkgc kg list`, a folder, an archive, or tables or RDF files that make one graph: "
        "paths, folders of files, patterns, URLs; or an endpoint, sparql:https://… or bolt://…",
    ),
]

# Every option of ReadOptions: its type and help text. The defaults are those of ReadOptions.
READ_OPTIONS: dict[str, tuple[Any, str]] = {
    "name": (
        str,
        "What the graph is called. (default: the name of the source; of the folder that a table or RDF is imported to)",
    ),
    "unlisted": (
        str,
        "error | add: what to do with a triple's entity or relation that is not listed. (default: error)",
    ),
    "textless": (
        str,
        "error | allow: what to do with an entity that has neither name nor description. (default: error)",
    ),
    "duplicates": (
        str,
        "error | first | last | merge: what to do with an id that is listed more than once, with different texts. "
        "(default: error)",
    ),
    "exclude": (list[str], "A relation whose triples are left out, by id or name (rdf:type); may be repeated."),
    "entities_file": (str, "Folders: the file of entities, where there are several. (default: entities.tsv)"),
    "head": (
        list[str],
        "Tables: the column of heads, by name or by position from 0; repeated, each table takes the first it has. "
        "(default: guessed)",
    ),
    "relation": (list[str], "Tables: the column of relations, likewise. (default: guessed)"),
    "tail": (list[str], "Tables: the column of tails, likewise. (default: guessed)"),
    "relation_name": (
        list[str],
        "Tables without a column of relations: what every row says; may be repeated, once for each of these.",
    ),
    "split_column": (str, "Tables: the column that says train, valid, test or inference. (default: split)"),
    "entities": (list[Path], "Tables: one more with ids, names and descriptions of entities; may be repeated."),
    "relations": (Path, "Tables: one more with ids and names of relations."),
    "id": (
        list[str],
        "Tables: the column of ids in those. Bolt: the property of ids. May be repeated. (default: guessed)",
    ),
    "label": (
        list[str],
        "Tables: the column of names in those. RDF: a predicate of names, before the usual ones; Bolt: a property. "
        "May be repeated.",
    ),
    "alt_label": (
        list[str],
        "RDF: a predicate of other names (skos:altLabel), before the usual ones; may be repeated.",
    ),
    "description": (
        list[str],
        "Tables: the column of descriptions in those. RDF: a predicate of descriptions; Bolt: a property. May be "
        "repeated.",
    ),
    "literals": (
        list[str],
        "RDF: a predicate whose numbers, dates and texts are added to descriptions, or all; Bolt: a property. May be "
        "repeated.",
    ),
    "languages": (list[str], "RDF: languages of labels and descriptions, the best first, as de,en. (default: en)"),
    "graphs": (
        list[str],
        "RDF: the IRI of the only named graph to read; may be repeated. (default: all as one; of an endpoint, its "
        "default graph)",
    ),
    "query": (
        str,
        "Endpoints: a CONSTRUCT query (Bolt: in Cypher), or the file that has it, instead of all statements.",
    ),
    "page_size": (int, "Endpoints: rows asked for at once. (default: 10000)"),
    "pause": (float, "Endpoints: seconds between two pages. (default: 0.5)"),
    "split": (str, "transductive | inductive | none: how to split a source that has no split."),
    "valid": (float, "The share to hold out for validation. (default: 0.05, at most 10,000)"),
    "test": (float, "The share to hold out for testing. (default: 0.05, at most 10,000)"),
    "seed": (int, "The seed of that split. (default: 0)"),
    "memory": (
        float,
        "Tables and RDF larger than memory: GiB to read them in, by way of the disk. (default: if needed, at most 4)",
    ),
    "spill": (Path, "The folder for what is then on the disk. (default: that of the output; else TMPDIR)"),
}


def reads_a_graph(command: Callable[..., None], leave_out: Sequence[str] = ()) -> Callable[..., None]:
    """Give a command one flag for every option of ReadOptions; it gets those that are set as `options`."""
    read = {name: option for name, option in READ_OPTIONS.items() if name not in leave_out}

    @wraps(command)
    def run(**arguments: Any) -> None:
        options = {name: value for name in read if (value := arguments.pop(name)) is not None and value != []}
        command(**arguments, options=options)

    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "options"]
    flags = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(_flag(name), help=text, rich_help_panel="Reading")],
        )
        for name, (kind, text) in read.items()
    ]
    run.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*own, *flags]}
    return run


def _flag(name: str) -> str:
    return {"graphs": "--graph", "literals": "--literal"}.get(name, f"--{name.replace('_', '-')}")  # each takes one IRI


class ImportCommand(TyperCommand):
    """One argument alone is taken for the last, OUT, so that SOURCE would be said to be missing."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        if isinstance(out := given.get("out"), str) and not (isinstance(given["source"], tuple) and given["source"]):
            remedy = f"name it last: satkgc kg import {out} FOLDER"
            raise SatkgcError("the folder to write, OUT, is missing", remedy=remedy)
        return super().parse_args(ctx, args)


@kg.command("import", cls=ImportCommand)
@reads_a_graph
def import_(
    source: Source,
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing graph.")] = False,
    *,
    options: dict[str, Any],
) -> None:
    """Read a graph once and write it in a binary form that opens at once, whatever its size.

    A source without a split of its own gets a seeded one, in which train has every entity and relation: 5 % of the
    triples each for validation and test, at most 10,000, or the shares --valid and --test.

    Tables and RDF that are larger than memory are read by way of the disk; the graph is the same (pip install
    'satkgc\\[large]').

    A SPARQL endpoint is asked page by page. What has come is kept, and the same command goes on after a stop. A Bolt
    server is asked in one go; user and password are in NEO4J_USERNAME and NEO4J_PASSWORD, or in ~/.netrc.

    [bold]Examples[/]

      satkgc kg import my-folder my-graph

      satkgc kg import triples.parquet my-graph --entities entities.parquet --head subject --tail object

      satkgc kg import huge.parquet my-graph --memory 4 --spill /fast/disk

      satkgc kg import dump.nt.gz my-graph --languages de,en --split inductive

      satkgc kg import people.ttl my-graph --literal dbo:birthDate --literal dbo:populationTotal

      satkgc kg import people.csv films.csv stars.csv my-graph

      satkgc kg import https://example.org/thesaurus.ttl my-graph

      satkgc kg import sparql:https://example.org/sparql my-graph --graph http://museum.org/objects

      satkgc kg import bolt://localhost:7687/films my-graph --literal released

      satkgc kg import museum.trig my-graph --exclude rdf:type --exclude owl:sameAs --graph http://museum.org/objects
    """
    from satkgc.kg import (
        ARCHIVE_SUFFIXES,
        KnowledgeGraph,
        ReadOptions,
        check_overwrite,
        is_bolt,
        is_endpoint,
        is_graph_folder,
        is_pattern,
        is_url,
        read_endpoint,
    )

    check_overwrite(out, overwrite=force)
    if len(source) == 1 and is_endpoint(source[0]):
        graph, pages = read_endpoint(source[0], ReadOptions(**{"name": out.resolve().name, **options}))
        graph = graph.save(out, overwrite=force)
        shutil.rmtree(pages, ignore_errors=True)  # no sooner: a full disk must not cost them
        typer.echo(f"{out}: {graph}")
        return
    # The name of an archive, or of a folder that is a graph by itself, may be that of a benchmark.
    files = len(source) > 1 or is_url(source[0]) or is_pattern(source[0]) or is_bolt(source[0])
    path = Path(source[0])
    files = files or (path.exists() and not is_graph_folder(path) and not (path / "train.tsv").is_file())
    if files and not source[0].lower().endswith(ARCHIVE_SUFFIXES):
        options.setdefault("name", out.resolve().name)
        options.setdefault("spill", out.resolve().parent)
    with status(f"Reading {' '.join(map(_shown, source))}"):
        graph = KnowledgeGraph.load(source, **options)
    with status(f"Writing {out}"):
        graph = graph.save(out, overwrite=force)
    typer.echo(f"{out}: {graph}")


@kg.command("inspect")
@reads_a_graph
def inspect_(
    source: Source,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png", help="Draw the degree distribution.")
    ] = None,
    logic: Annotated[
        Path | None,
        typer.Option(
            "--logic",
            metavar="FILE.toml",
            help="Write which relations are inverse, symmetric, transitive …, to be edited and given to propose.",
        ),
    ] = None,
    *,
    options: dict[str, Any],
) -> None:
    """Show what a graph holds: sizes, degrees, components, kinds of relations, texts, and leaks between its splits.

    A source without a split is described as it is, all triples in train, unless --split asks for one.

    [bold]Examples[/]

      satkgc kg inspect wordnet-sample

      satkgc kg inspect triples.csv --json

      satkgc kg inspect my-graph --plot degrees.png
    """
    from satkgc.cli.kg_tables import print_figures
    from satkgc.kg import (
        KnowledgeGraph,
        describe_logic,
        inspect_graph,
        plot_degrees,
        relation_logic,
        write_logic,
    )

    if plot is not None:
        check_writable(plot, ".png")
    if logic is not None:
        check_new(logic, ".toml")  # what is there may have been edited
    with status(f"Reading {' '.join(map(_shown, source))}"):
        graph = KnowledgeGraph.load(source, **{"split": "none", **options})
    with status("Counting"):
        figures = inspect_graph(graph)
        properties = relation_logic(graph)
        figures["relation_logic"] = describe_logic(graph, properties)
        if logic is not None:
            write_logic(graph, properties, logic)
        if plot is not None:
            plot_degrees(graph, plot)
    if as_json:
        typer.echo(clean(json.dumps(figures, indent=2, ensure_ascii=False)))
    else:
        print_figures(figures)


@kg.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print names, counts and locations as JSON.")] = False,
) -> None:
    """List the graphs that can be named wherever a graph is expected."""
    from dataclasses import asdict

    from satkgc.cli.kg_tables import print_catalogue
    from satkgc.kg import CATALOGUE, entry_location

    if as_json:
        graphs = [{"name": e.name, **asdict(e.counts), "from": entry_location(e)} for e in CATALOGUE]
        typer.echo(json.dumps(graphs, indent=2, ensure_ascii=False))
    else:
        print_catalogue()


@kg.command()
def get(
    name: Annotated[str, typer.Argument(help="A name from `satkgc kg list`.")],
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write it there as a folder of TSV files.")
    ] = None,
) -> None:
    """Fetch a benchmark, check it against its published counts, and keep it for later.

    It is taken from the folder in the variable SATKGC_DATA, or downloaded, and kept in the folder in SATKGC_CACHE.

    [bold]Examples[/]

      satkgc kg get WN18RR

      satkgc kg get fb15k-237 --to data
    """
    from satkgc.kg import find_entry, load_entry, write_tsv

    entry = find_entry(name)
    graph = load_entry(entry)
    typer.echo(f"{graph.path or 'in memory'}: {graph}")
    if to is not None:
        folder = to / (entry.archive or entry.name)
        write_tsv(graph, folder)
        typer.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def _shown(source: str) -> str:
    """A source as it may be seen by others: the URL of an endpoint may hold a password."""
    from satkgc.kg import Endpoint, is_endpoint

    return Endpoint.of(source).shown if is_endpoint(source) else source


@contextmanager
def status(text: str) -> Iterator[None]:
    """Say what is going on: at once on a terminal, elsewhere when it takes long."""
    from rich.console import Console

    from satkgc.progress import FIRST, give_way

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text) as spinner:
            give_way(spinner.stop)
            yield
        return
    timer = threading.Timer(FIRST, lambda: typer.echo(f"{text} …", err=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(kg, name="kg")
