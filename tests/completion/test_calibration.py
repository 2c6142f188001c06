"""Calibration on made-up questions whose true probabilities are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logsumexp

from satkgc.completion.calibration import (
    Calibration,
    _logit,
    draw_reliability,
    expected_calibration_error,
    fit,
    report_reliability,
)
from satkgc.completion.relations import RelationCalibration
from satkgc.errors import SatkgcError


def made_up(seed, questions=3000, competitors=50):
    """Cosines, and labels drawn from a probability that depends on the cosine and on the competition."""
    rng = np.random.default_rng(seed)
    ease = rng.uniform(0.02, 0.35, (questions, 1))
    scores = -np.sort(-(0.2 + ease * rng.gumbel(size=(questions, competitors)) * 0.4), axis=1)
    chances = expit(-1 + 2 * scores + 1.2 * log_softmax(scores / 0.08, axis=1) + 1.5)
    return scores, rng.random(chances.shape) < chances, chances


def test_the_probabilities_are_those_the_labels_were_drawn_from():
    scores, labels, _ = made_up(0)
    calibration = fit(scores, labels)
    fresh, fresh_labels, truth = made_up(1)
    predicted = calibration.probability(fresh, fresh, True)
    assert np.abs(predicted - truth).mean() < 0.01
    assert np.abs(predicted[:, 0] - truth[:, 0]).mean() < 0.03
    assert expected_calibration_error(predicted.ravel(), fresh_labels.ravel()) < 0.01
    assert calibration.ece < 0.01
    assert calibration.ece_first < 0.06


def test_within_a_question_a_better_score_is_never_less_likely():
    rng = np.random.default_rng(3)
    scores, labels, _ = made_up(3, 400)
    labels = labels[:, rng.permutation(50)]  # even where the data say the opposite
    predicted = fit(scores, labels).probability(scores, scores, True)
    assert (np.diff(predicted, axis=1) <= 1e-12).all()


def by_hand(mapping, score, field):
    """The formula of the docstring for a score in a field of competitors that it is part of."""
    share = score / mapping.temperature - logsumexp(np.array(field) / mapping.temperature)
    raw = mapping.bias + mapping.by_score * score + mapping.by_share * share
    if raw < mapping.knots[0]:
        return expit(mapping.levels[0] + raw - mapping.knots[0])
    if raw > mapping.knots[-1]:
        return expit(mapping.levels[-1] + raw - mapping.knots[-1])
    return expit(np.interp(raw, mapping.knots, mapping.levels))


def test_a_candidate_that_is_no_competitor_competes_with_all_of_them():
    scores, labels, _ = made_up(4)
    calibration = fit(scores, labels)
    competitors = np.linspace(0.6, 0.1, 50)[None]
    for score in (0.9, 0.35, 0.1, -0.5):
        alone = calibration.probability([[score]], competitors, [[False]])[0, 0]
        assert alone == pytest.approx(by_hand(calibration.mapping, score, [score, *competitors[0]]))
    for score in (0.6, 0.1):  # a competitor's own score is in the sum already
        listed = calibration.probability([[score]], competitors, [[True]])[0, 0]
        assert listed == pytest.approx(by_hand(calibration.mapping, score, competitors[0]))


def test_the_isotonic_step_corrects_what_the_logistic_one_cannot_say():
    """Labels whose log odds jump: a logistic model alone is off, and more so the fewer bends it has."""
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.uniform(0, 1, (4000, 20)), axis=1)
    truth = np.where(scores > 0.7, 0.4, 0.02)
    labels = rng.random(truth.shape) < truth
    mapping = fit(scores, labels).mapping
    assert mapping.levels == sorted(mapping.levels)
    predicted = mapping.probability(scores, scores, True)
    plain = expit(_logit((mapping.temperature, mapping.bias, mapping.by_score, mapping.by_share), scores, scores, True))
    assert expected_calibration_error(predicted.ravel(), labels.ravel()) < 0.01
    assert expected_calibration_error(plain.ravel(), labels.ravel()) > 0.02


def test_a_few_lucky_candidates_are_no_certainty():
    scores = np.linspace(0.9, 0.1, 400)[:, None] + np.linspace(0, -0.05, 10)
    labels = np.random.default_rng(1).random(scores.shape) < 0.3
    labels[:4] = True  # the forty best are all true
    top = fit(scores, labels).probability(scores, scores, True)[:4]
    assert top.max() < 0.6


def test_fewer_candidates_than_competitors_are_weightless():
    scores, labels, _ = made_up(5, 500, competitors=20)
    wide = np.full((500, 50), -np.inf)
    wide[:, :20] = scores
    no = np.zeros((500, 50), bool)
    no[:, :20] = labels
    a, b = fit(scores, labels), fit(wide, no)
    assert a.mapping.by_share == pytest.approx(b.mapping.by_share, rel=1e-3)
    assert a.curve.counts == b.curve.counts


def test_questions_without_candidates_are_as_if_they_were_not_asked():
    scores, labels, _ = made_up(2)
    nothing = np.full((3, 50), -np.inf), np.zeros((3, 50), bool)
    assert fit(np.concatenate([nothing[0], scores]), np.concatenate([nothing[1], labels])) == fit(scores, labels)


def test_the_error_is_zero_for_the_truth_and_large_for_boasting():
    chances = np.repeat([0.1, 0.5, 0.9], 1000)
    truth = np.tile(np.arange(1000) < 100, 3)
    truth[1000:2000] = np.arange(1000) < 500
    truth[2000:] = np.arange(1000) < 900
    assert expected_calibration_error(chances, truth) == pytest.approx(0, abs=1e-9)
    assert expected_calibration_error(np.ones(3000), truth) == pytest.approx(0.5)
    assert expected_calibration_error(np.zeros(3000), truth) == pytest.approx(0.5)


def test_a_threshold_gives_the_precision_it_promises():
    scores, labels, _ = made_up(6)
    calibration = fit(scores, labels)
    fresh, fresh_labels, _ = made_up(7)
    predicted = calibration.probability(fresh, fresh, True)
    for wanted in (0.5, 0.7):
        kept = predicted >= calibration.threshold(wanted)
        assert kept.sum() > 50
        assert fresh_labels[kept].mean() > wanted - 0.05
    assert calibration.threshold(0.5) < calibration.threshold(0.7)
    with pytest.raises(SatkgcError, match="no threshold reaches a precision of 2"):
        calibration.threshold(2)


def test_too_little_to_learn_from_gives_none():
    scores, labels, _ = made_up(8, 100)
    assert fit(scores, labels & False) is None


def test_it_is_kept_as_json_and_drawn(tmp_path):
    scores, labels, _ = made_up(9, 600)
    calibration = fit(scores, labels)
    both = Calibration(calibration, RelationCalibration(by_tail=(3.0,), questions=40))
    both.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == both
    assert json.loads((tmp_path / "calibration.json").read_text())["entities"]["questions"] == 600
    assert Calibration.load(tmp_path / "none.json") == Calibration()
    draw_reliability(calibration, tmp_path / "reliability.png")
    assert (tmp_path / "reliability.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    (tmp_path / "README.md").write_text("# A run\n\nwords\n")
    for _ in range(2):  # the second report takes the place of the first
        report_reliability(calibration, tmp_path / "README.md")
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("# A run\n\nwords\n\n## Probabilities\n")
    assert card.count("## Probabilities") == 1
    assert f"\n{calibration.ece:.4f} over all candidates" in card
    assert f"| 50% | {calibration.threshold(0.5):.2f} |" in card
    (tmp_path / "calibration.json").write_text('{"temperature": 1}')
    with pytest.raises(SatkgcError, match=r"calibration\.json: not a calibration"):
        Calibration.load(tmp_path / "calibration.json")
