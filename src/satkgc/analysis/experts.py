"""What each expert of a fused run is worth: every one alone, every pair, and all of them, by relation category."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.analysis.chart import Chart
from satkgc.analysis.options import Options, Runs
from satkgc.arrays import Float64, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation import DIRECTIONS, RankingTask, candidate_entities, find_rivals, split_triples
from satkgc.kg import CATEGORIES, relation_categories
from satkgc.models import FUSION, FusedModel, Mixture, Questions
from satkgc.training import RunFolder, fit_parts

QUESTIONS = 64  # scored at a time, at most
SCORES = 1 << 24  # of all experts that are held at once, at most
MEASURES: dict[str, Callable[[Float64], Any]] = {
    "MRR": lambda rank: 1 / rank,
    "Hits@1": lambda rank: rank <= 1,
    "Hits@10": lambda rank: rank <= 10,
}


@dataclass(frozen=True, eq=False)
class Combination:
    """Some of the experts, and the weights that they have without the others."""

    name: str
    experts: list[int]  # n, their places
    mixture: Mixture


def chart_experts(runs: Runs, options: Options) -> list[Chart]:
    """MRR, Hits@1 and Hits@10 of each part, over all triples and by category, and the weights of its experts.

    Weights are fitted on the validation triples as those of the whole, with its scales and its pull to the weights of
    all relations. Each expert is asked each question once.
    """
    charts = []
    for label, run in runs.items():
        model = run.model(options.device)
        if not isinstance(model, FusedModel):
            raise SatkgcError("this run has no experts", where=label, remedy="choose a fused run: docs/fusion.md")
        parts = _parts(run, model, options)
        ranks, categories = _ranks(run, model, parts, options)
        groups = {"all": np.ones(len(categories), bool)}
        groups |= {name: categories == i for i, name in enumerate((*CATEGORIES, "new")) if (categories == i).any()}
        names, of_run = [part.name for part in parts], f", {label}" if len(runs) > 1 else ""
        for title, measure in MEASURES.items():
            series = {name: measure(ranks[:, :, group]).mean((1, 2)) for name, group in groups.items()}
            charts.append(Chart(title + of_run, "experts", names, series))
        charts.append(Chart("Weight" + of_run, "experts", names, _weights(model, parts)))
    return charts


def _parts(run: RunFolder, model: FusedModel, options: Options) -> list[Combination]:
    """Each alone, pairs, and all, with their weights."""
    count, size = len(model.names), run.kg.num_relations
    pairs = [list(pair) for pair in combinations(range(count), 2)] if count > 2 else []
    fit = json.loads((run.folder / "model" / FUSION).read_text(encoding="utf-8"))["fit"]
    fitted = fit_parts(model, pairs, fit["strength"], options.progress) if pairs else []
    alone = [Combination(name, [i], Mixture.even([name], size)) for i, name in enumerate(model.names)]
    together = [Combination(" + ".join(own.experts), pair, own) for pair, own in zip(pairs, fitted, strict=True)]
    name = "all" if count > 2 else " + ".join(model.names)
    return [*alone, *together, Combination(name, list(range(count)), model.mixture)]


def _ranks(run: RunFolder, model: FusedModel, parts: Sequence[Combination], options: Options) -> tuple[Float64, Int32]:
    """Filtered ranks by every part, and the category of each triple.  # (parts, 2, T), (T,)"""
    kg, config = run.kg, run.config.evaluation
    triples = split_triples(kg, options.split)
    candidates = candidate_entities(kg, options.split, config.candidates)
    columns = torch.from_numpy(candidates.astype(np.int64)) if len(candidates) < kg.num_entities else None
    tasks = [RankingTask.of(kg, triples, direction, candidates) for direction in DIRECTIONS]
    ranks = np.empty((len(parts), len(tasks), len(triples)))
    block = max(1, min(QUESTIONS, SCORES // (len(model.names) * kg.num_entities)))
    blocks = [(place, *some) for place, task in enumerate(tasks) for some in _blocks(task, block)]
    share = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[config.ties]
    for place, questions, rows, own in options.track(blocks, "ranking by each expert", len(blocks)):
        shares = model.log_shares(questions)  # (n, q, E)
        for number, part in enumerate(parts):
            scores = _scores(shares[part.experts], part, questions.relations)
            scores = scores if columns is None else scores[:, columns.to(scores.device)]
            task = tasks[place]
            greater, equal = find_rivals(
                scores[torch.from_numpy(own).to(scores.device)], task.answers, task.known, rows
            )
            ranks[number, place, rows] = (1 + greater.sum(1) + share * equal.sum(1)).cpu().numpy()
    return ranks, relation_categories(kg)[triples[:, 1]]


def _scores(shares: Tensor, part: Combination, relations: Int32) -> Tensor:
    """Of one expert its own, so that all entities tie where it has nothing to say.  # (n, q, E) → (q, E)"""
    if len(shares) == 1:
        return shares[0]
    total = part.mixture.mix(shares, relations, shares.shape[2])
    return total - total.logsumexp(1, keepdim=True)


def _blocks(task: RankingTask, size: int) -> Iterator[tuple[Questions, Int64, Int64]]:
    """A few distinct questions after another, the rows that ask them, and which of the questions each row asks."""
    distinct, place = np.unique(np.stack([task.entities, task.relations], 1), axis=0, return_inverse=True)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(place[order], np.arange(len(distinct) + 1))
    for start in range(0, len(distinct), size):
        entities, relations = np.ascontiguousarray(distinct[start : start + size].T)
        rows = order[first[start] : first[start + len(entities)]]
        yield Questions(entities, relations), rows, place[rows] - start


def _weights(model: FusedModel, parts: Sequence[Combination]) -> dict[str, Any]:
    """Of each expert in each part, over all relations; NaN where it is not in it."""
    weights = np.full((len(model.names), len(parts)), np.nan)
    for column, part in enumerate(parts):
        weights[part.experts, column] = part.mixture.general
    return dict(zip(model.names, weights, strict=True))
