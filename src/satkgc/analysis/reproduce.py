"""Do an experiment again: say what it takes, train it, evaluate it on test once, keep the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from satkgc.analysis.results import Evaluation, Result, load_results, save_result
from satkgc.analysis.rows import MPNET, Row
from satkgc.evaluation import Report
from satkgc.kg import KnowledgeGraph, find_entry
from satkgc.training import Config, Run, make_config
from satkgc.training.settings import flat
from satkgc.training.trainer import train_or_stop

_HUB = {MPNET: f"sentence-transformers/{MPNET}"}
_SAID = ("applied", "encoder.backbone", "training.seed")  # in other lines of a plan
_POINTS = 100  # of a curve that is kept


@dataclass(frozen=True)
class Plan:
    """What a row will do, and how long it takes by what has been measured."""

    row: Row
    config: Config
    steps: int
    epochs: float
    minutes: float | None
    hardware: str | None
    measured: str | None  # the result that says so

    def lines(self) -> list[str]:
        """For people, before it starts."""
        row, sampling = self.row, self.config.sampling
        bare = flat(asdict(make_config(row.recipe)))
        laid = {name: value for name, value in flat(asdict(self.config)).items() if bare[name] != value}
        settings = _listed({name: laid[name] for name in laid if name not in {*row.overrides, *_SAID}})
        lines = [
            f"{row.name}: recipe {row.recipe} on {row.dataset} with {row.backbone}, seed {row.seed}",
            f"changes to the recipe: {_listed(row.overrides)}",
            f"settings for {row.dataset}: {settings}",
            f"{self.steps:,} steps ({self.epochs:.3g} epochs) in batches of {sampling.batch_size:,}, "
            "then one evaluation on test",
        ]
        if self.minutes is None:
            return [*lines, "how long it takes has not been measured yet"]
        how = "measured" if self.measured == row.name else f"by the steps of {self.measured}"
        return [*lines, f"takes about {self.minutes:.0f} minutes of training on {self.hardware} ({how})"]


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "nothing"


def make_plan(row: Row, results: Path, backbone: str | None = None) -> Plan:
    """Look up what a row needs; its time from its own result, or else from one of the same dataset and backbone."""
    config = make_config(row.recipe, graph=row.dataset, overrides=_overrides(row, backbone))
    local = Path(row.dataset).exists()  # else the catalogue knows, and nothing has to be fetched for a plan
    triples = len(KnowledgeGraph.load(row.dataset).train) if local else find_entry(row.dataset).counts.train
    steps = config.total_steps(triples)
    known = load_results(results)
    alike = (r for r in known.values() if (r.dataset, r.backbone) == (row.dataset, row.backbone))
    measured = known.get(row.name) or next(alike, None)
    return Plan(
        row,
        config,
        steps,
        steps / config.sampling.steps_per_epoch(triples),
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
    resume: bool = False,
    max_minutes: float | None = None,
    say: Callable[[str], None] = print,
) -> Result | None:
    """Train, evaluate on test, write the result; None if the run stopped before its end and can be resumed."""
    overrides = {**_overrides(row, backbone), "training.max_minutes": max_minutes}
    run, stopped = train_or_stop(row.dataset, row.recipe, out, overrides=overrides, resume=resume)
    if stopped is not None:
        return None
    report = run.evaluate("test", progress=True)
    report.save_ranks(run.folder / "ranks-test.parquet")
    result = make_result(row, run, report)
    say(f"wrote {save_result(result, results)}")
    return result


def make_result(row: Row, run: Run, report: Report) -> Result:
    """All that is kept of a finished run and its evaluation."""
    metrics = run.metrics
    config = asdict(run.config)
    config["encoder"]["backbone"] = row.backbone  # not the folder it was read from
    also = [Evaluation(**Evaluation.parts_of(report.sampled(row.sampled).to_json()))] if row.sampled else []
    return Result(
        **Evaluation.parts_of(report.to_json()),
        row=row.name,
        dataset=row.dataset,
        recipe=row.recipe,
        backbone=row.backbone,
        seed=row.seed,
        steps=metrics["steps"],
        epochs=metrics["steps"] / run.config.sampling.steps_per_epoch(len(run.kg.train)),
        minutes=metrics["training_minutes"],
        hardware=_hardware(metrics),
        commit=run.about.get("commit") or "unknown",
        overrides=dict(row.overrides),
        config=config,
        also=also,
        valid_mrr=metrics["valid"]["both"]["mrr"] if "valid" in metrics else None,
        curves=_curves(run.log()),
    )


def _overrides(row: Row, backbone: str | None) -> dict[str, Any]:
    chosen = backbone or _HUB.get(row.backbone, row.backbone)
    return {**row.overrides, "training.seed": row.seed, "encoder.backbone": chosen}


def _hardware(metrics: dict[str, Any]) -> str:
    """What it ran on, and what SATKGC_HARDWARE_NOTE says of that, such as "shared by three runs"."""
    name = f"CPU, {os.cpu_count()} cores" if metrics["device"] == "cpu" else metrics["device"]
    several = f"{metrics['ranks']} × " if metrics["ranks"] > 1 else ""
    return ", ".join(filter(None, (several + name, os.environ.get("SATKGC_HARDWARE_NOTE"))))


def _curves(log: list[dict[str, Any]]) -> dict[str, list[list[float]]]:
    loss = [[record["step"], record["loss"]] for record in log if "loss" in record]
    valid = [[record["step"], record["validation"]["both"]["mrr"]] for record in log if "validation" in record]
    return {"loss": loss[:: max(1, len(loss) // _POINTS)], "valid_mrr": valid}
