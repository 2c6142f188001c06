"""Triple classification: right or wrong, by a threshold for each relation, fitted on validation triples.

What is compared with the threshold is the mean log-odds of a triple's two ends, asked for as if the graph did not have
it, or the mean of their scores where a run has no calibration. A relation with few examples has a threshold near that
of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit
from scipy.stats import rankdata

from satkgc.arrays import Bool, Float64, Int32
from satkgc.completion.checking import BATCH, judge
from satkgc.completion.engine import Engine
from satkgc.progress import progress_bar

SHRINK = 20.0  # examples of a relation at which its own threshold and that of all count alike
LEAST = 1e-9  # a probability that log-odds are taken of


@dataclass(frozen=True)
class RelationClassification:
    """The same of the test triples of one relation."""

    threshold: float
    right: int
    wrong: int
    accuracy: float | None  # None where the test split has none of it
    auc: float | None  # None unless it has both right and wrong ones


@dataclass(frozen=True)
class Classification:
    """How well right and wrong test triples are told apart."""

    accuracy: float
    auc: float  # the share of pairs of a right and a wrong triple in which the right one has the higher value
    precision: float  # of the triples that are called right
    recall: float  # of those that are
    f1: float
    accuracy_one_threshold: float  # with the same one for all relations
    valid_accuracy: float  # of what the thresholds were fitted to
    valid_auc: float
    right: int
    wrong: int
    thresholds: dict[str, float]  # by relation id
    relations: dict[str, RelationClassification]  # by relation id


def classify(engine: Engine, right: tuple[Int32, Int32], wrong: tuple[Int32, Int32]) -> Classification:
    """Fit on the validation triples, the first of each pair, and measure on the test triples, the second."""
    triples = [np.concatenate(pair) for pair in zip(right, wrong, strict=True)]
    labels = [np.repeat([True, False], [len(good), len(bad)]) for good, bad in zip(right, wrong, strict=True)]
    values = _values(engine, np.concatenate(triples))
    valid, test = values[: len(triples[0])], values[len(triples[0]) :]
    general = best_threshold(valid, labels[0])
    thresholds = fit_thresholds(valid, labels[0], triples[0][:, 1], engine.kg.num_relations, general)
    found = [part >= thresholds[rows[:, 1]] for part, rows in zip((valid, test), triples, strict=True)]
    hits, called, real = int((found[1] & labels[1]).sum()), int(found[1].sum()), int(labels[1].sum())
    return Classification(
        accuracy=float((found[1] == labels[1]).mean()),
        auc=area(test, labels[1]),
        precision=hits / called if called else 0.0,
        recall=hits / real,
        f1=2 * hits / (called + real),
        accuracy_one_threshold=float(((test >= general) == labels[1]).mean()),
        valid_accuracy=float((found[0] == labels[0]).mean()),
        valid_auc=area(valid, labels[0]),
        right=len(right[1]),
        wrong=len(wrong[1]),
        thresholds={engine.kg.relations.id(r): float(value) for r, value in enumerate(thresholds)},
        relations={
            engine.kg.relations.id(r): _of_relation(float(value), test[own], labels[1][own])
            for r, value in enumerate(thresholds)
            for own in [triples[1][:, 1] == r]
        },
    )


def _of_relation(threshold: float, values: Float64, labels: Bool) -> RelationClassification:
    right, wrong = int(labels.sum()), int((~labels).sum())
    accuracy = float(((values >= threshold) == labels).mean()) if len(labels) else None
    return RelationClassification(threshold, right, wrong, accuracy, area(values, labels) if right and wrong else None)


def fit_thresholds(values: Float64, labels: Bool, relations: Int32, count: int, general: float) -> Float64:
    """Of each relation, its best one and that of all, weighed by how many examples it has.  # (R,)"""
    thresholds = np.full(count, general)
    for r in np.unique(relations).tolist():
        own = relations == r
        if labels[own].any() and not labels[own].all():
            share = own.sum() / (own.sum() + SHRINK)
            thresholds[r] = share * best_threshold(values[own], labels[own]) + (1 - share) * general
    return thresholds


def best_threshold(values: Float64, labels: Bool) -> float:
    """That from which on calling a triple right makes fewest mistakes; between two values, the middle."""
    order = np.argsort(values, kind="stable")
    ordered, truth = values[order], labels[order]
    correct = np.concatenate([[0], np.cumsum(~truth)]) + np.concatenate([np.cumsum(truth[::-1])[::-1], [0]])
    ends = np.concatenate([[ordered[0] - 1], ordered, [ordered[-1] + 1]])
    distinct = ends[1:] > ends[:-1]  # a threshold cannot lie between equal values
    cut = int(np.argmax(np.where(distinct, correct, -1)))
    return float((ends[cut] + ends[cut + 1]) / 2)


def area(values: Float64, labels: Bool) -> float:
    """Under the ROC curve."""
    good, bad = int(labels.sum()), int((~labels).sum())
    return float((rankdata(values)[labels].sum() - good * (good + 1) / 2) / (good * bad))


def _values(engine: Engine, triples: Int32) -> Float64:
    parts = []
    order = np.random.default_rng(0).permutation(len(triples))
    with progress_bar() as bar:
        task = bar.add_task("classifying", total=len(triples))
        for start in range(0, len(triples), BATCH):
            rows = order[start : start + BATCH]
            verdicts = judge(engine, triples[rows])
            probabilities = verdicts.probabilities.astype(float)
            odds = logit(np.clip(probabilities, LEAST, 1 - LEAST))
            parts.append((verdicts.scores.astype(float) if np.isnan(probabilities).any() else odds).mean(1))
            bar.advance(task, len(rows))
    values = np.empty(len(triples))
    values[order] = np.concatenate(parts)
    return values
