"""`satkgc complete`, `evidence` and `prepare`: questions to a trained model, and what it needs to answer them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.cli.terminal import clean
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_new, check_other

if TYPE_CHECKING:
    from satkgc.completion import Answer, Evidence, ExpertShare, Step


class Objections(StrEnum):
    """What is done with answers that the graph's logic speaks against."""

    push = "push"
    mark = "mark"
    drop = "drop"


class Side(StrEnum):
    """Which end of a triple an entity is."""

    head = "head"
    tail = "tail"


class Part(StrEnum):
    """Which part of a triple is missing."""

    head = "head"
    relation = "relation"
    tail = "tail"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("complete")(complete)
    app.command("evidence")(evidence)
    app.command("prepare")(prepare)


def complete(
    run: RunArgument,
    head: Annotated[str | None, typer.Option(help="The head, by id or name.", show_default=False)] = None,
    relation: Annotated[str | None, typer.Option(help="The relation, by id or name.", show_default=False)] = None,
    tail: Annotated[str | None, typer.Option(help="The tail, by id or name.", show_default=False)] = None,
    k: Annotated[int, typer.Option("--k", help="How many answers.")] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of {id, name, score, probability, known}.")
    ] = False,
    drop_known: Annotated[bool, typer.Option("--drop-known", help="Leave out what the graph already holds.")] = False,
    min_probability: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only answers at least this likely.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Only answers with at least this score.")] = None,
    among: Annotated[list[str] | None, typer.Option(help="Only this entity; may be repeated.")] = None,
    heads_of: Annotated[str | None, typer.Option(help="Only entities that are a head of this relation.")] = None,
    tails_of: Annotated[str | None, typer.Option(help="Only entities that are a tail of this relation.")] = None,
    type: Annotated[
        str | None,
        typer.Option("--type", help="Only entities of this type (rdf:type, Neo4j's labels), by id or name."),
    ] = None,
    objections: Annotated[
        Objections,
        typer.Option(
            help="Answers that the graph's logic speaks against: push them behind the others, only mark them, or drop "
            "them and what the graph says already in other words."
        ),
    ] = Objections.push,
    new_name: Annotated[str | None, typer.Option(help="Ask about an entity that the graph does not have.")] = None,
    new_description: Annotated[str, typer.Option(help="Its description.")] = "",
    new_fact: Annotated[
        list[str] | None, typer.Option(help='A triple that is known about it, with "?" in its place; may be repeated.')
    ] = None,
    new_side: Annotated[
        Side | None,
        typer.Option(help="Which end it is. (default: head, or tail if a head is given)", show_default=False),
    ] = None,
    questions: Annotated[Path | None, typer.Option(help="Answer a file: .tsv, .csv or .jsonl.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new .jsonl file for its answers. (default: print them)")] = None,
    device: DeviceOption = "auto",
) -> None:
    """Complete a triple: give two of head, relation and tail, get the third.

    An answer can be mirrored or implied by the graph, which then says it already, or contradict it: cyclic in a
    hierarchy, the second_value of a relation that gives one, of a wrong_type. By what relations mean, which
    relations.toml in the run folder says; change it there.

    Of a fused run the column of experts has the share of each in what lifts an answer above the others: below 0% it
    speaks against the answer, – is one that has nothing to say.

    A new entity (--new-name) stands for the head, or for the tail with --new-side tail. A file of questions has the
    columns head, relation, tail with "?" for the missing part, or is JSON lines; its answers are printed or written as
    JSON lines. A question with an unknown name gets an error in place of its answers.

    [bold]Examples[/]

      satkgc complete runs/demo --head happy.a.01 --relation also_see

      satkgc complete runs/demo --relation hypernym --tail "animal" --k 5 --drop-known --json

      satkgc complete runs/demo --head cold.a.01 --tail hot.a.01

      satkgc complete runs/demo --head dog --relation hypernym --objections drop

      satkgc complete runs/demo --new-name "robot dog" --new-description "a toy that barks" --relation hypernym

      satkgc complete runs/mine --new-name "robot dog" --new-fact "? | hypernym | dog.n.01" --relation has_part

      satkgc complete runs/demo --new-name "robot dog" --new-side tail --relation hypernym

      satkgc complete runs/demo --questions questions.tsv --out answers.jsonl
    """
    from satkgc.completion import Completer, NewEntity, Question, Role, answer_to_dict, count_questions

    filters: dict[str, Any] = {"k": k, "drop_known": drop_known, "min_probability": min_probability}
    filters |= {"min_score": min_score, "among": tuple(among) if among else None}
    filters |= {"type": type, "objections": objections.value}
    if heads_of is not None and tails_of is not None:
        raise SatkgcError("--heads-of and --tails-of exclude each other", remedy="give one of them")
    if heads_of is not None or tails_of is not None:
        filters["role"] = Role(heads_of or tails_of or "", "head" if heads_of is not None else "tail")
    if questions is not None:
        if head or relation or tail or new_name or new_description or new_fact or new_side:
            raise SatkgcError("a question and a file of questions at once", remedy="give one of them")
        if out is not None:
            check_other(out, questions)
            check_new(out, ".jsonl")
        total = count_questions(questions, **filters)
        note_unfinished(run)
        _answer_file(Completer.load(run, device), questions, total, out, filters)
        return
    if out is not None:
        raise SatkgcError("--out is for a file of questions", remedy="give --questions, or redirect the output")
    parts: dict[str, Any] = {"head": head, "relation": relation, "tail": tail}
    if new_name is not None:
        side = new_side or (Side.head if head is None else Side.tail)
        if parts[side] is not None:
            what = f"--new-name stands for the {side}, which is given too"
            raise SatkgcError(what, remedy=f"leave --{side} out, or choose the other with --new-side")
        parts[side] = NewEntity(new_name, new_description, facts=tuple(map(_fact, new_fact or ())))
    elif new_fact or new_description or new_side:
        what = "--new-fact" if new_fact else "--new-description" if new_description else "--new-side"
        raise SatkgcError(f"{what} without --new-name", remedy="name the new entity that it describes")
    question = Question(**parts, **filters)
    note_unfinished(run)
    completer = Completer.load(run, device)
    if new_fact and not completer.reads_facts(new_description):
        typer.echo("this model does not read facts: they only count as known answers", err=True)
    answers = completer.ask([question])[0]
    if as_json:
        print(clean(json.dumps([answer_to_dict(answer) for answer in answers], indent=1, ensure_ascii=False)))
    else:
        _print_answers(answers, relation is None)


def evidence(
    run: RunArgument,
    head: Annotated[str, typer.Option(help="The head, by id or name.", show_default=False)],
    relation: Annotated[str, typer.Option(help="The relation, by id or name.", show_default=False)],
    tail: Annotated[str, typer.Option(help="The tail, by id or name.", show_default=False)],
    k: Annotated[int, typer.Option("--k", min=1, help="How many similar known triples.")] = 5,
    asked: Annotated[Part, typer.Option(help="The part that is treated as missing.")] = Part.tail,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """Show why a triple is likely or not: similar known triples, paths between its ends, the texts compared.

    [bold]Examples[/]

      satkgc evidence runs/demo --head happy.a.01 --relation also_see --tail blissful.a.01

      satkgc evidence runs/demo --head happy.a.01 --relation also_see --tail blissful.a.01 --asked head

      satkgc evidence runs/demo --head happy.a.01 --relation also_see --tail blissful.a.01 --json
    """
    from dataclasses import asdict

    from satkgc.completion import Completer

    note_unfinished(run)
    support = Completer.load(run, device).evidence(head, relation, tail, k, asked.value)
    if as_json:
        print(clean(json.dumps(asdict(support), indent=1, ensure_ascii=False)))
    else:
        print(clean(_evidence_text(support)))


def prepare(
    run: RunArgument,
    index: Annotated[
        str,
        typer.Option(
            help="How vectors are searched: exact, faiss for millions of entities, or milvus, a vector database."
        ),
    ] = "exact",
    uri: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --index milvus: the server that keeps the vectors; its token is read from the environment "
            "variable MILVUS_TOKEN. (default: a database inside the run folder)",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Who encodes: local, this process; ray, a worker on every GPU or core of a machine or cluster."
        ),
    ] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was measured as JSON.")] = False,
    device: DeviceOption = "auto",
) -> None:
    """Make what a run needs to answer: entity vectors, their index, calibrated probabilities.

    The other commands do this when it is missing; this one does it again, or with another index. A preparation that was
    stopped continues where it was.

    [bold]Examples[/]

      satkgc prepare runs/demo

      satkgc prepare runs/wikidata5m --index faiss --device cuda

      satkgc prepare runs/wikidata5m --index milvus --uri http://localhost:19530

      satkgc prepare runs/wikidata5m --engine ray --device cuda
    """
    from satkgc.completion import Completer

    note_unfinished(run)
    facts = Completer.prepare(run, device, index, uri, engine)
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        for name, value in facts.items():
            typer.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {_short(value)}")


def _short(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _fact(text: str) -> Any:
    from satkgc.completion import Role

    parts = [part.strip() for part in text.split(" | " if " | " in text else "|")]
    if len(parts) != 3 or not all(parts) or (parts[0] == "?") == (parts[2] == "?"):
        remedy = 'write "? | relation | entity", or "entity | relation | ?" where the new entity is the tail'
        raise SatkgcError(f"--new-fact {text!r} is not a triple with one ?", remedy=remedy)
    head, relation, tail = parts
    return Role(relation, "head", tail) if head == "?" else Role(relation, "tail", head)


def _answer_file(completer: Any, questions: Path, total: int, out: Path | None, filters: dict[str, Any]) -> None:
    from satkgc.completion import answer_file, outcome_to_json
    from satkgc.progress import progress_bar

    errors = 0

    def lines() -> Iterator[str]:
        nonlocal errors
        with progress_bar(out is not None) as bar:
            task = bar.add_task("questions", total=total)
            for question, answers in answer_file(completer, questions, **filters):
                errors += isinstance(answers, SatkgcError)
                bar.advance(task)
                yield outcome_to_json(question, answers)

    if out is None:
        for line in lines():
            print(clean(line), flush=True)
    else:
        with atomic_write(out) as part, part.open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines())
        typer.echo(f"{out}: {total - errors:,} questions answered")
    if errors:
        what = f"{errors:,} of {total:,} questions could not be answered"
        raise SatkgcError(what, where=questions, remedy='see "error" in their lines of the answers')


def _print_answers(answers: list[Answer], relations: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    rows = []
    for place, a in enumerate(answers, 1):
        chance = "" if a.probability is None else f"{a.probability:.1%}"
        rows.append([str(place), clean(a.name), clean(a.id), chance, f"{a.score:.3f}", "yes" if a.known else ""])
    titles = ["#", "relation" if relations else "answer", "id", "probability", "score", "known"]
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    widths = [min(width, most) for width, most in zip(widths, (4, 40, 100, 11, 7, 5), strict=True)]
    console = Console(width=None if sys.stdout.isatty() else sum(widths) + 2 * len(widths) + 60)
    space = console.width - sum(widths) + widths[2] - 2 * len(widths)
    widths[2] = min(widths[2], max(20, space))  # a longer id wraps: the next command needs all of it
    left = console.width - sum(widths) - 2 * len(widths) - 2  # what rich's padding leaves for the description
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title, width in zip(titles, widths, strict=True):
        right = title in ("#", "probability", "score")
        justify: Any = "right" if right else "left"
        table.add_column(title, justify=justify, no_wrap=title != "id", overflow="fold", width=width)
    shown = any(a.experts for a in answers)
    objected = any(a.objection for a in answers)
    if shown:
        table.add_column("experts", no_wrap=True)
    if objected:
        table.add_column("objection", overflow="fold", min_width=20)
    described = not relations and not shown and not objected and left >= len("description")
    if described:
        table.add_column("description", no_wrap=True, width=left)
    for row, a in zip(rows, answers, strict=True):
        more = [", ".join(map(_expert, a.experts))] if shown else [a.description] if described else []
        if objected:
            more.append("" if a.objection is None else f"{a.objection.kind}: {a.objection.reason}")
        table.add_row(*map(_plain, row + more))
    console.print(table if answers else "no answer passes the filters")
    if any((e.share or 0) <= -0.005 for a in answers for e in a.experts):
        console.print("An expert with a share below 0% speaks against the answer.")


def _expert(expert: ExpertShare) -> str:
    return f"{expert.name} –" if expert.share is None else f"{expert.name} {expert.share:z.0%}"


def _evidence_text(evidence: Evidence) -> str:
    summary = f"{'in the graph' if evidence.known else 'not in the graph'}; score {evidence.score:.3f}"
    if evidence.probability is not None:
        summary += f", probability {evidence.probability:.1%} as the missing {evidence.asked}"
    lines = [summary, ""]
    if evidence.objection is not None:
        lines[1:1] = [f"{evidence.objection.kind}: {evidence.objection.reason}"]
    if evidence.experts:
        lines.append("what each expert adds to it against the other candidates, and its rank by that expert alone:")
        for expert in evidence.experts:
            said = "nothing to say" if expert.share is None else f"{expert.share:+z.0%}"
            rank = "" if expert.rank is None else f"  rank {expert.rank:,}"
            lines.append(f"  {expert.name:<12} {said:>5}{rank}")
        lines.append("")
    lines.append("closest known triples of the relation, by the similarity of their heads:")
    lines += [
        f"  {s.similarity:.2f}  {s.head_name} → {s.tail_name}  ({s.head}, {s.tail})" for s in evidence.similar
    ] or ["  none: no other triple has this relation, or this model does not tell which entities are alike"]
    lines += ["", "shortest path in the training graph, without the triple itself:"]
    lines.append(f"  {_path_text(evidence.path)}" if evidence.path else "  none connects the two")
    if evidence.strong_paths:
        lines += ["", "paths that the path model's answer rests on, and about what its own score loses without each"]
        lines[-1] += " (0.7: half the odds):"
        lines += [f"  {path.weight:.2f}  {_path_text(path.steps)}" for path in evidence.strong_paths]
    if evidence.query_text:  # of a model that reads texts
        lines += ["", "texts compared:", f"  question: {evidence.query_text}", f"  answer:   {evidence.entity_text}"]
    return "\n".join(lines)


def _path_text(steps: Sequence[Step]) -> str:
    ways = (f"— {s.relation_name} →" if s.direction == "out" else f"← {s.relation_name} —" for s in steps)
    stops = " ".join(f"{way} {step.target_name}" for way, step in zip(ways, steps, strict=True))
    return f"{steps[0].source_name} {stops}"


def _plain(text: str) -> Any:
    """Text from data, in which rich must not look for markup."""
    from rich.text import Text

    return Text(clean(text))
