"""Rejected statements as negatives: the term of the loss against its definition, and what a model learns of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model_kinds import KG, KINDS, make
from satkgc.models import LEAST_COSINE, MODELS, Model, Questions, Rejections, StepContext

KNOWN = {tuple(row) for row in np.concatenate([KG.train, KG.valid, KG.test]).tolist()}
WRONG = np.array([row for row in ((h, r, h + 1) for h in range(0, 30, 3) for r in range(3)) if row not in KNOWN], int)
LEARNERS = sorted(kind for kind, model in KINDS.items() if model.learns_rejections())


def directed(triples):
    """Each asked for its tail and for its head."""
    size = KG.num_relations
    return [(h, r, t) for h, r, t in triples.tolist()] + [(t, r + size, h) for h, r, t in triples.tolist()]


def chance(scores, head, relation, answer):
    """Its softmax over the entities that training does not have as answers."""
    known = {t for h, r, t in directed(KG.train) if (h, r) == (head, relation)}
    return scores[answer].exp() / sum(score.exp() for entity, score in enumerate(scores) if entity not in known)


class Table(Model):
    """A free score for every question and entity."""

    Config = MODELS["embedding"].Config

    def __init__(self) -> None:
        super().__init__(KG, self.Config())
        scores = torch.randn(KG.num_entities, 2 * KG.num_relations, KG.num_entities)
        self.table = torch.nn.Parameter(scores)

    def loss(self, batch):
        raise AssertionError

    def score(self, questions, candidates=None):
        raise AssertionError

    def logits(self, entities, relations):
        return self.table[entities, relations]


def test_each_loses_its_unlikelihood():
    torch.manual_seed(0)
    model, samples = Table(), directed(WRONG)
    assert len(samples) < 64, "all in one step"
    loss = Rejections(KG, WRONG.astype(np.int32), seed=0).loss(model, step=3)
    expected = torch.stack([-torch.log(1 - chance(model.table[h, r], h, r, t)) for h, r, t in samples]).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    own, by_hand = (torch.autograd.grad(one, model.table)[0] for one in (loss, expected))
    torch.testing.assert_close(own, by_hand, rtol=1e-4, atol=1e-8)
    assert own.any()


def test_a_step_draws_some_of_many_and_the_same_again():
    many = np.array([(h, r, t) for h in range(12) for r in range(3) for t in range(20, 24)], np.int32)
    model = Table()
    rejections = Rejections(KG, many, seed=0)
    losses = [rejections.loss(model, step).item() for step in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_model_says_less_of_what_was_rejected(kind, tiny_backbone):
    torch.manual_seed(0)
    model = make(kind, tiny_backbone).eval()
    model.prepare_training(StepContext())
    heads, relations, _ = np.array(directed(WRONG)).T
    questions = Questions(heads.astype(np.int32), relations.astype(np.int32))

    def mean_chance():
        with torch.no_grad():
            scores = model.logits(torch.from_numpy(heads), torch.from_numpy(relations))
        return np.mean([chance(row, *sample).item() for row, sample in zip(scores, directed(WRONG), strict=True)])

    with torch.no_grad():
        logits, scores = model.logits(torch.from_numpy(heads), torch.from_numpy(relations)), model.score(questions)
    assert logits.shape == scores.shape
    if kind == "frozen":  # cosines, of which the softmax is taken at the temperature; its own entity has no part in it
        logits = (logits * (-model.log_scale.detach()).exp()).clamp(min=LEAST_COSINE)
    torch.testing.assert_close(logits, scores)
    before = mean_chance()
    model.rejections = Rejections(KG, WRONG.astype(np.int32), seed=0)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=0.02)
    for step in range(15):
        optimizer.zero_grad()
        model.rejections.loss(model, step).backward()
        optimizer.step()
    assert mean_chance() < 0.8 * before


def test_models_that_compare_within_a_batch_do_not_learn_it():
    assert {kind.partition(",")[0] for kind in LEARNERS} == {"embedding", "frozen", "paths"}
