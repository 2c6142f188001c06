"""From a score to a probability: calibration on validation questions, checked on questions held out.

What the probability means. Take a question whose answer is missing from the graph, as in the validation set, and drop
from its candidates the answers the graph holds already. Of the candidates that get probability p, a share of about p
is true. An answer that is true but listed nowhere counts as false here, so on an incomplete graph the share is, if
anything, higher; a question without a missing answer is outside this meaning, and its probabilities are too high.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit, logsumexp

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

RIVALS = 50  # candidates of a question that compete with each other, and that calibration learns from
BINS = 15
FEWEST = 20  # candidates on which a precision is worth stating
SMOOTH = 50  # candidates that a level of the isotonic step stands for, at least

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Curve:
    """Held-out candidates by probability: bins of equal width for the plot, thresholds for a wanted precision."""

    counts: list[int]  # (BINS,)
    confidence: list[float]  # mean probability in each bin
    accuracy: list[float]  # share of true candidates in each bin
    thresholds: list[float]
    precision: list[float]  # of all held-out candidates at or above each threshold
    recall: list[float]  # share of the held-out true answers among them


@dataclass(frozen=True)
class Mapping:
    """Two steps: a logistic model of two inputs, then an isotonic correction of what it says.

    logit = bias + by_score · s + by_share · log share, the share being the candidate's in a softmax over the rivals.
    The corrected logit runs through the points (knots, levels) and on with a slope of 1 beyond them.
    """

    temperature: float  # of that softmax
    bias: float
    by_score: float
    by_share: float
    knots: list[float]
    levels: list[float]  # logits, ascending

    def probability(self, scores: Array, rivals: Array, listed: Any) -> Array:
        """See `Calibration.probability`."""
        raw = _logit((self.temperature, self.bias, self.by_score, self.by_share), scores, rivals, listed)
        beyond = np.minimum(raw - self.knots[0], 0) + np.maximum(raw - self.knots[-1], 0)
        return expit(np.interp(raw, self.knots, self.levels) + beyond)


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities, and how well that went on questions held out."""

    mapping: Mapping
    questions: int
    ece: float  # expected calibration error over all held-out candidates
    ece_first: float  # over the first answer of each held-out question
    curve: Curve

    def probability(self, scores: Any, rivals: Any, listed: Any) -> Array:
        """Of candidates (q, n) with these cosines, given each question's RIVALS best unknown ones (q, m).

        `listed` (q, n) tells which candidates are among the rivals; another (a known answer, or one further down)
        competes with all of them.
        """
        return self.mapping.probability(np.asarray(scores, float), np.asarray(rivals, float), listed)

    def threshold(self, precision: float) -> float:
        """The lowest probability above which held-out answers were right this often."""
        enough = [t for t, p in zip(self.curve.thresholds, self.curve.precision, strict=True) if p >= precision]
        if not enough:
            best = max(self.curve.precision, default=0.0)
            raise SatkgcError(
                f"no threshold reaches a precision of {precision:g} on the validation data",
                remedy=f"ask for {best:.2f} or less",
            )
        return min(enough)

    def save(self, file: Path) -> None:
        """Write as JSON."""
        with atomic_write(file) as part:
            part.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, file: Path) -> Calibration:
        """Read what `save` wrote."""
        try:
            facts = json.loads(file.read_text())
            return cls(**{**facts, "mapping": Mapping(**facts["mapping"]), "curve": Curve(**facts["curve"])})
        except (ValueError, TypeError, KeyError) as broken:
            raise SatkgcError("not a calibration", where=file, remedy="remove it and run `satkgc prepare`") from broken


def fit(scores: Any, labels: Any, seed: int = 0) -> Calibration | None:
    """From each question's best candidates (q, m), -inf where there are fewer, and which of them are true (q, m).

    It is fitted to one half of the questions; the errors and the curve are what it gives on the other. None where there
    are too few true candidates to learn from.
    """
    scores, labels = np.asarray(scores, float), np.asarray(labels, bool)
    half = np.random.default_rng(seed).permutation(len(scores)) < len(scores) // 2
    if min(labels[half].sum(), labels[~half].sum()) < FEWEST:
        return None
    held = np.isfinite(scores) & ~half[:, None]
    mapping = _map(scores[half], labels[half])
    chances = mapping.probability(scores, scores, True)
    told, truth = chances[held], labels[held]
    first = held[:, 0]
    return Calibration(
        mapping,
        questions=len(scores),
        ece=expected_calibration_error(told, truth),
        ece_first=expected_calibration_error(chances[first, 0], labels[first, 0]),
        curve=_curve(told, truth),
    )


def expected_calibration_error(chances: Array, truth: Any) -> float:
    """Mean distance between the probability told and the share found true, over bins of equal width."""
    counts, confidence, accuracy = _binned(chances, np.asarray(truth, float))
    return float(np.sum(counts * np.abs(confidence - accuracy)) / max(1, counts.sum()))


def _logit(parameters: Any, scores: Array, rivals: Array, listed: Any) -> Array:
    temperature, bias, by_score, by_share = parameters
    total = np.logaddexp.reduce(rivals[:, :RIVALS] / temperature, axis=1, keepdims=True)  # (q, 1)
    own = scores / temperature
    share = own - np.where(listed, total, np.logaddexp(total, own))
    return bias + by_score * scores + by_share * share


def _map(scores: Array, labels: Any) -> Mapping:
    """Fit both steps: the first by likelihood, the second by scipy's isotonic regression on the first's logits."""
    parameters = _minimise(scores, labels)
    real = np.isfinite(scores)
    logits = _logit(parameters, scores, scores, True)[real]
    order = np.argsort(logits, kind="stable")
    logits, truth = logits[order], labels[real][order].astype(float)
    edges = isotonic_regression(truth).blocks  # where each level begins, and the end
    knots: list[float] = []
    levels: list[float] = []
    start = 0
    for stop in edges[1:]:
        # A level of few candidates, such as the last ones all being true, is joined with the next, or the one before.
        if stop - start < SMOOTH and stop < len(logits):
            continue
        if len(logits) - stop < SMOOTH:
            stop = len(logits)
        part = slice(start, stop)
        hits = truth[part].sum() + expit(logits[part]).mean()  # one more candidate, as the logistic model sees it
        knots.append(float(logits[part].mean()))
        levels.append(float(logit(hits / (stop - start + 1))))
        start = stop
        if stop == len(logits):
            break
    return Mapping(*parameters, knots, np.maximum.accumulate(levels).tolist())


def _minimise(scores: Array, labels: Any) -> tuple[float, float, float, float]:
    """Maximum likelihood by scipy's L-BFGS; both weights stay positive, so that better never means less likely."""
    real = np.isfinite(scores)
    weights = np.where(real, 1.0, 0.0)
    filled = np.where(real, scores, -1e3)  # of no weight, and finite for the products
    targets = np.where(labels, 1.0, -1.0)

    def loss(free: Array) -> float:
        temperature, by_score, by_share = np.exp(free[[0, 2, 3]])
        own = filled / temperature
        share = own - logsumexp(np.where(real, own, -np.inf), axis=1, keepdims=True)
        logit = free[1] + by_score * filled + by_share * share
        # A faint pull towards the start keeps the search finite where the two are separable.
        likelihood = np.sum(weights * np.logaddexp(0, -targets * logit)) / weights.sum()
        return float(likelihood + 1e-5 * np.sum((free - start) ** 2))

    start = np.array([np.log(0.05), 0.0, 0.0, 0.0])
    bounds = [(np.log(5e-3), 0.0), (None, None), (-5, 5), (-5, 3)]
    found = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
    temperature, by_score, by_share = np.exp(found.x[[0, 2, 3]])
    return float(temperature), float(found.x[1]), float(by_score), float(by_share)


def _binned(chances: Array, truth: Array) -> tuple[Array, Array, Array]:
    place = np.minimum((chances * BINS).astype(int), BINS - 1)
    counts = np.bincount(place, minlength=BINS).astype(float)
    some = np.maximum(counts, 1)
    return counts, np.bincount(place, chances, BINS) / some, np.bincount(place, truth, BINS) / some


def _curve(chances: Array, truth: Any) -> Curve:
    counts, confidence, accuracy = _binned(chances, np.asarray(truth, float))
    grid = np.round(np.arange(0.01, 1.0, 0.01), 2)
    above = [truth[chances >= t] for t in grid]
    kept = [(t, a) for t, a in zip(grid, above, strict=True) if len(a) >= FEWEST]
    return Curve(
        counts=[int(c) for c in counts],
        confidence=confidence.tolist(),
        accuracy=accuracy.tolist(),
        thresholds=[float(t) for t, _ in kept],
        precision=[float(a.mean()) for _, a in kept],
        recall=[float(a.sum() / truth.sum()) for _, a in kept],
    )
