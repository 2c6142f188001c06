"""The score functions are PyKEEN's on the same weights, and scoring some is scoring all."""

from __future__ import annotations

import pytest
import torch
from pykeen.nn import modules

from satkgc.models.embeddings import INTERACTIONS

DIM = 6


def random_embeddings(name: str, count: int = 5, distance="l2"):
    """Heads, relations and tails of an interaction, and the interaction."""
    torch.manual_seed(0)
    interaction = INTERACTIONS[name](DIM, distance)
    width = interaction.entity_width
    return (
        interaction,
        torch.randn(count, width),
        torch.randn(count, interaction.relation_width),
        torch.randn(count, width),
    )


def as_complex(embeddings: torch.Tensor) -> torch.Tensor:
    return torch.complex(*embeddings.chunk(2, -1))


def pykeen_scores(name: str, interaction, h, r, t):
    if name == "transe":
        order = {"l1": {"p": 1}, "l2": {"p": 2}, "l2-squared": {"p": 2, "power_norm": True}}[interaction.distance]
        return modules.TransEInteraction(**order)(h, r, t)
    if name == "distmult":
        return modules.DistMultInteraction()(h, r, t)
    if name == "complex":
        return modules.ComplExInteraction()(*map(as_complex, (h, r, t)))
    if name == "rotate":
        scores = modules.RotatEInteraction()(as_complex(h), torch.polar(torch.ones_like(r), r), as_complex(t))
        return -(scores**2) if interaction.distance == "l2-squared" else scores
    other = modules.TuckERInteraction(
        embedding_dim=DIM, relation_dim=DIM, head_dropout=0, relation_dropout=0, head_relation_dropout=0,
        apply_batch_normalization=False,
    )  # fmt: skip
    other.core_tensor.data = interaction.core.data
    return other(h, r, t)


@pytest.mark.parametrize(
    ("name", "distance"),
    [
        *(("transe", "l1"), ("transe", "l2"), ("transe", "l2-squared"), ("rotate", "l2"), ("rotate", "l2-squared")),
        *((name, "l2") for name in ("distmult", "complex", "tucker")),
    ],
)
def test_scores_are_pykeens(name, distance):
    interaction, h, r, t = random_embeddings(name, distance=distance)
    ours = interaction.score_some(interaction.query(h, r), t[:, None])[:, 0]
    torch.testing.assert_close(ours, pykeen_scores(name, interaction, h, r, t), atol=1e-5, rtol=1e-5)


def test_compounde_is_scaling_then_rotation_then_translation():
    interaction, h, r, t = random_embeddings("compounde", distance="l1")
    for i in range(len(h)):
        point = torch.stack(h[i].chunk(2), -1)  # (dim, 2): one plane each
        move, scale = (torch.stack(part.chunk(2), -1) for part in (r[i, : 2 * DIM], r[i, 2 * DIM : 4 * DIM]))
        cos, sin = r[i, 4 * DIM :].cos(), r[i, 4 * DIM :].sin()
        turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)  # (dim, 2, 2)
        moved = (turn @ (scale * point)[..., None])[..., 0] + move
        wanted = -(moved - torch.stack(t[i].chunk(2), -1)).abs().sum()
        torch.testing.assert_close(
            interaction.score_some(interaction.query(h[i], r[i])[None], t[i][None, None])[0, 0], wanted
        )


@pytest.mark.parametrize("distance", ["l1", "l2", "l2-squared"])
@pytest.mark.parametrize("name", INTERACTIONS)
def test_scoring_some_is_scoring_all(name, distance):
    interaction, h, r, t = random_embeddings(name, distance=distance)
    queries = interaction.query(h, r)
    every = interaction.score_all(queries, t)
    torch.testing.assert_close(interaction.score_some(queries, t.expand(len(h), *t.shape)), every, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["distmult", "complex"])
def test_a_relation_is_scored_as_its_triple(name):
    interaction, h, r, t = random_embeddings(name)
    by_relation = (interaction.relation_query(h, t) * r).sum(1)
    torch.testing.assert_close(by_relation, interaction.score_some(interaction.query(h, r), t[:, None])[:, 0])
