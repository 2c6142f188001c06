"""From a score to a probability: calibration on validation questions, checked on questions held out.

What the probability means. Take a question whose answer is missing from the graph, as in the validation set, and drop
from its candidates the answers the graph holds already. Of the candidates that get probability p, a share of about p
is true. An answer that is true but listed nowhere counts as false here, so on an incomplete graph the share is, if
anything, higher; a question without a missing answer is outside this meaning, and its probabilities are too high.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit, logsumexp

from satkgc.arrays import Float64, Int32
from satkgc.completion.relations import RelationCalibration, calibrate_relations
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph

if TYPE_CHECKING:
    from satkgc.completion.engine import Engine, Query

QUESTIONS = 4000  # of validation that are looked at
COMPETITORS = 50  # candidates of a question that compete with each other, and that are learnt from
BINS = 15
FEWEST = 20  # candidates on which a precision is worth stating
SMOOTH = 50  # candidates that a level of the isotonic step stands for, at least
HEADING = "## Probabilities"  # of the section in the run's card


@dataclass(frozen=True)
class ReliabilityCurve:
    """Held-out candidates by probability: bins of equal width for the plot, thresholds for a precision."""

    counts: list[int]  # (BINS,)
    confidence: list[float]  # mean probability in each bin
    accuracy: list[float]  # share of true candidates in each bin
    thresholds: list[float]
    precision: list[float]  # of all held-out candidates at or above each threshold
    recall: list[float]  # share of the held-out true answers among them


@dataclass(frozen=True)
class ProbabilityMap:
    """Two steps: a logistic model of two inputs, then an isotonic correction of what it says.

    logit = bias + by_score · s + by_share · log share, the share being the candidate's in a softmax over the
    competitors, and s its score times the scale.
    The corrected logit runs through the points (knots, levels) and on with a slope of 1 beyond them.
    """

    temperature: float  # of that softmax
    bias: float
    by_score: float
    by_share: float
    knots: list[float]
    levels: list[float]  # logits, ascending
    scale: float = 1.0  # brings scores to about the spread of cosines

    def probability(self, scores: Float64, competitors: Float64, listed: Any) -> Float64:
        """See `EntityCalibration.probability`."""
        parameters = self.temperature, self.bias, self.by_score, self.by_share
        raw = _logit(parameters, self.scale * scores, self.scale * competitors, listed)
        beyond = np.minimum(raw - self.knots[0], 0) + np.maximum(raw - self.knots[-1], 0)
        return expit(np.interp(raw, self.knots, self.levels) + beyond)


@dataclass(frozen=True)
class EntityCalibration:
    """How scores of entities become probabilities, and how well that went on questions held out."""

    mapping: ProbabilityMap
    questions: int
    ece: float  # expected calibration error over all held-out candidates
    ece_first: float  # over the first answer of each held-out question
    curve: ReliabilityCurve

    def probability(self, scores: Any, competitors: Any, listed: Any) -> Float64:
        """Of candidates (q, n) with these scores, given each question's COMPETITORS best unknown ones (q, m).

        `listed` (q, n) says which candidates are among the competitors; another (a known answer, or one further down)
        competes with all of them.
        """
        return self.mapping.probability(np.asarray(scores, float), np.asarray(competitors, float), listed)

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


@dataclass(frozen=True)
class Calibration:
    """A run's calibration.json: the probabilities of entities, and those of relations."""

    entities: EntityCalibration | None = None  # None where there is too little to learn from
    relations: RelationCalibration = field(default_factory=RelationCalibration)

    @property
    def fitted(self) -> bool:
        """Whether there are any probabilities."""
        return self.entities is not None or self.relations.questions > 0

    def save(self, file: Path) -> None:
        """Write as JSON."""
        with atomic_write(file) as part:
            part.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, file: Path, relations: Mapping[str, Any] | None = None) -> Calibration:
        """Read what `save` wrote. Earlier versions had the entities' alone in it, and that of `relations` elsewhere."""
        try:
            facts = json.loads(file.read_text()) if file.exists() else {"entities": None, "relations": {}}
            if "mapping" in facts:
                facts = {"entities": facts, "relations": {}}
            entities = facts["entities"]
            if entities is not None:
                entities = EntityCalibration(
                    **{
                        **entities,
                        "mapping": ProbabilityMap(**entities["mapping"]),
                        "curve": ReliabilityCurve(**entities["curve"]),
                    }
                )
            return cls(entities, RelationCalibration.from_json(relations or facts["relations"]))
        except (ValueError, TypeError, KeyError) as error:
            raise SatkgcError("not a calibration", where=file, remedy="remove it and run `satkgc prepare`") from error


def calibrate(engine: Engine) -> Calibration:
    """Fit probabilities on validation questions."""
    return Calibration(calibrate_entities(engine), calibrate_relations(engine))


def calibrate_entities(engine: Engine, questions: int = QUESTIONS) -> EntityCalibration | None:
    """Fit on validation questions, both ways; None where there are too few of them.

    Candidates are a question's COMPETITORS best without those that training or test triples answer it with: the former
    are no new answers, the latter nobody may look at.
    """
    kg = engine.kg
    queries = sample_queries(kg, kg.valid, questions)
    queries = [query for query, known in zip(queries, engine.answerable(queries), strict=True) if known]
    scores = np.full((len(queries), COMPETITORS), -np.inf, np.float32)
    labels = np.zeros((len(queries), COMPETITORS), bool)
    for start in range(0, len(queries), 1024):
        some = queries[start : start + 1024]
        encoded = engine.encode(some, progress=True)
        valid = [valid_answers(kg, query) for query in some]
        exclude = [np.setdiff1d(engine.exclude(query), true) for query, true in zip(some, valid, strict=True)]
        best, ids = engine.retriever.search(encoded, min(COMPETITORS, len(engine.retriever)), exclude=exclude)
        rows = slice(start, start + len(some))
        scores[rows, : best.shape[1]] = best
        for row, (mine, true) in enumerate(zip(ids, valid, strict=True), start):
            labels[row, : len(mine)] = np.isin(mine, true)
    return fit(scores, labels, scale=engine.retriever.calibration_scale(scores))


def sample_queries(kg: KnowledgeGraph, triples: Int32, count: int) -> list[Query]:
    """Distinct queries of some triples, tails and heads asked for alike."""
    rng = np.random.default_rng(0)
    both = np.concatenate([triples[:, :2], np.stack([triples[:, 2], triples[:, 1] + kg.num_relations], 1)])
    both = np.unique(both, axis=0)
    chosen = both[np.sort(rng.choice(len(both), min(count, len(both)), replace=False))]
    return [(int(entity), int(directed)) for entity, directed in chosen]


def valid_answers(kg: KnowledgeGraph, query: Query) -> Int32:
    """Answers that validation has and training has not."""
    entity, directed = query
    assert isinstance(entity, int)
    inverse = directed >= kg.num_relations
    rows = kg.valid[(kg.valid[:, 1] == directed % kg.num_relations) & (kg.valid[:, 2 if inverse else 0] == entity)]
    return np.setdiff1d(rows[:, 0 if inverse else 2], kg.known_train.answers(entity, directed))


def fit(scores: Any, labels: Any, seed: int = 0, scale: float = 1.0) -> EntityCalibration | None:
    """From each question's best candidates (q, m), -inf where there are fewer, and which of them are true (q, m).

    It is fitted to one half of the questions; the errors and the curve are what it gives on the other. None where there
    are too few true candidates to learn from.
    """
    scores, labels = np.asarray(scores, float), np.asarray(labels, bool)
    asked = np.isfinite(scores).any(1)  # a question without candidates says nothing, and its share is no number
    scores, labels = scores[asked], labels[asked]
    half = np.random.default_rng(seed).permutation(len(scores)) < len(scores) // 2
    if min(labels[half].sum(), labels[~half].sum()) < FEWEST:
        return None
    held = np.isfinite(scores) & ~half[:, None]
    mapping = _map(scale * scores[half], labels[half], scale)
    probabilities = mapping.probability(scores, scores, True)
    predicted, truth = probabilities[held], labels[held]
    first = held[:, 0]
    return EntityCalibration(
        mapping,
        questions=len(scores),
        ece=expected_calibration_error(predicted, truth),
        ece_first=expected_calibration_error(probabilities[first, 0], labels[first, 0]),
        curve=_curve(predicted, truth),
    )


def expected_calibration_error(probabilities: Float64, truth: Any) -> float:
    """Mean distance between the probability and the share that is true, over bins of equal width."""
    counts, confidence, accuracy = _bins(probabilities, np.asarray(truth, float))
    return float(np.sum(counts * np.abs(confidence - accuracy)) / max(1, counts.sum()))


def _logit(parameters: Any, scores: Float64, competitors: Float64, listed: Any) -> Float64:
    temperature, bias, by_score, by_share = parameters
    total = np.logaddexp.reduce(competitors[:, :COMPETITORS] / temperature, axis=1, keepdims=True)  # (q, 1)
    own = scores / temperature
    share = own - np.where(listed, total, np.logaddexp(total, own))
    return bias + by_score * scores + by_share * share


def _map(scores: Float64, labels: Any, scale: float) -> ProbabilityMap:
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
    return ProbabilityMap(*parameters, knots, np.maximum.accumulate(levels).tolist(), scale)


def _minimise(scores: Float64, labels: Any) -> tuple[float, float, float, float]:
    """Maximum likelihood by scipy's L-BFGS; both weights stay positive, so that better never means less likely."""
    real = np.isfinite(scores)
    weights = np.where(real, 1.0, 0.0)
    filled = np.where(real, scores, -1e3)  # of no weight, and finite for the products
    targets = np.where(labels, 1.0, -1.0)

    def loss(free: Float64) -> float:
        temperature, by_score, by_share = np.exp(free[[0, 2, 3]])
        own = filled / temperature
        share = own - logsumexp(np.where(real, own, -np.inf), axis=1, keepdims=True)
        logit = free[1] + by_score * filled + by_share * share
        # A faint pull towards the start keeps the search finite where the two are separable.
        likelihood = np.sum(weights * np.logaddexp(0, -targets * logit)) / weights.sum()
        return float(likelihood + 1e-5 * np.sum((free - start) ** 2))

    start = np.array([np.log(0.05), 0.0, 0.0, 0.0])
    bounds = [(np.log(5e-3), 0.0), (None, None), (-5, 5), (-5, 3)]
    result = minimize(loss, start, method="L-BFGS-B", bounds=bounds)
    temperature, by_score, by_share = np.exp(result.x[[0, 2, 3]])
    return float(temperature), float(result.x[1]), float(by_score), float(by_share)


def _bins(probabilities: Float64, truth: Float64) -> tuple[Float64, Float64, Float64]:
    place = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    counts = np.bincount(place, minlength=BINS).astype(float)
    some = np.maximum(counts, 1)
    return counts, np.bincount(place, probabilities, BINS) / some, np.bincount(place, truth, BINS) / some


def _curve(probabilities: Float64, truth: Any) -> ReliabilityCurve:
    counts, confidence, accuracy = _bins(probabilities, np.asarray(truth, float))
    grid = np.round(np.arange(0.01, 1.0, 0.01), 2)
    above = [truth[probabilities >= t] for t in grid]
    kept = [(t, a) for t, a in zip(grid, above, strict=True) if len(a) >= FEWEST]
    return ReliabilityCurve(
        counts=[int(c) for c in counts],
        confidence=confidence.tolist(),
        accuracy=accuracy.tolist(),
        thresholds=[float(t) for t, _ in kept],
        precision=[float(a.mean()) for _, a in kept],
        recall=[float(a.sum() / truth.sum()) for _, a in kept],
    )


def draw_reliability(calibration: EntityCalibration, file: Path) -> None:
    """Draw held-out candidates by probability: the share that was true above, how many there were below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curve = calibration.curve
    counts = np.array(curve.counts)
    middle = (np.arange(BINS) + 0.5) / BINS
    figure = Figure(figsize=(5, 6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="perfect")
    seen = counts > 0
    upper.plot(
        np.array(curve.confidence)[seen], np.array(curve.accuracy)[seen], marker="o", label="held-out candidates"
    )
    upper.set_ylabel("share that was true")
    upper.set_title(f"calibration error {calibration.ece:.4f} (first answers {calibration.ece_first:.3f})")
    upper.legend()
    lower.bar(middle, counts, width=0.9 / BINS)
    lower.set_yscale("log")
    lower.set_ylabel("candidates")
    lower.set_xlabel("probability")
    with atomic_write(file) as part:
        figure.savefig(part, dpi=120, format="png")


def report_reliability(calibration: EntityCalibration, card: Path) -> None:
    """Put a section about the probabilities at the end of the run's card, in the place of an older one."""
    before = card.read_text(encoding="utf-8").partition(f"\n{HEADING}")[0] if card.exists() else ""
    rows = []
    for precision in (0.5, 0.7, 0.8, 0.9, 0.95):
        try:
            least = calibration.threshold(precision)
        except SatkgcError:
            break
        recall = calibration.curve.recall[calibration.curve.thresholds.index(least)]
        rows.append(f"| {precision:.0%} | {least:.2f} | {recall:.0%} |\n")
    table = "| wanted precision | probability at least | true answers kept |\n|---|---|---|\n" + "".join(rows)
    text = f"""{before.rstrip()}

{HEADING}

Fitted on half of {calibration.questions:,} validation questions. On the other half, the expected calibration error is
{calibration.ece:.4f} over all candidates and {calibration.ece_first:.3f} over first answers.

{table if rows else "No threshold reaches a precision of 50 %."}
![share of true answers by probability](reliability.png)
"""
    with atomic_write(card) as part:
        part.write_text(text.lstrip(), encoding="utf-8")
