"""How hard the in-batch negatives of a run are: their cosines by epoch (Figure 7), and what is lost on false positives
(Table 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from satkgc.analysis.chart import Chart, align
from satkgc.analysis.options import Options, Runs, one_graph
from satkgc.errors import SatkgcError
from satkgc.models import NEGATIVES_OVER, StepContext, TextModel
from satkgc.sampling import make_sampler

HARD = "negatives_over_02"  # what the paper calls hard: from 0.2 to 1
BATCHES = 20
_EPOCHS = 4  # of which the ranges are shown


def chart_cosines(runs: Runs, options: Options) -> list[Chart]:
    """Figure 7, from the log of training: the share of hard negatives by epoch, and cosines of some epochs."""
    hard, ranges = {}, {}
    for label, run in runs.items():
        epochs = shares_by_epoch(run.log(), run.config.sampling.steps_per_epoch(len(run.kg.train)))
        if not epochs:
            problem = "its log has no cosines of negatives"
            raise SatkgcError(problem, where=label, remedy="train a text model with this version")
        hard[label] = {str(epoch): shares[HARD] for epoch, shares in epochs.items()}
        places = np.unique(np.linspace(0, len(epochs) - 1, _EPOCHS).round().astype(int))
        for epoch in np.array(list(epochs))[places].tolist():
            ranges[f"{label}, epoch {epoch}"] = shares_in_ranges(epochs[epoch])
    return [
        align("Share of in-batch negatives with a cosine over 0.2", "epoch", hard, "line"),
        align("Share of in-batch negatives", "cosine", ranges),
    ]


def shares_by_epoch(log: Sequence[dict[str, Any]], steps: int) -> dict[int, dict[str, float]]:
    """Of each epoch the mean of the shares that the log has; epochs count from 1."""
    by_epoch: dict[int, list[dict[str, float]]] = {}
    for record in log:
        if HARD in record.get("metrics", {}):
            by_epoch.setdefault((record["step"] - 1) // steps + 1, []).append(record["metrics"])
    return {
        epoch: {name: float(np.mean([part[name] for part in parts])) for name in NEGATIVES_OVER}
        for epoch, parts in by_epoch.items()
    }


def shares_in_ranges(over: dict[str, float]) -> dict[str, float]:
    """Between two bounds lies what is above the one and not above the other."""
    bounds = [-1.0, *NEGATIVES_OVER.values(), 1.0]
    above = [1.0, *(over[name] for name in NEGATIVES_OVER), 0.0]
    return {f"{bounds[i]:g} to {bounds[i + 1]:g}": above[i] - above[i + 1] for i in range(len(bounds) - 1)}


def chart_loss(runs: Runs, options: Options) -> list[Chart]:
    """Table 13: the mean loss, with and without ψ, of all samples and of the false positives of the last run.

    A sample is a false positive if the model gives one of its in-batch negatives a higher cosine than its answer. The
    batches are those of each run's sampler, the texts those of training, dropout is off.
    """
    one_graph(runs)
    models = {label: _text_model(label, run.model(options.device)) for label, run in runs.items()}
    judge, series = list(models.values())[-1], {}
    for label, run in runs.items():
        sampler = make_sampler(run.kg, run.config.sampling, run.config.training.seed, models[label].needs)
        steps = options.steps or BATCHES
        parts = [
            sample_losses(models[label], judge, sampler.draw(step))
            for step in options.track(range(steps), f"{label}: losses", steps)
        ]
        loss, psi, wrong = (np.concatenate([part[place] for part in parts]) for place in range(3))
        for name, values in (("ψ·L", psi * loss), ("L", loss)):
            means = {"all triples": float(values.mean())}
            means |= {"false positives": float(values[wrong].mean())} if wrong.any() else {}
            series[f"{label}, {name}"] = means
    return [align("Mean loss", f"false positives of {list(models)[-1]}", series)]


@torch.no_grad()
def sample_losses(model: TextModel, judge: TextModel, batch: Any) -> tuple[Any, Any, Any]:
    """Of every sample of a batch L, ψ of its answer, and whether it is a false positive of the judge.  # (B,) each"""
    collated = model.collate(batch)
    queries, tails = model.batch_vectors(collated)
    loss: Any = model.contrastive
    losses = loss.sample_losses(queries, tails, collated.to(model.device))
    cosine, mask = losses.cosine, losses.mask
    if judge is not model:
        other = judge.collate(batch)
        queries, tails = judge.batch_vectors(other)
        cosine = queries.float() @ tails.float().T
    rivals = cosine.masked_fill(mask | torch.eye(len(mask), dtype=torch.bool, device=mask.device), -torch.inf)
    wrong = rivals.max(1).values > cosine.diagonal()
    psi = loss.psi[collated.tails.to(model.device)]
    return losses.rows.cpu().numpy(), psi.cpu().numpy(), wrong.cpu().numpy()


def _text_model(label: str, model: Any) -> TextModel:
    if not isinstance(model, TextModel):
        what = f"{type(model).__name__} has no in-batch negatives"
        raise SatkgcError(what, where=label, remedy="choose a run of a text model, such as recipe satkgc")
    model.eval().prepare_training(StepContext())
    return model
