"""Which relation joins two entities, if any: both directions and the relation's frequency, weighted.

Scores of different relations do not compare: a batch of training tells apart the answers of one question, never two
questions about one answer. So the relation is asked from both ends, a frequent one has a head start, and what each of
the three is worth is fitted on validation triples. Most pairs nothing joins, so how likely it is that anything does is
fitted as well, on as many pairs that nothing joins.

A mixture's own score says how an entity compares with others as an answer, and nothing of whether the question made
sense. So its experts are asked, each for the score that it has learnt, and weighed here anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, logsumexp

from satkgc.arrays import Float32, Float64, Int32

if TYPE_CHECKING:
    from satkgc.completion.engine import Engine

QUESTIONS = 6000  # asked to learn from
COMPETITORS = 20  # relations compared for one pair
MIN_PAIRS = 20  # joined ones to learn from


@dataclass(frozen=True)
class RelationCalibration:
    """Weights of a softmax over the relations that could join two entities, and of whether any does."""

    by_tail: tuple[float, ...] = (15.0,)  # of the score of the tail for (head, relation), by each expert of a mixture
    by_head: tuple[float, ...] = (15.0,)  # of that of the head for (tail, inverse relation)
    by_frequency: float = 0.7  # of the logarithm of the relation's share of the training triples
    none: float = 10.0  # the logarithm of the softmax's sum at which it is as likely that none does
    steep: float = 1.0  # how fast that changes with the sum
    questions: int = 0  # joined pairs it was fitted to; without any only the order is worth something
    first: float = 0.0  # share of them whose right relation came first, by weights fitted to the other half

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> RelationCalibration:
        """Of what `asdict` gave; earlier versions had one weight for all experts together."""
        weights = {name: tuple(np.atleast_1d(facts[name]).tolist()) for name in ("by_tail", "by_head") if name in facts}
        return cls(**{**facts, **weights})

    def logits(self, tails: Any, heads: Any, shares: Any) -> Float64:
        """Of relations with these scores (..., P) and logarithms of their shares."""
        return np.asarray(tails @ np.array(self.by_tail) + heads @ np.array(self.by_head) + self.by_frequency * shares)

    def probability(self, logits: Float64) -> Float64:
        """Of all relations (..., R), which compete: one that is known leaves little for the others."""
        total = logsumexp(logits, axis=-1, keepdims=True)
        return np.asarray(expit(self.steep * (total - self.none)) * np.exp(logits - total))


def log_shares(frequency: Any) -> Float64:
    """From the number of training triples of each relation (R,)."""
    return np.asarray(np.log((frequency + 1) / np.sum(frequency + 1)))


@dataclass(frozen=True, eq=False)
class EntityPairs:
    """Pairs of entities (q,) and, for each, relations (n,) that may join them: scores and logarithms of shares."""

    tails: Any  # (q, n, P) by each part of the model
    heads: Any  # (q, n, P)
    shares: Any  # (q, n), -inf where there are fewer
    joined: Any  # (q,) bool: by the relation in column 0, or by none
    relations: int  # that there are; if the columns are fewer, they were drawn evenly, but for the right one

    def select(self, rows: Any) -> EntityPairs:
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[rows] for name in ("tails", "heads", "shares", "joined")})

    def log_weights(self) -> Float64:
        """The logarithm of how many relations each column stands for: the right one for itself alone.  # (q, n)"""
        columns = self.shares.shape[1]
        for_all = np.full(self.shares.shape, np.log(self.relations / columns))
        for_others = np.full(self.shares.shape, np.log(max(1, self.relations - 1) / max(1, columns - 1)))
        for_others[:, 0] = 0.0
        return np.where(self.joined[:, None], for_others, for_all)


def calibrate_relations(engine: Engine) -> RelationCalibration:
    """Fit on validation triples, and on pairs of the head of one and the tail of another."""
    kg, rng = engine.kg, np.random.default_rng(0)
    columns = min(COMPETITORS, kg.num_relations)
    count = min(len(kg.valid), QUESTIONS // (4 * columns))
    if count < MIN_PAIRS:
        return RelationCalibration()
    triples = kg.valid[np.sort(rng.choice(len(kg.valid), count, replace=False))]
    mixed = np.stack([triples[:, 0], rng.permutation(triples[:, 2])], 1)
    mixed = np.array([pair for pair in mixed.tolist() if not _known(engine, *pair)], np.int32).reshape(-1, 2)
    pairs = np.concatenate([triples[:, [0, 2]], mixed])
    joined = np.arange(len(pairs)) < count
    share = log_shares(engine.names.frequency)
    relations = np.zeros((len(pairs), columns), np.int32)
    shares = np.full(relations.shape, -np.inf)
    for row, (head, tail) in enumerate(pairs.tolist()):
        known = _known(engine, head, tail)
        others = [r for r in rng.permutation(kg.num_relations).tolist() if r not in known]
        chosen = ([int(triples[row, 1]), *others] if joined[row] else others)[:columns]
        relations[row, : len(chosen)], shares[row, : len(chosen)] = chosen, share[chosen]
    tails = _scores(engine, pairs[:, 0], relations, pairs[:, 1])
    heads = _scores(engine, pairs[:, 1], relations + kg.num_relations, pairs[:, 0])
    parts = np.moveaxis(np.concatenate([tails, heads]), -1, 0)
    scale = np.array([engine.retriever.calibration_scale(part) for part in parts])  # (P,)
    fitted = fit_relations(EntityPairs(tails * scale, heads * scale, shares, joined, kg.num_relations))
    by_tail, by_head = (tuple((np.array(by) * scale).tolist()) for by in (fitted.by_tail, fitted.by_head))
    return replace(fitted, by_tail=by_tail, by_head=by_head)


def fit_relations(pairs: EntityPairs) -> RelationCalibration:
    """By maximum likelihood; how often the right relation comes first is measured with weights from the other half."""
    half = np.random.default_rng(0).permutation(len(pairs.joined)) < len(pairs.joined) // 2
    right = 0
    for part in (half, ~half):
        rest = pairs.select(~part)
        logits = _fit(pairs.select(part)).logits(rest.tails, rest.heads, rest.shares)
        right += int((logits.argmax(1) == 0)[rest.joined].sum())
    count = int(np.sum(pairs.joined))
    return replace(_fit(pairs), questions=count, first=right / count)


def _fit(pairs: EntityPairs) -> RelationCalibration:
    """First which relation, from those that are joined; then whether any, from all."""
    start, parts = RelationCalibration(), pairs.tails.shape[-1]
    absent = ~np.isfinite(pairs.shares)
    # In double precision: the search takes differences of the loss.
    tails, heads = (np.where(absent[..., None], 0.0, part).astype(np.float64) for part in (pairs.tails, pairs.heads))
    shares = np.where(absent, 0.0, pairs.shares)

    def weighed(free: Float64) -> RelationCalibration:
        values = np.exp(free).tolist()
        return RelationCalibration(tuple(values[:parts]), tuple(values[parts:-1]), values[-1])

    def logits(free: Float64) -> Float64:
        return np.where(absent, -np.inf, weighed(free).logits(tails, heads, shares))

    def which(free: Float64) -> float:
        return -float(log_softmax(logits(free)[pairs.joined], axis=1)[:, 0].sum())

    each = np.array([*start.by_tail, *start.by_head]).repeat(parts) / parts
    weights = _minimise(which, np.log([*each, start.by_frequency]))
    total = logsumexp(logits(weights) + pairs.log_weights(), axis=1)
    sign = np.where(pairs.joined, 1, -1)

    def whether(free: Float64) -> float:
        return -float(log_expit(sign * np.exp(free[1]) * (total - 10 * free[0])).sum())

    none, steep = _minimise(whether, np.array([start.none / 10, np.log(start.steep)]))
    return replace(weighed(weights), none=float(10 * none), steep=float(np.exp(steep)))


def _minimise(loss: Callable[[Float64], float], start: Float64) -> Float64:
    """The least loss; a faint pull to the start keeps it finite where everything is easy."""
    result = minimize(lambda free: loss(free) + float(np.sum((free - start) ** 2)), start, method="L-BFGS-B")
    return np.asarray(result.x)


def _known(engine: Engine, head: int, tail: int) -> set[int]:
    return {r for r in range(engine.kg.num_relations) if engine.is_known(head, r, tail)}


def fill_silence(scores: Float32) -> Float32:
    """Where an expert says nothing of a relation, what it says of the pair's others on average.  # (..., n, P)"""
    spoken = np.isfinite(scores)
    mean = np.where(spoken, scores, 0).sum(-2, keepdims=True) / np.maximum(spoken.sum(-2, keepdims=True), 1)
    return np.where(spoken, scores, mean).astype(np.float32)


def _scores(engine: Engine, entities: Int32, directed: Int32, answers: Int32) -> Float32:
    """Of each entity's one answer for each of its directed relations, by each part of the model.  # (q, n, P)"""
    queries = list(zip(np.repeat(entities, directed.shape[1]).tolist(), directed.ravel().tolist(), strict=True))
    encoded = engine.encode(queries, progress=True)
    scores = engine.retriever.expert_scores(encoded, np.repeat(answers, directed.shape[1]))
    return fill_silence(scores.reshape(*directed.shape, -1))
