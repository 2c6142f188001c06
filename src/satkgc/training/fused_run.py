"""The last stage of a fused run: its experts are trained, their weights are fitted, and what comes of it is written."""

from __future__ import annotations

import json
import shutil
from typing import Any

import torch

from satkgc.arrays import Int64
from satkgc.evaluation import EvaluationConfig, Scorer, evaluate
from satkgc.files import atomic_folder, atomic_write
from satkgc.manifest import write_json, write_manifest
from satkgc.models import FUSION, FusedConfig, FusedModel
from satkgc.training.display import Display
from satkgc.training.interrupts import Interrupts
from satkgc.training.mixture import fit_mixture, held_back_rows
from satkgc.training.run_folder import RunFolder, model_sum

MEASURES = ("mrr", "hits@1", "hits@3", "hits@10")


def fit_or_stop(run: RunFolder, device: torch.device, display: Display) -> str | None:
    """Fit the mixture of a run whose experts are finished; returns the signal that interrupted it, if one did.

    Nothing is kept of a fit that was stopped: the next one begins anew, and ends the same.
    """
    with Interrupts(display.say) as interrupts:
        interrupts.unless_signalled(lambda: _fit(run, device, display))
    if interrupts.signal is not None:
        display.say(f"stopped while fitting the mixture ({interrupts.signal}); it goes on with --resume")
    return interrupts.signal


def _fit(run: RunFolder, device: torch.device, display: Display) -> None:
    config, kg = run.config, run.kg
    assert isinstance(config.model, FusedConfig)
    display.say(f"fitting the mixture of {', '.join(config.experts)}")
    experts = {name: expert.model_on(kg, str(device)) for name, expert in run.experts.items()}
    model = FusedModel(kg, config.model, experts)
    seen, held = held_back_rows(len(kg.valid), config.model.held_back)
    model.mixture, fit = fit_mixture(model, kg.valid[seen], progress=True)
    rows = held if len(held) else None
    alone = {name: _alone(run.experts[name], model.alone(name), config.evaluation, rows) for name in model.names}
    report = evaluate(model, kg, "valid", config.evaluation, rows=rows, progress=True)
    weights = model.mixture.to_json(kg)
    for name, expert in run.experts.items():
        weights["experts"][name] |= {
            "recipe": expert.config.recipe,
            "kind": expert.config.model.kind,
            "model": model_sum(expert),
            "valid": _measures(alone[name]),
        }
    relations = weights.pop("relations")
    content = {
        **weights,
        "valid": _measures(report.metrics()["both"]),
        "measured_on": {"triples": len(report.triples), "held_back": len(held)},
        "fit": fit,
        "relations": relations,
    }
    with atomic_folder(run.folder / "model") as part:
        model.save(part)
        (part / FUSION).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_manifest(part)
    shutil.rmtree(run.folder / "index", ignore_errors=True)  # of a model before this one
    metrics: dict[str, Any] = {
        "finished": True,
        "steps": sum(part.metrics["steps"] for part in run.experts.values()),
        "training_minutes": round(sum(part.metrics.get("training_minutes", 0) for part in run.experts.values()), 3),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "ranks": 1,
        "experts": {name: _measures(own) for name, own in alone.items()},
        "valid": report.to_json(),
    }
    with atomic_write(run.folder / "README.md") as part:
        part.write_text(fused_card(run, content), encoding="utf-8")
    write_json(run.folder / "metrics.json", metrics)  # last: it says that the run is finished
    figures = ", ".join(f"{name} {own['mrr']:.4f}" for name, own in alone.items())
    which = "held back from the fit" if len(held) else "all, which the weights were fitted to"
    display.say(f"validation MRR ({which}): {figures}; fused {report.metrics()['both']['mrr']:.4f}")


def _alone(expert: RunFolder, scorer: Scorer, config: EvaluationConfig, rows: Int64 | None) -> dict[str, float]:
    """What an expert reaches by itself; its own run has measured it, unless on other triples or in another way."""
    measured = expert.metrics.get("valid")
    if measured is not None and rows is None and expert.config.evaluation == config:
        return dict(measured["both"])
    return evaluate(scorer, expert.kg, "valid", config, rows=rows, progress=True).metrics()["both"]


def fused_card(run: RunFolder, fusion: dict[str, Any]) -> str:
    """Markdown about a fused run."""
    kg, experts, measured = run.kg, fusion["experts"], fusion["measured_on"]
    head = "| | recipe | weight | MRR | Hits@1 | Hits@3 | Hits@10 |\n|---|---|---|---|---|---|---|\n"
    rows = [
        f"| {name} | {own['recipe']} | {own['weight']:.2f} | {_cells(own['valid'])} |" for name, own in experts.items()
    ]
    rows.append(f"| **fused** | | | {_cells(fusion['valid'])} |")
    which = (
        f"{measured['held_back']:,} validation triples that were held back from the fit"
        if measured["held_back"]
        else f"the {measured['triples']:,} validation triples that the weights were fitted to"
    )
    return f"""# {kg.name}, {" + ".join(experts)}

A model that completes a knowledge graph: given (head, relation, ?) or (?, relation, tail), it ranks all entities. It is
a mixture of {len(experts)} experts, trained with satkgc {run.about["version"]} on {kg.num_entities:,} entities,
{kg.num_relations:,} relations and {len(kg.train):,} triples. Each lies in `experts/` as a run of its own, with its own
card; `model/fusion.json` has the weights of each relation and direction.

## Validation

Filtered ranks of {which}. Weights are those over all relations.

{head}{chr(10).join(rows)}

## Use

```python
import satkgc

completer = satkgc.Run.load("{run.folder.as_posix()}").completer()
completer.tails("some entity", "some relation", k=5)
```

`satkgc evaluate {run.folder} --split test` measures it on the test triples, which neither training nor the fit saw.

## Limits

The experts know the graph that they were trained on, and the texts if they read them. Scores order answers; they are
not probabilities unless calibrated. What is false or one-sided in the texts or the triples comes back in the answers.
"""


def _measures(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(metrics[name], 6) for name in MEASURES}


def _cells(measures: dict[str, float]) -> str:
    return " | ".join(f"{measures[name]:.3f}" for name in MEASURES)
