"""Which relation joins two entities: the weights are found again from pairs that were drawn with them."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.special import expit

from satkgc.completion.relations import EntityPairs, RelationCalibration, fill_silence, fit_relations, log_shares

TRUE = RelationCalibration(by_tail=(12.0,), by_head=(25.0,), by_frequency=1.2, none=9.0, steep=0.7)


def drawn(pairs: int, relations: int = 30, seed: int = 0) -> tuple[EntityPairs, np.ndarray]:
    """Pairs whose relation, if any, was drawn as `TRUE` says; the right one comes first. And the relations' logits."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.normal(0.2, 0.1, (2, pairs, relations))
    shares = np.broadcast_to(log_shares(rng.integers(1, 1000, relations)), tails.shape)
    logits = TRUE.logits(tails[..., None], heads[..., None], shares)
    right = (logits + rng.gumbel(size=logits.shape)).argmax(1)  # a draw from the softmax
    joined = rng.random(pairs) < expit(TRUE.steep * (np.log(np.exp(logits).sum(1)) - TRUE.none))
    first = np.where(joined, right, 0)
    order = np.argsort(np.arange(relations) != first[:, None], axis=1, kind="stable")
    columns = [np.take_along_axis(part, order, 1) for part in (tails, heads, shares, logits)]
    return pairs_of(*columns[:3], joined, relations), columns[3]


def pairs_of(tails, heads, shares, joined, relations) -> EntityPairs:
    """Of a model that is one part."""
    return EntityPairs(tails[..., None], heads[..., None], shares, joined, relations)


def weights(fit: RelationCalibration) -> list[float]:
    return [*fit.by_tail, *fit.by_head, fit.by_frequency, fit.none, fit.steep]


def test_weights_are_found_again_from_all_relations() -> None:
    pairs, logits = drawn(4000)
    assert 0.2 < pairs.joined.mean() < 0.8
    fit = fit_relations(pairs)
    assert weights(fit) == pytest.approx(weights(TRUE), rel=0.1)
    assert fit.questions == pairs.joined.sum()
    assert fit.first == pytest.approx((logits.argmax(1) == 0)[pairs.joined].mean(), abs=0.03)


def test_and_from_a_few_relations_drawn_evenly() -> None:
    pairs, _ = drawn(8000)
    rng = np.random.default_rng(1)
    # Beside the right relation 7 of the other 29; where there is none, 8 of all 30.
    order = rng.permuted(np.tile(np.arange(30), (8000, 1)), axis=1)
    rest = order[order != 0].reshape(8000, 29)
    columns = np.where(pairs.joined[:, None], np.column_stack([np.zeros(8000, int), rest[:, :7]]), order[:, :8])
    some = [np.take_along_axis(part, columns, 1) for part in (pairs.tails[..., 0], pairs.heads[..., 0], pairs.shares)]
    fit = fit_relations(pairs_of(*some, pairs.joined, 30))
    assert weights(fit)[:4] == pytest.approx(weights(TRUE)[:4], rel=0.1)
    assert fit.steep == pytest.approx(TRUE.steep, rel=0.25)  # what was not drawn makes it look less steep
    # Without knowing that they are a part of all, the threshold would be too low.
    assert fit_relations(pairs_of(*some, pairs.joined, 8)).none < TRUE.none - 1


def test_places_that_hold_no_relation_do_not_count() -> None:
    pairs, _ = drawn(3000, relations=10)
    hollow = [np.column_stack([part, np.full((3000, 3), fill)]) for part, fill in
              ((pairs.tails[..., 0], 0.9), (pairs.heads[..., 0], 0.9), (pairs.shares, -np.inf))]  # fmt: skip
    assert weights(fit_relations(pairs_of(*hollow, pairs.joined, 13))) == pytest.approx(
        weights(fit_relations(pairs)), rel=1e-3
    )


def test_cosines_in_single_precision_give_the_same_weights() -> None:
    pairs, _ = drawn(300)
    single = replace(pairs, tails=pairs.tails.astype(np.float32), heads=pairs.heads.astype(np.float32))
    assert weights(fit_relations(single)) == pytest.approx(weights(fit_relations(pairs)), rel=1e-3)


def test_of_the_relations_called_likely_as_many_are_right() -> None:
    fit = fit_relations(drawn(4000, seed=1)[0])
    pairs, _ = drawn(4000, seed=2)
    logits = fit.logits(pairs.tails, pairs.heads, pairs.shares)
    chances = fit.probability(logits)
    predicted = chances.max(1)
    right = (chances.argmax(1) == 0) & pairs.joined
    for low, high in ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 1.0)):
        inside = (predicted >= low) & (predicted < high)
        assert inside.sum() > 100
        assert right[inside].mean() == pytest.approx(predicted[inside].mean(), abs=0.08)


def test_weights_stay_finite_where_every_pair_is_easy() -> None:
    joined = np.arange(30) < 15
    tails = np.where(joined[:, None], [0.9, 0.1, 0.1], [0.1, 0.1, 0.1])
    fit = fit_relations(pairs_of(tails, tails, np.zeros((30, 3)), joined, 3))
    assert all(0 < weight <= 200 for weight in weights(fit))
    assert fit.first == 1


def test_the_softmax_is_scaled_by_the_chance_of_any() -> None:
    fit = replace(TRUE, none=1.5, steep=2.0)
    e = np.exp([2.0, 1.0, 0.0, 3.0])
    wanted = e / e.sum() / (1 + (np.exp(1.5) / e.sum()) ** 2)
    assert fit.probability(np.log(e)) == pytest.approx(wanted)
    assert fit.probability(np.log([e, e])) == pytest.approx(np.array([wanted, wanted]))


def test_an_expert_that_is_silent_says_what_it_says_of_the_others_on_average() -> None:
    scores = np.array(
        [[[1.0, np.nan], [2.0, 4.0], [3.0, 8.0]], [[np.nan, 1.0], [np.nan, 2.0], [np.nan, 3.0]]], np.float32
    )
    filled = [[[1, 6], [2, 4], [3, 8]], [[0, 1], [0, 2], [0, 3]]]
    np.testing.assert_array_equal(fill_silence(scores), filled)


def test_earlier_versions_had_a_number_for_all_experts() -> None:
    old = {
        "by_tail": 12.0,
        "by_head": 25.0,
        "by_frequency": 1.2,
        "none": 9.0,
        "steep": 0.7,
        "questions": 0,
        "first": 0.0,
    }
    assert RelationCalibration.from_json(old) == TRUE
    assert RelationCalibration.from_json(asdict(TRUE)) == TRUE
    assert RelationCalibration.from_json({}) == RelationCalibration()
