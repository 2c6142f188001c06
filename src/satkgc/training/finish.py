"""What a run leaves behind: the model, its validation metrics, its curves and a model card."""

from __future__ import annotations

import shutil
from typing import Any

import torch

from satkgc.files import atomic_folder, atomic_write, sync
from satkgc.manifest import Damaged, write_json, write_manifest
from satkgc.settings import flatten
from satkgc.training.log import draw_curves
from satkgc.training.loop import Parts
from satkgc.training.run_folder import RunFolder


def keep_model(run: RunFolder, parts: Parts) -> None:
    """Write the best weights so far, or the last ones, to the run's model folder; they stay in every rank's model."""
    state, weights = parts.state, None
    parts.context.processes.any(False)  # the others wait for the first to have written them
    if state.best_name is not None:
        try:
            tensors, _, _ = parts.checkpoints.read(parts.checkpoints.folder / state.best_name)
            weights = tensors["weights"]
        except Damaged as error:
            parts.display.say(f"the best weights are lost, the last ones are kept instead: {error}")
            state.best = None
    if weights is not None:
        state.load_weights(weights)
    if not parts.context.processes.first:
        return
    with atomic_folder(run.folder / "model") as part:
        state.model.save(part)
        write_manifest(part)
    shutil.rmtree(run.folder / "index", ignore_errors=True)  # entity vectors of the weights before


def finish(run: RunFolder, parts: Parts) -> None:
    """Measure the kept model on all validation triples; write metrics, curves and model card; drop the checkpoints."""
    state, processes = parts.state, parts.context.processes
    device = processes.device
    metrics: dict[str, Any] = {
        "finished": True,
        "steps": parts.steps,
        "kept_step": state.best["step"] if state.best else state.step,
        "training_minutes": round(state.seconds / 60, 5),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "ranks": processes.world,
    }
    report = None
    if parts.validation is not None:
        report = parts.validation.of_all(again=metrics["kept_step"] != state.step)
    if not processes.first:
        return
    if report is not None:
        metrics["valid"] = report.to_json()
        parts.display.say(f"validation MRR of the kept model, all triples: {metrics['valid']['both']['mrr']:.4f}")
    draw_curves(run.log(), run.folder / "curves.png")
    with atomic_write(run.folder / "README.md") as part:
        part.write_text(model_card(run, metrics), encoding="utf-8")
    sync(run.folder / "log.jsonl")
    write_json(run.folder / "metrics.json", metrics)  # last: it says that the run is finished
    if not state.config.keep_checkpoints:
        shutil.rmtree(parts.checkpoints.folder, ignore_errors=True)


def model_card(run: RunFolder, metrics: dict[str, Any]) -> str:
    """Markdown about a finished run."""
    config, kg = run.config, run.kg
    steps = [record for record in run.log() if "metrics" in record]
    parts = {
        "model": config.model.kind,
        "batches": f"{run.about.get('sampler', config.sampling.sampler)}, {config.sampling.batch_size} samples",
        **({"loss": run.about["loss"]} if "loss" in run.about else {}),
        **{f"{name.replace('_', ' ')} at the end": f"{value:.4g}" for name, value in _last_metrics(steps).items()},
    }
    settings = "\n".join(f"| {name} | {value} |" for name, value in flatten(config.model_dump()).items())
    return f"""# {kg.name}, recipe {config.recipe}

A model that completes a knowledge graph: given (head, relation, ?) or (?, relation, tail), it ranks all entities.

Trained with satkgc {run.about["version"]} on {kg.num_entities:,} entities, {kg.num_relations:,} relations and
{len(kg.train):,} triples for {metrics["steps"]:,} steps in {metrics["training_minutes"]:.1f} minutes on
{metrics["ranks"]} × {metrics["device"]}; the weights of step {metrics["kept_step"]:,} were kept.

| part | |
|---|---|
{chr(10).join(f"| {name} | {value} |" for name, value in parts.items())}

{_results(metrics)}
## Use

```python
import satkgc

completer = satkgc.Run.load("{run.folder.as_posix()}").completer()
completer.tails("some entity", "some relation", k=5)
```

`satkgc evaluate {run.folder} --split test` measures it on the test triples, which training never looked at.

## Limits

The model knows the graph it was trained on, and the texts if it reads them. Scores order answers; they are not
probabilities unless calibrated. What is false or one-sided in the texts or the triples comes back in the answers.

## Settings

| setting | value |
|---|---|
{settings}
"""


def _last_metrics(steps: list[dict[str, Any]]) -> dict[str, float]:
    return steps[-1]["metrics"] if steps else {}


def _results(metrics: dict[str, Any]) -> str:
    if "valid" not in metrics:
        return ""
    names = ("mrr", "hits@1", "hits@3", "hits@10")
    report = metrics["valid"]
    rows = "\n".join(
        f"| {direction} | " + " | ".join(f"{report[direction][name]:.3f}" for name in names) + " |"
        for direction in ("head", "tail", "both")
    )
    return f"""## Validation

Filtered ranks, {report["triples"]:,} triples, candidates: {report["candidates"]}, ties: {report["ties"]}.

| direction | MRR | Hits@1 | Hits@3 | Hits@10 |
|---|---|---|---|---|
{rows}

"""
