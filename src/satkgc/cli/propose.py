"""`satkgc propose` and `accept`: missing triples of a graph, and those of them that a person accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.errors import SatkgcError


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("propose")(propose)
    app.command("accept")(accept)


def propose(
    run: RunArgument,
    out: Annotated[Path, typer.Argument(help="The file to write: .tsv, .csv, .parquet or .nt.", show_default=False)],
    n: Annotated[int, typer.Option("--n", "-n", help="How many triples.")] = 1000,
    relation: Annotated[list[str] | None, typer.Option(help="Only this relation; may be repeated.")] = None,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only triples at least this likely.")
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Only above the probability that had this precision on validation questions. These all have a missing "
            "answer; where questions have none, fewer proposals are right.",
        ),
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Not this relation; may be repeated.")] = None,
    typed: Annotated[
        bool, typer.Option("--typed", help="Only entities that the graph already has at that end of the relation.")
    ] = False,
    type: Annotated[
        str | None,
        typer.Option(
            "--type", help="Only triples with an entity of this type (rdf:type, Neo4j's labels), by id or name."
        ),
    ] = None,
    second_answers: Annotated[
        bool,
        typer.Option("--second-answers", help="Also where a relation has one answer and an entity has it already."),
    ] = False,
    implied: Annotated[
        bool,
        typer.Option("--implied", help="Also what the graph implies already, cycles in a hierarchy, and mirrors."),
    ] = False,
    logic: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="What relations mean, as `satkgc kg inspect --logic` wrote and you edited."
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="Who asks: local, this process; ray, a worker on every GPU or core."),
    ] = "local",
    device: DeviceOption = "auto",
) -> None:
    """Propose the most likely triples that the graph does not hold, for all relations or some.

    A relation that gives 95 % of its heads one tail, such as a date of birth, is assumed to have no second one, and
    likewise for heads: only entities without an answer get one. --second-answers turns this off.

    --typed keeps nonsense out, such as a place as somebody's teacher, but also entities that the relation never had:
    check whether it suits your graph. --type Person proposes what has a person as head or tail, as the graph states it.

    One of two triples that say the same under inverse or symmetric relations is proposed; what the graph implies
    already, and what would close a cycle in a hierarchy, is not. --implied turns this off. What relations mean is read
    from the graph (`satkgc kg inspect` shows it), or from the file --logic.

    Probabilities are measured on questions that have a missing answer. Of all questions some have none, so fewer
    proposals are right than the probabilities say; look at a sample before you trust a threshold.

    What was accepted or rejected on the page of `satkgc serve RUN --proposals` is not proposed again, nor what was
    rejected there before `satkgc train --from RUN`.

    A proposal that was stopped continues when the same command is run again. With --engine ray it is done in shards, by
    workers on this machine or on the cluster that RAY_ADDRESS names.

    [bold]Examples[/]

      satkgc propose runs/demo missing.tsv --n 500

      satkgc propose runs/demo missing.nt --relation hypernym --relation also_see --precision 0.6

      satkgc propose runs/demo missing.csv --typed --exclude also_see
    """
    from satkgc.completion import Completer, check_proposals_file

    check_proposals_file(out, n)
    note_unfinished(run)
    completer = Completer.load(run, device)
    if precision is not None:
        if not completer.calibrated:
            raise SatkgcError("this run has no probabilities", where=run, remedy="leave --precision out")
        min_probability = max(min_probability or 0.0, completer.threshold(precision))
    count = completer.propose(
        out,
        n,
        relation or None,
        min_probability,
        second_answers=second_answers,
        exclude=exclude or (),
        typed=typed,
        implied=implied,
        logic=logic,
        type=type,
        engine=engine,
    )
    typer.echo(f"{out}: {count:,} triples")


def accept(
    reviewed: Annotated[
        Path,
        typer.Argument(
            help="The table of `satkgc propose` or `duplicates` after your review, or a run reviewed on the page.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Argument(help="The file to write: .nt, .tsv, .csv or .parquet.", show_default=False)
    ] = None,
    column: Annotated[str, typer.Option(help="The column of a table that says yes.")] = "accept",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="GRAPH",
            help="Add them to this graph, or merge duplicates in it; under a new name a run's graph is written so.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="sparql:URL|bolt://HOST",
            help="Send them to this endpoint, as SPARQL updates of two named graphs, or as Cypher.",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="With --to sparql: the named graph. (default: urn:satkgc:accepted)"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="With --to and a table: the run that proposed them, or what else to call it."),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(metavar="PROPERTY", help="With --to bolt: the property of ids, where it was named at the import."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --to: print the updates, and send nothing.")] = False,
) -> None:
    """Write the proposals that a person accepted, as RDF (N-Triples) or a table, or add them to a graph.

    The tables of `satkgc propose` have an empty column "accept". Open one in a spreadsheet, write yes (or x, 1, true)
    where a triple is right, save it, and give it to this command. Or work through it on the page
    (`satkgc serve RUN --proposals missing.csv`) and give this command the run.

    --to sends them to a SPARQL endpoint, into a named graph; where each comes from (model, score, probability, time)
    into another one, which is called the same with /provenance behind it. What was sent before is not added again.
    A property graph (bolt://, neo4j://) gets relationships that have this in properties, between nodes that it has.

    Of a table of `satkgc duplicates`, .nt has owl:sameAs, .tsv what goes and what it becomes, and --into merges: the
    entity with fewer neighbours becomes the other in all triples, each of which stays once.

    [bold]Examples[/]

      satkgc propose runs/demo missing.csv --n 200

      satkgc accept missing.csv accepted.nt

      satkgc accept runs/demo --into grown

      satkgc accept missing.csv --to sparql:https://example.org/update --model runs/demo --dry-run

      satkgc accept missing.csv --to bolt://localhost:7687/films --model runs/demo
    """
    from satkgc.completion import (
        ACCEPTED,
        accept_into,
        accept_proposals,
        accepted_updates,
        bolt_merges,
        is_duplicates_file,
        send_accepted,
        send_to_bolt,
    )
    from satkgc.kg import BoltServer, Endpoint, is_bolt

    if out is None and into is None and to is None:
        raise SatkgcError("nothing says where to", remedy="name a file to write, a graph --into, or an endpoint --to")
    if to is None and (graph is not None or model is not None or id is not None or dry_run):
        raise SatkgcError("--graph, --id, --model and --dry-run are for endpoints", remedy="name one with --to")
    bolt = is_bolt(to)
    if to is not None and (graph if bolt else id) is not None:
        what = "--graph is for SPARQL endpoints" if bolt else "--id is for property graphs"
        raise SatkgcError(what, remedy="leave it out")
    if is_duplicates_file(reviewed):
        _accept_duplicates(reviewed, out, column, into, to)
        return
    if to is not None:
        _ = BoltServer.of(to) if bolt else Endpoint.of(to)  # or refuses it, before anything is written
    if out is not None:
        accepted, total = accept_proposals(reviewed, out, column)
        typer.echo(f"{out}: {accepted:,} of {total:,} triples")
    if into is not None:
        count, grown = accept_into(reviewed, into, column)
        typer.echo(f"{into}: {count:,} new triples; {grown}")
    if to is not None and bolt and dry_run:
        for merge in bolt_merges(reviewed, to, id, model, column):
            typer.echo(f"{merge.text}\n")
    elif to is not None and bolt:
        new, total = send_to_bolt(reviewed, to, id, model, column)
        typer.echo(f"{to}: {new:,} of {total:,} relationships are new; the others were there")
    elif to is not None and dry_run:
        for update, _ in accepted_updates(reviewed, graph or ACCEPTED, model, column):
            typer.echo(update)
    elif to is not None:
        sent = send_accepted(reviewed, to, graph or ACCEPTED, model, column)
        typer.echo(f"{graph or ACCEPTED}: {sent:,} triples sent; those that it had already are there once")


def _accept_duplicates(reviewed: Path, out: Path | None, column: str, into: Path | None, to: str | None) -> None:
    from satkgc.completion import accept_duplicates, merge_duplicates

    if to is not None:
        raise SatkgcError("--to is for proposals", where=reviewed, remedy="write duplicates as .nt, and load that")
    if out is not None:
        accepted, total = accept_duplicates(reviewed, out, column)
        typer.echo(f"{out}: {accepted:,} of {total:,} pairs")
    if into is not None:
        count, merged = merge_duplicates(reviewed, into, column)
        typer.echo(f"{into}: {count:,} entities merged; {merged}")
