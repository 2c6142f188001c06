"""The loss agrees with the formulas written out, in value and in gradient, whatever is switched on."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from literal import loss as literal_loss

from graphs import random_graph
from satkgc.models.text import (
    Objective,
    ObjectiveConfig,
    Relations,
    answer_counts,
    answer_pairs,
    frequency_weights,
    known_pairs,
)

SIMKGC = ObjectiveConfig()


def batch(seed, config, n=6):
    """A batch of n triples of a small graph with their inverses, and random vectors for it in float64."""
    rng = np.random.default_rng(seed)
    kg = random_graph(seed, entities=9, relations=2, triples=40)
    triples = kg.train[rng.choice(len(kg.train), n, replace=False)]
    heads = np.concatenate([triples[:, 0], triples[:, 2]])
    directed = np.concatenate([triples[:, 1], triples[:, 1] + kg.num_relations])
    tails = np.concatenate([triples[:, 2], triples[:, 0]])
    distance = rng.integers(1, 5, kg.num_entities)
    pairs = known_pairs(kg.known_train, heads, directed, tails, kg.num_relations)
    if config.mask == "answer":
        pairs = answer_pairs(tails)
    relations = Relations(
        *(torch.from_numpy(p).long() for p in pairs),
        head_closeness=torch.from_numpy(1 / distance[heads]),
        tail_closeness=torch.from_numpy(1 / distance[tails]),
        tail_weights=torch.from_numpy(frequency_weights(kg, tails)).double(),
        head_weights=torch.from_numpy(frequency_weights(kg, heads)).double(),
        tail_log_counts=torch.from_numpy(np.log(answer_counts(kg)[tails])),
    )
    vectors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(2, 2 * n, 5))), dim=-1)
    samples = list(zip(heads.tolist(), directed.tolist(), tails.tolist(), strict=True))
    known = {(h, r, t) for h, r, t in kg.train.tolist()} | {
        (t, r + kg.num_relations, h) for h, r, t in kg.train.tolist()
    }
    return (
        vectors,
        relations,
        (samples, known, kg.adjacency.degree, distance, Counter(kg.train[:, [0, 2]].ravel().tolist())),
    )


def literal(config, vectors, facts, tau=0.05, beta=0.3):
    samples, known, degree, distance, count = facts
    return literal_loss(config, samples, *vectors.tolist(), known, degree, distance, tau, beta, count)


def ours(config, vectors, relations):
    objective = Objective(replace(config, beta=0.3)).double()
    return objective, objective(*vectors, relations)


PARTS = [
    dict(zip(["two_sided", "self_negatives", "mask", "proximity", "frequency", "reduction"], values, strict=True))
    for values in itertools.product(
        [True, False],
        [True, False],
        ["known", "answer", "none"],
        ["off", "negatives", "all"],
        [True, False],
        ["mean", "weighted-mean", "sum"],
    )
]


@pytest.mark.parametrize("proximity", ["off", "negatives", "all"])
@pytest.mark.parametrize("mask", ["known", "answer", "none"])
def test_every_combination_is_the_paper_formula(proximity, mask):
    for number, parts in enumerate(PARTS):
        if parts["proximity"] == proximity and parts["mask"] == mask:
            config = replace(SIMKGC, **parts)
            vectors, relations, facts = batch(number, config)
            assert ours(config, vectors, relations)[1].item() == pytest.approx(
                literal(config, vectors, facts), rel=1e-6
            )


@pytest.mark.parametrize("parts", PARTS[::7])
def test_popularity_divides_by_how_often_a_tail_answers(parts):
    config = replace(SIMKGC, **parts, popularity=0.7)
    vectors, relations, facts = batch(1, config)
    value = ours(config, vectors, relations)[1].item()
    assert value == pytest.approx(literal(config, vectors, facts), rel=1e-6)
    assert value != pytest.approx(ours(replace(config, popularity=0.0), vectors, relations)[1].item(), rel=1e-5)


def test_popularity_teaches_how_likely_an_answer_is_not_how_surprising():
    """Of two tails one answers three times as often. With no clue the plain loss scores both alike."""
    tails, counts = torch.tensor([0, 0, 0, 1]), torch.tensor([3.0, 1.0])
    for popularity, expected in [(0.0, 0.0), (1.0, np.log(3))]:
        config = ObjectiveConfig(
            temperature=1.0, margin=0.0, mask="none", self_negatives=False, two_sided=False, popularity=popularity
        )
        objective = Objective(config).requires_grad_(False)
        score = torch.zeros(2, requires_grad=True)  # of each tail, for every query
        optimizer = torch.optim.SGD([score], lr=0.5)
        for _ in range(300):
            logits = torch.diag(score)[tails]
            value = objective(torch.ones(4, 2), logits, Relations(tail_log_counts=counts[tails].log()))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        assert (score[0] - score[1]).item() == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("proximity", ["negatives", "all"])
def test_gradients_are_the_formulas_slopes(proximity):
    config = replace(SIMKGC, proximity=proximity, frequency=True, margin=0.1)
    vectors, relations, facts = batch(3, config)
    vectors.requires_grad_(True)
    objective, value = ours(config, vectors, relations)
    value.backward()
    step = 1e-6

    def slope(shifted):
        return (shifted(step) - shifted(-step)) / (2 * step)

    tau = slope(lambda d: literal(config, vectors, facts, tau=0.05 * np.exp(-d)))
    assert objective.log_inverse_temperature.grad.item() == pytest.approx(tau, rel=1e-4)
    beta = slope(lambda d: literal(config, vectors, facts, beta=0.3 + d))
    assert objective.beta.grad.item() == pytest.approx(beta, rel=1e-4)
    # The literal cosine divides by the lengths, ours takes unit vectors: compare along a direction that keeps them.
    for side, row in [(0, 2), (1, 7)]:
        x = vectors[side, row].detach()
        direction = torch.linspace(-1, 1, 5, dtype=torch.float64)
        direction = direction - (direction @ x) * x

        def moved(d, side=side, row=row, direction=direction):
            other = vectors.detach().clone()
            other[side, row] += d * direction
            return literal(config, other, facts)

        assert (vectors.grad[side, row] @ direction).item() == pytest.approx(slope(moved), rel=1e-4)


def test_a_perfect_model_has_no_loss_and_a_constant_one_that_of_chance():
    config = replace(SIMKGC, margin=0.0, mask="none", self_negatives=False, two_sided=False)
    apart = torch.eye(8)
    assert Objective(config)(apart, apart, Relations()).item() < 1e-5
    same = torch.ones(8, 8) / 8**0.5
    assert Objective(config)(same, same, Relations()).item() == pytest.approx(np.log(8), rel=1e-5)


def test_what_is_switched_off_is_not_trained():
    fixed = Objective(replace(SIMKGC, train_temperature=False, proximity="all", train_beta=False))
    assert not any(p.requires_grad for p in fixed.parameters())
    assert [n for n, p in Objective(SIMKGC).named_parameters() if p.requires_grad] == ["log_inverse_temperature"]


def test_a_fully_masked_row_keeps_its_positive_and_finite_gradients():
    size = 4
    rows, columns = torch.nonzero(~torch.eye(size, dtype=torch.bool), as_tuple=True)
    x = torch.nn.functional.normalize(torch.randn(size, 3), dim=1).requires_grad_(True)
    value = Objective(SIMKGC)(x, x.roll(1, 0), Relations(rows, columns))
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(x.grad).all()
