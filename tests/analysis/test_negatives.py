"""In-batch negatives: cosines by epoch from a log, and the loss on false positives against the formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from satkgc.analysis.negatives import sample_losses, shares_by_epoch, shares_in_ranges
from satkgc.models import NEGATIVES_OVER
from tasks import Task


def test_shares_are_averaged_over_the_records_of_an_epoch():
    log = [
        {"step": step, "metrics": {name: step / 100 + bound for name, bound in NEGATIVES_OVER.items()}}
        for step in (1, 10, 11, 20, 21)
    ]
    epochs = shares_by_epoch([*log, {"step": 20, "validation": {}}, {"step": 3, "metrics": {"beta": 1.0}}], steps=10)
    assert list(epochs) == [1, 2, 3]
    assert epochs[1]["negatives_over_02"] == pytest.approx(0.2 + 0.055)
    assert epochs[3]["negatives_over_minus_02"] == pytest.approx(-0.2 + 0.21)


def test_ranges_add_up_to_all_negatives():
    cosines = np.random.default_rng(0).uniform(-1, 1, 1000)
    over = {name: float((cosines > bound).mean()) for name, bound in NEGATIVES_OVER.items()}
    ranges = shares_in_ranges(over)
    assert list(ranges) == ["-1 to -0.2", "-0.2 to 0", "0 to 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 1"]
    assert ranges["0.2 to 0.4"] == pytest.approx(((cosines > 0.2) & (cosines <= 0.4)).mean())
    assert sum(ranges.values()) == pytest.approx(1)


def test_losses_of_samples_are_those_of_the_loss_and_false_positives_those_of_the_judge(tiny_backbone):
    task = Task(tiny_backbone, dropout=0.0)
    model, judge = task.model.eval(), Task(tiny_backbone, dropout=0.0).model.eval()
    torch.manual_seed(2)
    for parameter in judge.towers.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    losses, psi, wrong = sample_losses(model, judge, task.batch)
    collated = model.collate(task.batch)
    weighted, _ = model.contrastive(*model.batch_vectors(collated), collated)
    two_sided = model.contrastive.sample_losses(*model.batch_vectors(collated), collated).columns
    other_side = (two_sided * model.contrastive.psi[collated.heads]).mean().item()
    assert (psi * losses).mean() + other_side == pytest.approx(weighted.item(), rel=1e-5)
    np.testing.assert_allclose(psi, np.log1p(task.kg.adjacency.degree[task.batch.tails]), rtol=1e-5)

    batch, size = task.batch, task.kg.num_relations
    queries, tails = (part.detach().numpy() for part in judge.batch_vectors(judge.collate(batch)))
    known = {tuple(triple) for triple in task.kg.train.tolist()}
    expected = []
    for i, (head, relation, tail) in enumerate(zip(batch.heads, batch.relations, batch.tails, strict=True)):
        rivals = [-2.0]
        for j, other in enumerate(batch.tails):
            triple = (head, relation, other) if relation < size else (other, relation - size, head)
            if tuple(map(int, triple)) not in known and other != tail:
                rivals.append(queries[i] @ tails[j])
        expected.append(max(rivals) > queries[i] @ tails[i])
    assert wrong.tolist() == expected
    assert 0 < sum(expected) < len(expected)
