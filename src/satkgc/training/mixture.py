"""The weights of a fused model, fitted on validation triples: a conditional logit, convex, by scipy's L-BFGS-B.

For each validation question the right answer competes with the other entities, without those that training or
validation knows as answers; test triples are not looked at. The chance that the mixture gives the right answer is
maximised, with weights of zero or more:

1. the scale of each expert, by the scores of that expert alone;
2. one vector of weights for all relations;
3. a vector for each relation and direction, with a penalty of strength/2 times its squared distance to that one; the
   strength is the greatest whose likelihood, in cross-validation within the validation triples, is at most a standard
   error below the best (Breiman et al., 1984): a hair's breadth is no reason to silence an expert.

Novelty, where it is wanted, is one number more in each of these vectors, which may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import functional

from satkgc.arrays import Bool, Float64, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, KnownTriples
from satkgc.models import FusedConfig, FusedModel, Mixture, Questions, fill, silence
from satkgc.progress import progress_bar

TRIPLES = 20_000  # of validation that are looked at, at most
SAMPLE = 1_000  # of these, for the scales
TOP = 32  # best candidates of each expert that compete one by one
OTHERS = 32  # drawn from all the rest, for which they stand: McFadden's sampling of alternatives
STRENGTHS = (math.inf, 1000.0, 300.0, 100.0, 30.0, 10.0)  # of the pull to the weights of all relations
FOLDS = 5
DIGITS = 4  # of a weight: readable, and no fit is as exact
NOVELTY_MOST = 20.0  # a logarithm: where all answers are such, no number would be large enough


@dataclass(frozen=True, eq=False)
class Choices:
    """Right answers and their competitors, as the experts see them; column 0 is the right answer."""

    shares: Tensor  # (n, T, K) float64, log-shares; -inf where an expert has nothing to say; may end with their silence
    log_counts: Tensor  # (T, K) of how many entities a candidate stands for; -inf: of none
    relations: Int64  # (T,) directed
    triples: Int64  # (T,) which of the triples asks: twice each, for its tail and for its head
    novelty: bool = False  # whether the last of the shares is the experts' silence

    @property
    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Of each weight."""
        own: list[tuple[float | None, float | None]] = [(0, None)] * (len(self.shares) - self.novelty)
        return own + [(-NOVELTY_MOST, NOVELTY_MOST)] * self.novelty

    def filled(self, experts: Sequence[int], num_entities: int, novelty: bool) -> Choices:
        """Of some experts, with what the fit sees where they are silent."""
        own = self.shares[list(experts)]
        shares = fill(own, num_entities)
        if novelty:
            shares = torch.cat([shares, silence(own)[None]])
        return replace(self, shares=shares, novelty=novelty)

    def select(self, rows: Bool) -> Choices:
        """Some of them."""
        mask = torch.from_numpy(rows).to(self.shares.device)
        some = self.shares[:, mask], self.log_counts[mask], self.relations[rows], self.triples[rows]
        return Choices(*some, self.novelty)

    def logits(self, weights: Float64) -> Tensor:
        """By a vector for each row.  # (T, n) → (T, K)"""
        return torch.einsum("ntk,tn->tk", self.shares, torch.from_numpy(weights).to(self.shares))


@dataclass(frozen=True)
class Trial:
    """A strength of the pull, on triples that its weights were not fitted to."""

    strength: float | None  # None: all relations have the same weights
    log_likelihood: float  # mean over the questions
    behind: float  # the best by so much, in standard errors of the difference
    mrr: float  # where competitors stand for others, as many are counted


def fit_mixture(model: FusedModel, triples: Int32, progress: bool = False) -> tuple[Mixture, dict[str, Any]]:
    """The mixture that fits some validation triples best, and how it was found."""
    kg, names = model.kg, model.names
    rng = np.random.default_rng(0)
    triples = _some(triples, rng)
    model.mixture = Mixture.even(names, kg.num_relations)
    some = triples[np.sort(rng.choice(len(triples), min(SAMPLE, len(triples)), replace=False))]
    sample = collect(model, some, progress=False)
    scales = np.array([float(f"{_scale(sample, i):.{DIGITS}g}") for i in range(len(names))])
    model.mixture = replace(model.mixture, scales=scales)
    assert isinstance(model.config, FusedConfig)
    choices = collect(model, triples, progress).filled(range(len(names)), kg.num_entities, model.config.novelty)
    fold = rng.permutation(len(triples))[choices.triples] % min(FOLDS, len(triples))
    trials = _cross_validate(choices, fold) if len(triples) > 1 else []
    strength = choose_strength(trials)
    facts = {"triples": len(triples), "strength": strength, "cross_validation": list(map(asdict, trials))}
    return _fit(choices, names, model.mixture.scales, kg.num_relations, strength), facts


def choose_strength(trials: Sequence[Trial]) -> float | None:
    """The strongest pull, the first, that is as good as the best but for chance."""
    return next((trial.strength for trial in trials if trial.behind <= 1), None)


def _fit(
    choices: Choices, names: Sequence[str], scales: Float64, num_relations: int, strength: float | None
) -> Mixture:
    """With a pull that has been chosen."""
    general = fit_general(choices).round(DIGITS)
    weights = np.tile(general, (2 * num_relations, 1))
    if strength is not None:
        seen = np.unique(choices.relations)
        weights[seen] = fit_relations(choices, general, strength)[seen].round(DIGITS)
    mixture = Mixture(tuple(names), scales, general[: len(names)], weights[:, : len(names)])
    if not choices.novelty:
        return mixture
    return replace(mixture, general_novelty=float(general[-1]), novelty=weights[:, -1])


def fit_parts(
    model: FusedModel, parts: Sequence[Sequence[int]], strength: float | None, progress: bool = False
) -> list[Mixture]:
    """Mixtures of some experts each, fitted on the triples that the whole was, with its scales and strength."""
    kg, config, mixture = model.kg, model.config, model.mixture
    assert isinstance(config, FusedConfig)
    triples = _some(kg.valid[held_back_rows(len(kg.valid), config.held_back)[0]], np.random.default_rng(0))
    choices, fitted = collect(model, triples, progress), []
    for part in map(list, parts):
        names = [model.names[i] for i in part]
        own = choices.filled(part, kg.num_entities, config.novelty)
        fitted.append(_fit(own, names, mixture.scales[part], kg.num_relations, strength))
    return fitted


def _some(triples: Int32, rng: np.random.Generator) -> Int32:
    """At most TRIPLES of them."""
    if len(triples) <= TRIPLES:
        return triples
    return triples[np.sort(rng.choice(len(triples), TRIPLES, replace=False))]


def collect(model: FusedModel, triples: Int32, progress: bool = False) -> Choices:
    """Both questions of each triple. A question that several triples answer is scored once, all experts at a time."""
    kg, size = model.kg, model.kg.num_relations
    known = KnownTriples.build(np.concatenate([kg.facts, kg.valid]), kg.num_entities, size)
    h, r, t = triples.T
    asked = np.concatenate([np.stack([h, r], 1), np.stack([t, r + size], 1)])  # (2n, 2)
    answers = np.concatenate([t, h]).astype(np.int64)
    distinct, place = np.unique(asked, axis=0, return_inverse=True)
    order = np.argsort(place, kind="stable")  # rows by their question
    first = np.searchsorted(place[order], np.arange(len(distinct) + 1))
    shares: list[Tensor] = []
    counts: list[Tensor] = []
    with progress_bar(progress) as bar:
        task = bar.add_task("scoring validation questions", total=len(distinct))
        for start in range(0, len(distinct), block := _block(kg)):
            some = distinct[start : start + block].astype(np.int32)
            scores = model.log_shares(Questions(some[:, 0].copy(), some[:, 1].copy()))  # (n, q, E)
            ids, log_counts = competitors(scores, [known.answers(e, d) for e, d in some.tolist()], start)  # (q, K)
            rows = order[first[start] : first[start + len(some)]]  # questions that have several answers, several times
            own = torch.from_numpy(place[rows] - start).to(scores.device)
            right = torch.from_numpy(answers[rows]).to(scores.device)
            others = scores.gather(2, ids[None].expand(len(scores), -1, -1))[:, own]
            shares.append(torch.cat([scores[:, own, right][:, :, None], others], 2).double())
            counts.append(functional.pad(log_counts[own], (1, 0)).double())
            bar.advance(task, len(some))
    directed = asked[order, 1].astype(np.int64)
    return Choices(torch.cat(shares, 1), torch.cat(counts), directed, order % len(triples))


def competitors(scores: Tensor, known: Sequence[Int32], seed: int) -> tuple[Tensor, Tensor]:
    """Entities that compete with the right answers of questions, and the logarithm of how many each stands for.

    All that are not known answers, one by one, where there are few; else each expert's best, and some of the others
    for all of the others.  # (n, Q, E) → (Q, K), (Q, K)
    """
    experts, count, size = scores.shape
    free = torch.ones(count, size, dtype=torch.bool, device=scores.device)
    rows = np.repeat(np.arange(count), [len(answers) for answers in known])
    columns = np.concatenate(known).astype(np.int64)
    free[torch.from_numpy(rows).to(free.device), torch.from_numpy(columns).to(free.device)] = False
    if size <= experts * TOP + OTHERS:
        return torch.arange(size, device=free.device).expand(count, -1), _log(free)
    best, top = scores.masked_fill(~free, -torch.inf).topk(TOP, 2)  # (n, Q, TOP)
    chosen = torch.where(best > -torch.inf, top, size).transpose(0, 1).reshape(count, -1).sort(1).values  # (Q, n · TOP)
    taken = (chosen < size) & functional.pad(chosen[:, 1:] != chosen[:, :-1], (1, 0), value=True)  # each once
    row, column = taken.nonzero(as_tuple=True)
    free[row, chosen[row, column]] = False
    drawn = np.sort(np.random.default_rng([0, seed]).integers(0, size, (count, OTHERS)), axis=1)
    others = torch.from_numpy(drawn).to(free.device)
    used = free.gather(1, others) & functional.pad(others[:, 1:] != others[:, :-1], (1, 0), value=True)
    stands_for = (free.sum(1, keepdim=True) / used.sum(1, keepdim=True).clamp(min=1)).log()  # (Q, 1)
    return torch.cat([chosen.clamp(max=size - 1), others], 1), torch.cat([_log(taken), _log(used) + stands_for], 1)


def _log(used: Tensor) -> Tensor:
    """0 where true, -inf where false."""
    return torch.zeros(used.shape, device=used.device).masked_fill(~used, -torch.inf)


def fit_general(choices: Choices) -> Float64:
    """One vector of weights for all relations.  # (n,)"""
    count = len(choices.shares)
    everything = np.zeros(len(choices.relations), np.int64)
    start = np.full((1, count), 1 / count)
    start[:, count - choices.novelty :] = 0
    return _minimise(choices, everything, start, np.zeros(count), 0.0)[0]


def fit_relations(choices: Choices, general: Float64, strength: float, start: Float64 | None = None) -> Float64:
    """A vector for each directed relation up to the last that is asked, those that are not asked as in general."""
    count = int(choices.relations.max()) + 1
    begin = np.tile(general, (count, 1)) if start is None else start
    return _minimise(choices, choices.relations, begin, general, strength)


def _cross_validate(choices: Choices, fold: Int64) -> list[Trial]:
    """Every strength on folds that its weights have not seen."""
    likelihood: dict[float, list[Tensor]] = {strength: [] for strength in STRENGTHS}
    ranks: dict[float, list[Tensor]] = {strength: [] for strength in STRENGTHS}
    size = int(choices.relations.max()) + 1
    for out in np.unique(fold):
        fitted, held = choices.select(fold != out), choices.select(fold == out)
        general = fit_general(fitted)
        weights = np.tile(general, (size, 1))
        for strength in STRENGTHS:
            if math.isfinite(strength):  # from the weights of the stronger pull on, which are near
                count = int(fitted.relations.max()) + 1
                weights[:count] = fit_relations(fitted, general, strength, weights[:count])
            logits = held.logits(weights[held.relations])
            likelihood[strength].append(_log_likelihood(logits, held.log_counts))
            ranks[strength].append(_ranks(logits, held.log_counts))
    of_questions = torch.stack([torch.cat(likelihood[strength]) for strength in STRENGTHS])  # (S, T)
    means = of_questions.mean(1)
    behind = of_questions[means.argmax()] - of_questions
    errors = behind.std(1) / math.sqrt(behind.shape[1])
    return [
        Trial(
            strength if math.isfinite(strength) else None,
            round(float(means[i]), 6),
            round(float(behind[i].mean() / errors[i].clamp(min=1e-12)), 4),
            round(float((1 / torch.cat(ranks[strength])).mean()), 6),
        )
        for i, strength in enumerate(STRENGTHS)
    ]


def _scale(choices: Choices, expert: int) -> float:
    """The factor of one expert's scores with which their softmax fits best, where the expert has something to say."""
    speaks = choices.shares[expert] > -torch.inf  # (T, K)
    rows = speaks[:, 0].cpu().numpy()
    if not rows.any():
        return 1.0
    own = choices.select(rows)
    shares, speaks = own.shares[expert], speaks[speaks[:, 0]]
    log_counts = own.log_counts.masked_fill(~speaks, -torch.inf)
    spread = float(shares[speaks & (log_counts > -torch.inf)].std()) or 1.0  # brings scores of any size near one
    shares = shares.masked_fill(~speaks, 0.0)[None] / spread
    everything = np.zeros(int(rows.sum()), np.int64)
    narrow = replace(own, shares=shares, log_counts=log_counts)
    fitted = float(_minimise(narrow, everything, np.ones((1, 1)), np.ones(1), 0.0)[0, 0])
    return (fitted or 1.0) / spread


def _minimise(choices: Choices, groups: Int64, start: Float64, centre: Float64, strength: float) -> Float64:
    """Weights of each group of questions, by maximum likelihood with a pull to the centre.  # (G, n)"""
    shape, count = start.shape, len(groups)
    relative = choices.shares - choices.shares[:, :, :1]  # (n, T, K) to the right answer
    index = torch.from_numpy(groups).to(relative.device)

    def loss(flat: Float64) -> tuple[float, Float64]:
        weights = flat.reshape(shape)
        of_rows = torch.from_numpy(weights).to(relative)[index]  # (T, n)
        logits = choices.log_counts.clone()
        for i, part in enumerate(relative):
            logits.addcmul_(part, of_rows[:, i : i + 1])
        totals = logits.logsumexp(1)
        chance = logits.sub_(totals[:, None]).exp_()
        slope = torch.stack([torch.linalg.vecdot(part, chance) for part in relative], 1)  # (T, n)
        gradient = torch.zeros(shape, dtype=slope.dtype, device=slope.device).index_add_(0, index, slope)
        pull = weights - centre
        value = float(totals.sum()) + strength / 2 * float((pull**2).sum())
        return value / count, (gradient.cpu().numpy() + strength * pull).ravel() / count

    options = {"maxiter": 500, "ftol": 1e-9, "gtol": 1e-6}
    result = minimize(
        loss, start.ravel(), jac=True, method="L-BFGS-B", bounds=choices.bounds * len(start), options=options
    )
    return np.asarray(result.x).reshape(shape)


def _log_likelihood(logits: Tensor, log_counts: Tensor) -> Tensor:
    return logits[:, 0] - (logits + log_counts).logsumexp(1)


def _ranks(logits: Tensor, log_counts: Tensor) -> Tensor:
    """Of the right answers, ties half and half."""
    counts, own = log_counts[:, 1:].exp(), logits[:, :1]
    return 1 + (counts * ((logits[:, 1:] > own) + 0.5 * (logits[:, 1:] == own))).sum(1)


def _block(kg: KnowledgeGraph) -> int:
    return max(1, min(64, (1 << 24) // kg.num_entities))


def check_fitted_on(kg: KnowledgeGraph, held_back: float) -> None:
    """Refuse a graph that leaves a fit no validation triples."""
    if not len(kg.valid):
        remedy = "give it some, or train one model, by recipe frozen or complex for example"
        raise SatkgcError(f"{kg.name} has no validation triples to fit a mixture on", remedy=remedy)
    if not len(held_back_rows(len(kg.valid), held_back)[0]):
        what = f"{held_back} of {len(kg.valid):,} validation triples held back leave none to fit a mixture on"
        raise SatkgcError(what, where=kg.name, remedy="hold back less")


def held_back_rows(count: int, share: float) -> tuple[Int64, Int64]:
    """Which of so many validation triples the fit sees, and which it does not."""
    order = np.random.default_rng(0).permutation(count)
    held = round(share * count)
    return np.sort(order[held:]), np.sort(order[:held])
