"""The loss over one global batch of vectors (Eq. 1 to 5 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from satkgc.models.text.loss_config import ObjectiveConfig


@dataclass(frozen=True)
class Relations:
    """What the loss knows of the B = 2n samples besides their vectors; parts that are switched off may be None.

    Sample i < n is (h, r) → t; sample n + i is its inverse (t, r⁻¹) → h. So the head of sample i is the tail of sample
    (i + n) mod B, and no vector of it need be computed again.
    """

    masked_rows: Tensor | None = None  # (M,) int64: with masked_columns, the negatives to leave out
    masked_columns: Tensor | None = None  # (M,)
    head_closeness: Tensor | None = None  # (B,) float32: ω of query i and tail j is head_closeness[i] tail_closeness[j]
    tail_closeness: Tensor | None = None  # (B,)
    omega: Tensor | None = None  # (B, B) float32, for the rules of ω that are no such product
    tail_weights: Tensor | None = None  # (B,) float32: ψ(t) for (h, r) → t
    head_weights: Tensor | None = None  # (B,) float32: ψ(h) for t → (h, r)
    tail_log_counts: Tensor | None = None  # (B,) float32: log of how many training samples the tail answers

    def to(self, device: torch.device) -> Relations:
        """The same on another device."""
        moved = {k: None if v is None else v.to(device, non_blocking=True) for k, v in vars(self).items()}
        return Relations(**moved)


class Objective(nn.Module):
    """InfoNCE with additive margin, false-negative masks, self-negatives, proximity and frequency weights.

    In steps:

    1. φ[i, j] = cos(query i, tail j), for unit vectors a matrix product (Eq. 2).
    2. β·ω[i, j] is added, to the negatives or to all (Eq. 4); the margin γ is taken off the positives, φ[i, i] (Eq. 3).
    3. All is divided by τ, and masked negatives become −∞.
    4. L[i] is the negative log-softmax of the positive in its row, (h, r) → t; the query's own head joins the row as
       one more negative, without ω: an entity's distance to itself is no hardness. With `two_sided`, the same in its
       column, t → (h, r), where there is no self-negative.
    5. With `popularity` α > 0 the rows of 4 are taken over logits − α·log(count of the tail). A tail stands among the
       negatives as often as it is an answer, so that the plain loss teaches how much *more* likely it is here than
       anywhere (a common answer is distrusted); corrected, it teaches how likely it is. Not in the paper; the
       correction of sampled softmax. In a column all logits would move alike, so there it changes nothing.
    6. L is weighted, rows by ψ(t), columns by ψ(h), and reduced (Eq. 5). The paper writes a sum; the mean is the
       default, so that the gradient clip means the same for every batch size (AdamW itself does not mind a factor).

    With `proximity` off and `frequency` off this is SimKGC's loss.
    """

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        self.config = config
        start = torch.tensor(math.log(1 / config.temperature))
        self.log_inverse_temperature = nn.Parameter(start, requires_grad=config.train_temperature)
        trains_beta = config.train_beta and config.proximity != "off"
        self.beta = nn.Parameter(torch.tensor(config.beta), requires_grad=trains_beta)

    @property
    def temperature(self) -> Tensor:
        """τ."""
        return torch.exp(-self.log_inverse_temperature)

    def forward(self, queries: Tensor, tails: Tensor, relations: Relations) -> Tensor:
        """The loss of queries (B, D) and the tails that answer them (B, D), both of unit length, row by row."""
        config = self.config
        size = len(queries)
        scale = self.log_inverse_temperature.exp()
        # At least float32: at τ = 0.05 the rounding of bfloat16 would move a logit by up to 0.08.
        dtype = torch.promote_types(queries.dtype, torch.float32)
        queries, tails = queries.to(dtype), tails.to(dtype)
        cosine = queries @ tails.T  # (B, B) Eq. 2
        heads = tails.roll(size // 2, 0)  # (B, D): the head of sample i is the tail of its inverse

        phi = cosine
        if config.proximity != "off":
            omega = relations.omega  # (B, B)
            if omega is None:
                omega = torch.outer(_given(relations.head_closeness), _given(relations.tail_closeness))
            if config.proximity == "negatives":
                omega = omega.clone().fill_diagonal_(0)
            phi = phi + self.beta * omega  # Eq. 4
        logits = (phi - config.margin * torch.eye(size, device=phi.device)) * scale  # the exponents of Eq. 3
        positive = logits.diagonal()  # (B,)
        own_head = (queries * heads).sum(1) * scale  # (B,)
        if relations.masked_rows is not None and config.mask != "none":
            mask = torch.zeros(size * size, dtype=torch.bool, device=logits.device)
            # Not mask[rows, columns] = True, which would have the host wait for the GPU.
            places = relations.masked_rows * size + _given(relations.masked_columns)
            mask = mask.index_fill_(0, places, True).view(size, size)
            logits = logits.masked_fill(mask, -torch.inf)
            inverse = torch.arange(size, device=mask.device).roll(size // 2)
            own_head = own_head.masked_fill(mask.gather(1, inverse[:, None])[:, 0], -torch.inf)

        rows, answers = logits, positive
        if config.popularity:
            common = config.popularity * _given(relations.tail_log_counts)  # (B,)
            rows, answers, own_head = rows - common, answers - common, own_head - common.roll(size // 2)
        total = rows.logsumexp(1)  # (B,) the logarithm of Eq. 3's denominator
        if config.self_negatives:
            total = torch.logaddexp(total, own_head)
        loss = self._reduce(total - answers, relations.tail_weights)
        if config.two_sided:
            loss = loss + self._reduce(logits.logsumexp(0) - positive, relations.head_weights)
        return loss

    def _reduce(self, losses: Tensor, weights: Tensor | None) -> Tensor:
        if self.config.frequency:
            weights = _given(weights)
            losses = losses * weights  # Eq. 5
            if self.config.reduction == "weighted-mean":
                return losses.sum() / weights.sum()
        return losses.sum() if self.config.reduction == "sum" else losses.mean()


def _given(part: Tensor | None) -> Tensor:
    assert part is not None, "a part of the objective is on, and its input was not collated"
    return part
