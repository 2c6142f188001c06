"""The loss agrees with the formulas written out, in value and in gradient, whatever is switched on."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphs import graph_of, random_graph
from literal import loss as literal_loss
from satkgc.errors import SatkgcError
from satkgc.models import ContrastiveLoss, LossConfig
from satkgc.models.text.false_negatives import known_pairs
from satkgc.models.text.loss import NEGATIVES_OVER, answer_counts, closeness, frequency_weights

SIMKGC = LossConfig()


def batch_of(kg, heads, relations, tails, hops=None, masked=None):
    """As much of a TextBatch as a loss looks at."""
    if masked is None:
        masked = known_pairs(kg.known_train, heads, relations, tails, kg.num_relations)
    rows, columns = (torch.from_numpy(np.asarray(part)).long() for part in masked)
    ids = (torch.from_numpy(part.astype(np.int64)) for part in (heads, relations, tails))
    return SimpleNamespace(
        **dict(zip(("heads", "relations", "tails"), ids, strict=True)),
        hops=None if hops is None else torch.from_numpy(hops).long(),
        masked_rows=rows,
        masked_columns=columns,
    )


def batch(seed, n=6):
    """A batch of n triples of a small graph with their inverses, and random vectors for it in float64."""
    rng = np.random.default_rng(seed)
    kg = random_graph(seed, entities=9, relations=2, triples=40)
    triples = kg.train[rng.choice(len(kg.train), n, replace=False)]
    heads = np.concatenate([triples[:, 0], triples[:, 2]])
    directed = np.concatenate([triples[:, 1], triples[:, 1] + kg.num_relations])
    tails = np.concatenate([triples[:, 2], triples[:, 0]])
    hops = rng.integers(-1, 5, kg.num_entities)  # 0 is the centre's head, -1 has no path to it
    collated = batch_of(kg, heads, directed, tails, hops[tails])
    vectors = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(2, 2 * n, 5))), dim=-1)
    samples = list(zip(heads.tolist(), directed.tolist(), tails.tolist(), strict=True))
    known = {(h, r, t) for h, r, t in kg.train.tolist()} | {
        (t, r + kg.num_relations, h) for h, r, t in kg.train.tolist()
    }
    counts = Counter(kg.train[:, [0, 2]].ravel().tolist())
    return kg, vectors, collated, (samples, known, kg.adjacency.degree, hops, counts)


def literal(config, vectors, facts, tau=0.05, beta=0.3):
    samples, known, degree, hops, count = facts
    return literal_loss(config, samples, *vectors.tolist(), known, degree, hops, tau, beta, count)


def ours(config, kg, vectors, collated):
    module = ContrastiveLoss(config.replace(beta=0.3), kg).double()
    return module, module(*vectors, collated)[0]


PARTS = [
    dict(zip(["two_sided", "self_negatives", "proximity", "frequency"], values, strict=True))
    for values in itertools.product([True, False], [True, False], ["off", "paper", "authors"], [True, False])
]


@pytest.mark.parametrize("proximity", ["off", "paper", "authors"])
@pytest.mark.parametrize("logit_adjustment", [0.0, 0.7, 1.0])
def test_every_combination_is_the_paper_formula(proximity, logit_adjustment):
    combinations = [parts for parts in PARTS if parts["proximity"] == proximity]
    for seed, parts in itertools.product(range(3), combinations):
        config = SIMKGC.replace(**parts, logit_adjustment=logit_adjustment)
        kg, vectors, collated, facts = batch(seed)
        value = ours(config, kg, vectors, collated)[1].item()
        assert value == pytest.approx(literal(config, vectors, facts), rel=1e-6)


@pytest.mark.parametrize("parts", PARTS)
def test_logit_adjustment_changes_every_combination(parts):
    kg, vectors, collated, _ = batch(1)
    plain, adjusted = (
        ours(SIMKGC.replace(**parts, logit_adjustment=alpha), kg, vectors, collated)[1].item() for alpha in (0.0, 0.7)
    )
    assert adjusted != pytest.approx(plain, rel=1e-5)


def test_logit_adjustment_teaches_how_likely_an_answer_is_not_how_surprising():
    """Of two tails one answers three times as often. With no clue the plain loss scores both alike."""
    kg = graph_of([(2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 1)], 6)
    heads, relations, tails = kg.train.T
    for alpha, expected in [(0.0, 0.0), (1.0, np.log(3))]:
        config = LossConfig(temperature=1.0, margin=0.0, self_negatives=False, two_sided=False, logit_adjustment=alpha)
        module = ContrastiveLoss(config, kg).requires_grad_(False)
        score = torch.zeros(2, requires_grad=True)  # of each tail, for every query
        optimizer = torch.optim.SGD([score], lr=0.5)
        collated = batch_of(kg, heads, relations, tails, masked=([], []))
        for _ in range(300):
            logits = torch.diag(score)[collated.tails]
            value, _ = module(torch.ones(4, 2), logits, collated)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        assert (score[0] - score[1]).item() == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize("proximity", ["paper", "authors"])
def test_gradients_are_the_formulas_slopes(proximity):
    config = SIMKGC.replace(proximity=proximity, frequency=True, margin=0.1)
    kg, vectors, collated, facts = batch(3)
    vectors.requires_grad_(True)
    module, value = ours(config, kg, vectors, collated)
    value.backward()
    step = 1e-6

    def slope(shifted):
        return (shifted(step) - shifted(-step)) / (2 * step)

    tau = slope(lambda d: literal(config, vectors, facts, tau=0.05 * np.exp(-d)))
    assert module.log_inverse_temperature.grad.item() == pytest.approx(tau, rel=1e-4)
    beta = slope(lambda d: literal(config, vectors, facts, beta=0.3 + d))
    assert module.beta.grad.item() == pytest.approx(beta, rel=1e-4)
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


def eight_samples(masked=([], [])):
    kg = graph_of([(i, 0, i + 4) for i in range(4)], 8)
    heads, relations, tails = kg.train.T
    ends = np.concatenate([heads, tails]), np.concatenate([relations, relations + 1]), np.concatenate([tails, heads])
    return kg, batch_of(kg, *ends, masked=masked)


def test_a_perfect_model_has_no_loss_and_a_constant_one_that_of_chance():
    config = SIMKGC.replace(margin=0.0, self_negatives=False, two_sided=False)
    kg, collated = eight_samples()
    apart = torch.eye(8)
    assert ContrastiveLoss(config, kg)(apart, apart, collated)[0].item() < 1e-5
    same = torch.ones(8, 8) / 8**0.5
    assert ContrastiveLoss(config, kg)(same, same, collated)[0].item() == pytest.approx(np.log(8), rel=1e-5)


def test_a_fully_masked_row_keeps_its_positive_and_finite_gradients():
    masked = torch.nonzero(~torch.eye(8, dtype=torch.bool)).T.numpy()
    kg, collated = eight_samples(masked)
    x = torch.nn.functional.normalize(torch.randn(8, 3), dim=1).requires_grad_(True)
    value, _ = ContrastiveLoss(SIMKGC, kg)(x, x.roll(1, 0), collated)
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(x.grad).all()


def test_what_is_switched_off_is_not_trained():
    kg, _ = eight_samples()

    def trained(config):
        return [name for name, p in ContrastiveLoss(config, kg).named_parameters() if p.requires_grad]

    assert trained(SIMKGC) == ["log_inverse_temperature"]
    assert trained(SIMKGC.replace(proximity="paper")) == ["log_inverse_temperature", "beta"]


def test_metrics_are_those_of_the_vectors():
    kg, collated = eight_samples()
    x = torch.nn.functional.normalize(torch.randn(2, 8, 3), dim=-1)
    collated.hops = torch.zeros(8).long()
    collated.masked_rows, collated.masked_columns = torch.tensor([[0, 5], [3, 1]])
    _, metrics = ContrastiveLoss(SIMKGC.replace(proximity="paper", beta=0.5), kg)(*x, collated)
    cosine = x[0] @ x[1].T
    off = ~torch.eye(8, dtype=torch.bool)
    masked = {(0, 3), (5, 1)}
    negatives = [cosine[i, j].item() for i in range(8) for j in range(8) if i != j and (i, j) not in masked]
    assert {name: value.item() for name, value in metrics.items()} == pytest.approx(
        {
            **{name: np.mean([c > bound for c in negatives]) for name, bound in NEGATIVES_OVER.items()},
            "temperature": 0.05,
            "positive_cosine": cosine.diagonal().mean().item(),
            "negative_cosine": cosine[off].mean().item(),
            "beta": 0.5,
        },
        abs=1e-6,
    )
    assert not any(value.requires_grad for value in metrics.values())
    assert "beta" not in ContrastiveLoss(SIMKGC, kg)(*x, collated)[1]


HOPS = torch.tensor([1, 3, -1, 0, 2, 1])  # to the tails of six samples: three triples, and the same turned round
HEADS = [0, 2, 1, 1, 3, -1]


def test_the_paper_takes_the_reciprocal_of_the_product():
    for (i, j), omega in np.ndenumerate(torch.outer(*closeness(HOPS, "paper"))):
        d1, d2 = HEADS[i], HOPS[j].item()
        assert omega == pytest.approx(0 if -1 in (d1, d2) else 1 / (max(d1, 1) * max(d2, 1)))


def test_the_authors_take_two_tails():
    for (i, j), omega in np.ndenumerate(torch.outer(*closeness(HOPS, "authors"))):
        d1, d2 = HOPS[i].item(), HOPS[j].item()
        assert omega == pytest.approx(0 if -1 in (d1, d2) else 1 / (d1 + 2) / (d2 + 2))


@pytest.mark.parametrize("rule", ["paper", "authors"])
def test_closeness_is_float32(rule):
    assert {part.dtype for part in closeness(HOPS, rule)} == {torch.float32}


def test_frequency_weight_is_the_logarithm_of_distinct_neighbours():
    kg = graph_of([(0, 0, 1), (0, 1, 1), (0, 0, 2), (3, 0, 0)], 5, 2)  # parallel edges count once
    assert frequency_weights(kg)[[0, 1, 4]] == pytest.approx([np.log(4), np.log(2), 0])


def test_answer_counts_are_the_triples_an_entity_is_an_end_of():
    kg = random_graph(2)
    ends = kg.train[:, [0, 2]].ravel().tolist()
    assert answer_counts(kg).tolist() == [ends.count(entity) for entity in range(kg.num_entities)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temperature", 0.0), ("temperature", float("nan")), ("margin", -0.1), ("beta", 100.0),
        ("logit_adjustment", 3.0), ("proximity", "all"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(setting, value):
    with pytest.raises(SatkgcError, match=f"model.loss.{setting} is"):
        LossConfig(**{setting: value})
