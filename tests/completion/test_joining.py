"""Which relation joins two entities: the weights are found again from questions that were drawn with them."""

from __future__ import annotations

import numpy as np
import pytest

from satkgc.completion.joining import Joining, fit_joining, log_shares

TRUE = Joining(by_tail=12.0, by_head=25.0, by_frequency=1.2)


def drawn(questions: int, relations: int = 30, seed: int = 0):  # type: ignore[no-untyped-def]
    """Cosines of all relations for each question, and the right one, drawn from the softmax that `TRUE` says."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.normal(0.3, 0.1, (2, questions, relations))
    shares = np.broadcast_to(log_shares(rng.integers(1, 1000, relations)), tails.shape)
    noise = rng.gumbel(size=tails.shape)  # the largest of logit + Gumbel noise is a draw from the softmax
    return tails, heads, shares, (TRUE.logits(tails, heads, shares) + noise).argmax(1)


def weights(fit: Joining) -> list[float]:
    return [fit.by_tail, fit.by_head, fit.by_frequency]


def test_weights_are_found_again_from_all_relations() -> None:
    fit = fit_joining(*drawn(4000))
    assert weights(fit) == pytest.approx(weights(TRUE), rel=0.1)
    assert fit.questions == 4000
    tails, heads, shares, true = drawn(4000, seed=3)
    assert fit.first == pytest.approx((TRUE.logits(tails, heads, shares).argmax(1) == true).mean(), abs=0.03)


def test_and_from_a_few_relations_drawn_evenly_beside_the_right_one() -> None:
    tails, heads, shares, true = drawn(6000)
    rng, rows = np.random.default_rng(1), np.arange(len(true))
    order = rng.permuted(np.tile(np.arange(30), (len(true), 1)), axis=1)
    others = order[order != true[:, None]].reshape(len(true), 29)[:, :7]
    columns = np.column_stack([true, others])
    some = [part[rows[:, None], columns] for part in (tails, heads, shares)]
    some[2][::3, 5:] = -np.inf  # some questions have fewer candidates
    assert weights(fit_joining(*some, np.zeros(len(true), int))) == pytest.approx(weights(TRUE), rel=0.15)


def test_of_the_relations_told_likely_as_many_are_right() -> None:
    fit = fit_joining(*drawn(4000, seed=1))
    tails, heads, shares, true = drawn(4000, seed=2)
    logits = fit.logits(tails, heads, shares)
    chances = np.array([fit.probability(row, np.zeros(len(row), bool)) for row in logits])
    first = chances.max(1)
    right = chances.argmax(1) == true
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        inside = (first >= low) & (first < high)
        assert inside.sum() > 100
        assert right[inside].mean() == pytest.approx(first[inside].mean(), abs=0.08)


def test_weights_stay_finite_where_every_question_is_easy() -> None:
    tails = np.tile([0.9, 0.1, 0.1], (30, 1))
    fit = fit_joining(tails, tails, np.zeros((30, 3)), np.zeros(30, int))
    assert all(0 < weight <= 200 for weight in weights(fit))


def test_a_known_relation_competes_with_the_unknown_ones() -> None:
    logits = np.array([2.0, 1.0, 0.0, 3.0])
    known = np.array([True, False, False, True])
    e = np.exp(logits)
    free = e[1] + e[2]
    wanted = [e[0] / (e[0] + free), e[1] / free, e[2] / free, e[3] / (e[3] + free)]
    assert Joining.probability(logits, known) == pytest.approx(wanted)
    assert Joining.probability(logits, np.ones(4, bool)) == pytest.approx(np.ones(4))
