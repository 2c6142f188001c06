"""`satkgc evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from satkgc.cli.arguments import DeviceOption, RunArgument, note_unfinished
from satkgc.errors import SatkgcError
from satkgc.files import check_new


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(evaluate)


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option(help="Which triples to ask: test or valid.")] = "test",
    candidates: Annotated[
        str | None,
        typer.Option(help="Whom to rank: all entities, those of the split, or a number: so many sampled per question."),
    ] = None,
    ties: Annotated[
        str | None, typer.Option(help="Equal scores: optimistic, realistic (the fair one) or pessimistic.")
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="HOPS[:WEIGHT]",
            help="Add WEIGHT (0.05) to candidates within HOPS of the question's entity in the training graph.",
        ),
    ] = None,
    memory_mib: Annotated[int | None, typer.Option(help="Memory for vectors and scores.")] = None,
    device: DeviceOption = "auto",
    ranks: Annotated[Path | None, typer.Option(help="Keep the rank of every triple in this new Parquet file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with all metrics and break-downs.")] = False,
) -> None:
    """Rank the answers of held-out triples among all entities, both ways, without the other known answers.

    The settings are those the run was trained with (all entities, realistic ties unless its recipe says otherwise);
    options change them for this evaluation.

    [dim]Examples:[/]
      satkgc evaluate runs/demo
      satkgc evaluate runs/fb15k-237n --candidates 1000 --json
      satkgc evaluate runs/demo --split valid --rerank 2:0.05 --ranks ranks.parquet
      torchrun --nproc-per-node 4 -m satkgc evaluate runs/wn18rr
    """
    import json as json_module

    from rich.console import Console

    from satkgc.processes import Processes
    from satkgc.training import RunFolder

    if split not in ("test", "valid"):
        raise SatkgcError(f"unknown split {split!r}", remedy="choose test or valid")
    folder = RunFolder.load(run)
    note_unfinished(run)
    if ranks is not None:
        check_new(ranks, ".parquet")
    changes = {**_candidates(candidates), **_rerank(rerank), "ties": ties, "memory_mib": memory_mib}
    config = folder.config.evaluation.replace(**{n: value for n, value in changes.items() if value is not None})
    report = folder.evaluate(split, config, device=device, progress=True)
    if not Processes.join(device).first:
        return
    if ranks is not None:
        report.save_ranks(ranks)
    if json:
        print(json_module.dumps(report.to_json()))
    else:
        Console().print(report.table())


def _candidates(text: str | None) -> dict[str, Any]:
    """Settings for all, split or a number."""
    if text is None or text in ("all", "split"):
        return {"candidates": text}
    if not text.isdigit() or int(text) < 1:
        raise SatkgcError(f"--candidates {text}", remedy="give all, split or a number of candidates to sample")
    return {"sampled": int(text)}


def _rerank(text: str | None) -> dict[str, Any]:
    """Settings for HOPS[:WEIGHT]."""
    if text is None:
        return {}
    hops, _, weight = text.partition(":")
    try:
        return {"rerank_hops": int(hops), "rerank_weight": float(weight) if weight else None}
    except ValueError as error:
        raise SatkgcError(f"--rerank {text}", remedy="give HOPS or HOPS:WEIGHT, such as 2:0.05") from error
