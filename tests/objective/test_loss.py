"""The loss agrees with the formulas written out, in value and in gradient, whatever is switched on."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from literal import loss as literal_loss

from graphs import random_graph
from satkgc.objective import Objective, ObjectiveConfig, Relations, answer_pairs, frequency_weights, known_pairs

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
    )
    vectors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(2, 2 * n, 5))), dim=-1)
    samples = list(zip(heads.tolist(), directed.tolist(), tails.tolist(), strict=True))
    known = {(h, r, t) for h, r, t in kg.train.tolist()} | {
        (t, r + kg.num_relations, h) for h, r, t in kg.train.tolist()
    }
    return vectors, relations, (samples, known, kg.adjacency.degree, distance)


def literal(config, vectors, facts, tau=0.05, beta=0.3):
    samples, known, degree, distance = facts
    return literal_loss(config, samples, *vectors.tolist(), known, degree, distance, tau, beta)


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
