"""The experiments by name, from rows.toml, and how one is done again: plan, train, evaluate on test once, keep it."""

from __future__ import annotations

import difflib
import itertools
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satkgc.analysis.results import Evaluation, Result, load_results, save_result
from satkgc.errors import SatkgcError
from satkgc.settings import flatten

if TYPE_CHECKING:  # training loads torch, which a list of the rows and the tables need not wait for
    from satkgc.evaluation import Report
    from satkgc.training import Config, RunFolder

MPNET = "all-mpnet-base-v2"
NO_TEXT = "none"  # the backbone of a model that reads no text
BACKBONE = "model.encoder.backbone"
SEEDS = (0, 1)
_FILE = Path(__file__).parent / "rows.toml"
_HUB = {
    MPNET: f"sentence-transformers/{MPNET}",
    **{name: f"google-bert/{name}" for name in ("bert-base-uncased", "bert-large-uncased")},
    **{name: f"microsoft/{name}" for name in ("deberta-base", "deberta-large")},
}
_OWN_LINES = ("applied", BACKBONE, "training.seed")  # in other lines of a plan
_POINTS = 100  # of a curve that is kept


@dataclass(frozen=True)
class Row:
    """One experiment: a recipe on a dataset with a backbone, if it reads text, a seed, and what it changes."""

    name: str
    group: str  # the table it belongs to
    label: str  # what the table calls it
    dataset: str
    recipe: str
    backbone: str = MPNET
    seed: int = 0
    overrides: dict[str, Any] = field(default_factory=dict)
    paper: str | None = None  # the figure to compare with
    sampled: int = 0  # evaluated among so many sampled candidates too

    def settings(self, backbone: str | None = None) -> dict[str, Any]:
        """All that is laid over the recipe; the backbone may be a folder that holds the row's."""
        settings = {**self.overrides, "training.seed": self.seed}
        if self.backbone != NO_TEXT:
            settings[BACKBONE] = backbone or _HUB.get(self.backbone, self.backbone)
        elif backbone is not None:
            raise SatkgcError(f"{self.name} reads no text", remedy="leave --backbone out")
        return settings


@cache
def table_rows(file: Path = _FILE) -> tuple[Row, ...]:
    """The rows of all tables in the file's order; a row that stands in several tables comes once for each."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = []
    for entry in data["row"]:
        seeds = entry.pop("seeds", (0,))
        rows += [Row(**{**entry, "name": f"{entry['name']}{_ending(seed)}", "seed": seed}) for seed in seeds]
    for family in data["family"]:
        first = {_experiment(row): row for row in reversed(rows)}
        for row in _unfold(family, data["shared"], data["backbones"]):
            same = first.get(_experiment(row), row)  # the same experiment under another label is not done again
            rows.append(replace(same, group=row.group, label=row.label, paper=row.paper))
    return tuple(rows)


def load_rows() -> dict[str, Row]:
    """All rows by name; one in several tables as it is in the first."""
    rows: dict[str, Row] = {}
    for row in table_rows():
        rows.setdefault(row.name, row)
    return rows


@cache
def load_groups(file: Path = _FILE) -> dict[str, str]:
    """The titles of the tables, in order."""
    return tomllib.loads(file.read_text(encoding="utf-8"))["groups"]


def find_row(name: str) -> Row:
    """A row by its name; an unknown one is answered with those that look like it."""
    rows = load_rows()
    if name not in rows:
        near = difflib.get_close_matches(name, rows, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`satkgc reproduce --list` shows them all"
        raise SatkgcError(f"unknown row {name!r}", remedy=hint)
    return rows[name]


@dataclass(frozen=True)
class Plan:
    """What a row will do, and how long it takes by what has been measured."""

    row: Row
    config: Config
    steps: int
    epochs: float
    minutes: float | None
    hardware: str | None
    source: str | None  # the result that says so

    def lines(self) -> list[str]:
        """For people, before it starts."""
        from satkgc.training import make_config

        row, sampling = self.row, self.config.sampling
        bare = flatten(make_config(row.recipe).model_dump())
        laid = {n: value for n, value in flatten(self.config.model_dump()).items() if bare.get(n) != value}
        settings = _list({name: laid[name] for name in laid if name not in {*row.overrides, *_OWN_LINES}})
        batches = f"in batches of {sampling.batch_size:,}"
        if experts := self.config.experts:
            batches = f"of {len(experts)} experts ({', '.join(experts)}), then the fit of their mixture"
        reads = "without text" if row.backbone == NO_TEXT else f"with {row.backbone}"
        lines = [
            f"{row.name}: recipe {row.recipe} on {row.dataset} {reads}, seed {row.seed}",
            f"changes to the recipe: {_list(row.overrides)}",
            f"settings for {row.dataset}: {settings}",
            f"{self.steps:,} steps ({self.epochs:.3g} epochs) {batches}, then one evaluation on test",
        ]
        if self.minutes is None:
            return [*lines, "how long it takes has not been measured yet"]
        how = "measured" if self.source == row.name else f"by the steps of {self.source}"
        return [*lines, f"takes about {self.minutes:.0f} minutes of training on {self.hardware} ({how})"]


def make_plan(row: Row, results: Path, backbone: str | None = None) -> Plan:
    """Look up what a row needs; its time from its own result, or else from one of the same dataset and backbone."""
    from satkgc.kg import KnowledgeGraph, find_entry
    from satkgc.training import make_config

    if Path(row.dataset).exists():
        kg = KnowledgeGraph.load(row.dataset)
        benchmark, triples = kg.benchmark, len(kg.train)
    else:  # the catalogue knows, and nothing has to be fetched for a plan
        benchmark, triples = row.dataset, find_entry(row.dataset).counts.train
    config = make_config(row.recipe, benchmark=benchmark, triples=triples, overrides=row.settings(backbone))
    steps = config.total_steps(triples)
    known = load_results(results)
    measured = known.get(row.name)
    if measured is None and row.backbone != NO_TEXT and not config.experts:  # other steps differ too much in cost
        alike = (r for r in known.values() if (r.dataset, r.backbone) == (row.dataset, row.backbone))
        measured = next(alike, None)
    return Plan(
        row,
        config,
        steps,
        config.total_epochs(triples),
        measured.minutes * steps / measured.steps if measured else None,
        measured.hardware if measured else None,
        measured.row if measured else None,
    )


def reproduce(
    row: Row,
    out: Path,
    results: Path,
    *,
    backbone: str | None = None,
    device: str = "auto",
    resume: bool = False,
    max_minutes: float | None = None,
    say: Callable[[str], None] = print,
) -> Result | None:
    """Train, evaluate on test, write the result; None if the run stopped before its end and can be resumed."""
    from satkgc.processes import Processes
    from satkgc.training import train_or_stop

    how = {"training.max_minutes": max_minutes, "training.device": device}
    run, stopped = train_or_stop(
        row.dataset, row.recipe, out, overrides={**how, **row.settings(backbone)}, resume=resume
    )
    if stopped is not None:
        return None
    report = run.evaluate("test", device=device, progress=True)
    result = make_result(row, run, report)
    if Processes.join(device).first:
        report.save_ranks(run.folder / "ranks-test.parquet")
        say(f"wrote {save_result(result, results)}")
    return result


def make_result(row: Row, run: RunFolder, report: Report) -> Result:
    """All that is kept of a finished run and its evaluation."""
    metrics = run.metrics
    config = run.config.model_dump()
    for part in config["experts"].values() or [config]:
        if "encoder" in part["model"]:
            part["model"]["encoder"]["backbone"] = row.backbone  # not the folder it was read from
    also = [Evaluation(**Evaluation.parts_of(report.sampled(row.sampled).to_json()))] if row.sampled else []
    return Result(
        **Evaluation.parts_of(report.to_json()),
        row=row.name,
        dataset=row.dataset,
        recipe=row.recipe,
        backbone=row.backbone,
        seed=row.seed,
        steps=metrics["steps"],
        epochs=run.config.total_epochs(len(run.kg.train)),
        minutes=metrics["training_minutes"],
        hardware=_hardware(metrics),
        commit=run.about.get("commit") or "unknown",
        overrides=dict(row.overrides),
        config=config,
        also=also,
        valid_mrr=metrics["valid"]["both"]["mrr"] if "valid" in metrics else None,
        curves=_curves(run.log()),
    )


def _unfold(family: dict[str, Any], shared: dict[str, Any], backbones: dict[str, Any]) -> Iterator[Row]:
    choices = itertools.product(family["datasets"], family["variants"], family["backbones"], SEEDS)
    for dataset, variant, backbone, seed in choices:
        ending = ("" if backbone == MPNET else f"-{backbone}") + _ending(seed)
        yield Row(
            name=f"{shared[dataset]['prefix']}-{family['name']}-{variant['name']}{ending}",
            group=family["name"],
            label=variant["label"],
            dataset=dataset,
            recipe=variant["recipe"],
            backbone=backbone,
            seed=seed,
            overrides={**shared[dataset]["overrides"], **backbones[backbone], **variant.get("overrides", {})},
            paper=variant.get("paper"),
        )


def _ending(seed: int) -> str:
    return f"-seed{seed}" if seed else ""


def _experiment(row: Row) -> tuple[Any, ...]:
    """What makes two rows the same experiment, whatever they are called."""
    return row.dataset, row.recipe, row.backbone, row.seed, tuple(sorted(row.overrides.items()))


def _list(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "nothing"


def _hardware(metrics: dict[str, Any]) -> str:
    """What it ran on, and what SATKGC_HARDWARE_NOTE says of that, such as "shared by three runs"."""
    name = f"CPU, {os.cpu_count()} cores" if metrics["device"] == "cpu" else metrics["device"]
    several = f"{metrics['ranks']} × " if metrics["ranks"] > 1 else ""
    return ", ".join(filter(None, (several + name, os.environ.get("SATKGC_HARDWARE_NOTE"))))


def _curves(log: list[dict[str, Any]]) -> dict[str, list[list[float]]]:
    loss = [[record["step"], record["loss"]] for record in log if "loss" in record]
    valid = [[record["step"], record["validation"]["both"]["mrr"]] for record in log if "validation" in record]
    return {"loss": loss[:: max(1, len(loss) // _POINTS)], "valid_mrr": valid}
