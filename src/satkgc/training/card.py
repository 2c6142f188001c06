"""The model card: what a run is, in a page for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from satkgc.models.text import Objective
from satkgc.training.run import Run
from satkgc.training.settings import flat


def model_card(run: Run, metrics: dict[str, Any], objective: Objective) -> str:
    """Markdown about a finished run."""
    config, kg = run.config, run.kg
    parts = {
        "batches": f"{run.about.get('sampler', config.sampling.sampler)}, {config.sampling.batch_size} samples",
        **_loss(run),
        "backbone": f"{config.encoder.backbone}{' (tied)' if config.encoder.tied else ''}",
    }
    settings = "\n".join(f"| {name} | {value} |" for name, value in flat(asdict(config)).items())
    return f"""# {kg.name}, recipe {config.recipe}

A pair of text encoders that complete a knowledge graph: given (head, relation, ?) or (?, relation, tail), they rank all
entities by the cosine of two vectors.

Trained with satkgc {run.about["version"]} on {kg.num_entities:,} entities, {kg.num_relations:,} relations and
{len(kg.train):,} triples for {metrics["steps"]:,} steps in {metrics["training_minutes"]:.1f} minutes on
{metrics["ranks"]} × {metrics["device"]}; the weights of step {metrics["kept_step"]:,} were kept.

| part | |
|---|---|
{chr(10).join(f"| {name} | {value} |" for name, value in parts.items())}
| τ, β at the end | {objective.temperature.item():.4f}, {objective.beta.item():.2e} |

{_results(metrics)}
## Use

```python
import satkgc

completer = satkgc.Run.load("{run.folder.as_posix()}").completer()
completer.tails("some entity", "some relation", k=5)
```

`satkgc evaluate {run.folder} --split test` measures it on the test triples, which training never looked at.

## Limits

The model knows the texts and the graph it was trained on. Scores order answers; they are not probabilities unless
calibrated. What is false or one-sided in the texts or the triples comes back in the answers.

## Settings

| setting | value |
|---|---|
{settings}
"""


def _loss(run: Run) -> dict[str, str]:
    if "objective" in run.about:
        return {"loss": run.about["objective"]}
    config = run.config.objective
    return {
        "proximity": config.proximity,
        "frequency weights": "on" if config.frequency else "off",
        "correction for common answers": f"popularity {config.popularity:g}",
    }


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
