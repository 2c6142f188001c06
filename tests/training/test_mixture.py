"""The fit of the weights: against scipy's own search, on choices drawn from known weights, and what it does not see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax

from graphs import graph_of
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.models import FusedConfig, FusedModel, Questions
from satkgc.training.mixture import (
    Choices,
    _cross_validate,
    check_fitted_on,
    choose_strength,
    collect,
    competitors,
    fit_general,
    fit_mixture,
    fit_relations,
)
from tasks import small_graph
from toy_models import PlainScores, WordVectors

KG = small_graph()


def fused(kg=KG):
    return FusedModel(kg, FusedConfig(), {"words": WordVectors(kg), "plain": PlainScores(kg, 0.1)})


def drawn(weights, count=4000, candidates=12, seed=0):
    """Choices whose right answers are drawn from the softmax that these weights (G, n) of each group give."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, len(weights), count)
    shares = rng.normal(size=(weights.shape[1], count, candidates))
    chance = np.exp(log_softmax(np.einsum("ntk,tn->tk", shares, weights[groups]), axis=1))
    right = (chance.cumsum(1) > rng.random((count, 1))).argmax(1)
    order = np.argsort(np.arange(candidates)[None] != right[:, None], axis=1, kind="stable")  # the right one first
    shares = np.take_along_axis(shares, order[None], 2)
    zeros = torch.zeros(count, candidates, dtype=torch.float64)
    return Choices(torch.from_numpy(shares), zeros, groups.astype(np.int64), np.arange(count))


def test_weights_that_made_the_choices_are_found():
    truth = np.array([[0.8, 0.0, 1.5]])
    found = fit_general(drawn(truth))
    np.testing.assert_allclose(found, truth[0], atol=0.1)
    assert (found >= 0).all()


def test_the_fit_is_the_least_of_the_loss():
    choices = drawn(np.array([[0.5, 1.0], [1.5, 0.2]]), count=300)
    general, strength = np.array([0.9, 0.6]), 20.0

    def loss(flat):
        weights = flat.reshape(2, 2)
        logits = np.einsum("ntk,tn->tk", choices.shares.numpy(), weights[choices.relations])
        return -log_softmax(logits, axis=1)[:, 0].sum() + strength / 2 * ((weights - general) ** 2).sum()

    slow = minimize(loss, np.ones(4), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 5000})
    np.testing.assert_allclose(fit_relations(choices, general, strength).ravel(), slow.x, atol=1e-3)


def test_a_stronger_pull_is_nearer_to_the_general_weights_and_more_choices_are_farther():
    truth = np.array([[0.2, 1.8], [1.8, 0.2]])
    general = np.array([1.0, 1.0])
    distance = [
        np.abs(fit_relations(drawn(truth, count), general, strength) - general).max()
        for count, strength in ((200, 1e6), (200, 100.0), (200, 1.0), (4000, 100.0))
    ]
    assert distance[0] < 0.01 < distance[1] < distance[2]
    assert distance[1] < distance[3]


def test_relations_that_differ_get_weights_of_their_own_and_those_that_do_not_share():
    different = drawn(np.array([[0.0, 2.0], [2.0, 0.0]]))
    alike = drawn(np.array([[1.0, 1.0], [1.0, 1.0]]))
    gains, chosen = [], []
    for choices in (different, alike):
        trials = _cross_validate(choices, choices.triples % 5)
        assert trials[0].strength is None
        gains.append(max(trial.log_likelihood for trial in trials) - trials[0].log_likelihood)
        chosen.append(choose_strength(trials))
    assert gains[0] > 0.1
    assert gains[1] < 0.01
    assert chosen[0] is not None
    assert chosen[1] is None
    assert max(trials, key=lambda trial: trial.mrr).mrr - trials[0].mrr < 0.01


def test_a_weaker_pull_has_to_be_better_by_more_than_chance():
    """The standard error by redrawing questions (the bootstrap), which knows no formula."""
    choices = drawn(np.array([[0.8, 1.0], [1.0, 0.8]]), 300)
    trials = _cross_validate(choices, fold := choices.triples % 5)
    best = max(trials, key=lambda trial: trial.log_likelihood)
    assert best.behind == 0
    assert best.strength is not None
    rows = []
    for strength in (None, best.strength):
        held = np.zeros(len(fold))
        for out in range(5):
            fitted, rest = choices.select(fold != out), choices.select(fold == out)
            general = fit_general(fitted)
            weights = np.tile(general, (2, 1)) if strength is None else fit_relations(fitted, general, strength)
            held[fold == out] = log_softmax(rest.logits(weights[rest.relations]) + rest.log_counts, axis=1)[:, 0]
        rows.append(held)
    difference = rows[1] - rows[0]
    drawn_again = np.random.default_rng(0).choice(difference, (4000, len(difference))).mean(1)
    assert trials[0].behind == pytest.approx(difference.mean() / drawn_again.std(), rel=0.1)


def test_candidates_stand_for_all_others():
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 5000)))
    scores[1, 2] = -torch.inf  # has nothing to say
    scores[0, 1] = scores[1, 1]  # both say the same
    known = [np.array([3, 77, 4999], np.int32), np.array([], np.int32), np.array([8], np.int32)]
    ids, log_counts = competitors(scores, known, 0)
    for row, out in enumerate(known):
        used = log_counts[row] > -torch.inf
        chosen, counts = ids[row][used].tolist(), log_counts[row][used].exp()
        assert len(chosen) == len(set(chosen)) < 100
        assert not set(chosen) & set(out.tolist())
        assert counts.sum().item() == pytest.approx(5000 - len(out), rel=1e-4)
        single = {e for e, count in zip(chosen, counts.tolist(), strict=True) if count == 1}
        best = set()
        for expert in scores[:, row]:
            allowed = expert.clone()
            allowed[out] = -torch.inf
            best |= set(allowed.topk(32).indices[allowed.topk(32).values > -torch.inf].tolist())
        assert single == best
    # A softmax's normaliser over all is that over the candidates, nearly.
    sums = scores[0, 0, ids[0]] + log_counts[0], torch.from_numpy(np.delete(scores[0, 0].numpy(), known[0]))
    assert sums[0].logsumexp(0).item() == pytest.approx(sums[1].logsumexp(0).item(), abs=0.3)


def test_the_right_answer_competes_with_all_but_known_answers():
    model = fused()
    choices = collect(model, KG.valid)
    known = {tuple(row) for row in np.concatenate([KG.train, KG.valid]).tolist()}
    for row in range(len(choices.relations)):
        h, r, t = KG.valid[choices.triples[row]].tolist()
        directed = int(choices.relations[row])
        tails = directed < KG.num_relations
        question = Questions(np.array([h if tails else t], np.int32), np.array([directed], np.int32))
        shares = model.log_shares(question)[:, 0].double()
        assert torch.allclose(choices.shares[:, row, 0], shares[:, t if tails else h], atol=1e-5)
        others = [e for e in range(KG.num_entities) if ((h, r, e) if tails else (e, r, t)) not in known]
        used = choices.log_counts[row, 1:] > -torch.inf
        assert torch.allclose(choices.shares[:, row, 1:][:, used], shares[:, others], atol=1e-5)


def test_test_triples_change_nothing():
    empty = KnowledgeGraph.from_arrays(KG.name, KG.entities, KG.relations, KG.train, KG.valid)
    one, other = (fit_mixture(fused(kg), kg.valid)[0] for kg in (KG, empty))
    for part in ("scales", "general", "weights"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def test_a_good_expert_beats_a_bad_one_whatever_the_size_of_its_scores():
    class Knowing(PlainScores):
        """High scores for what validation holds; the rest is noise, on a scale of millions."""

        def score(self, questions, candidates=None):
            scores = super().score(questions)
            for row, (entity, directed) in enumerate(zip(questions.entities, questions.relations, strict=True)):
                for h, r, t in KG.valid.tolist():
                    if (h, r) == (entity, directed) or (t, r + KG.num_relations) == (entity, directed):
                        scores[row, t if directed < KG.num_relations else h] += 1e6 * 20
            return scores

    model = FusedModel(KG, FusedConfig(), {"words": WordVectors(KG), "knowing": Knowing(KG, 1e6)})
    mixture, _ = fit_mixture(model, KG.valid)
    assert mixture.scales[1] < 1e-4
    assert mixture.scales[1] * 1e6 * mixture.general[1] > 0.1
    assert mixture.general[1] > 5 * mixture.general[0]


class Narrow(PlainScores):
    """Knows every second entity."""

    def knows_entities(self):
        return np.arange(self.kg.num_entities) % 2 == 0


def test_novelty_is_how_much_more_often_unknown_entities_are_answers():
    odd = KG.train[(KG.train[:, [0, 2]] % 2 == 1).all(1)]  # one expert knows none of their answers
    experts = {"words": WordVectors(KG), "narrow": Narrow(KG, 0.1)}
    shares = []
    for novelty in (False, True):
        model = FusedModel(KG, FusedConfig(novelty=novelty), experts)
        model.mixture = fit_mixture(model, odd)[0]
        scores = model.score(Questions(odd[:, 0].copy(), odd[:, 1].copy()))
        shares.append(float(scores.exp()[:, 1::2].sum(1).mean()))
    assert len(odd) > 5
    assert shares[0] < 0.7
    assert shares[1] > 0.95


def test_novelty_is_the_least_of_the_loss_and_may_be_negative():
    truth = np.array([[0.8, 1.2, -1.5]])
    choices = drawn(truth)
    choices = replace(choices, shares=torch.cat([choices.shares[:2], (choices.shares[2:] > 0.5).double()]))
    rng = np.random.default_rng(1)
    chance = np.exp(log_softmax(np.einsum("ntk,n->tk", choices.shares.numpy(), truth[0]), axis=1))
    right = (chance.cumsum(1) > rng.random((len(chance), 1))).argmax(1)
    order = np.argsort(np.arange(chance.shape[1])[None] != right[:, None], axis=1, kind="stable")
    shares = np.take_along_axis(choices.shares.numpy(), order[None], 2)
    found = fit_general(replace(choices, shares=torch.from_numpy(shares), novelty=True))
    np.testing.assert_allclose(found, truth[0], atol=0.1)


def test_what_leaves_nothing_to_fit_on_is_refused():
    kg = graph_of([(0, 0, 1), (1, 0, 2)], 4)
    with pytest.raises(SatkgcError, match=r"no validation triples to fit a mixture on; give it some, or train one"):
        check_fitted_on(kg, 0.0)
    with pytest.raises(SatkgcError, match=r"0\.999 of 30 validation triples held back leave none"):
        check_fitted_on(replace(KG, valid=KG.train[:30]), 0.999)
    check_fitted_on(KG, 0.5)
