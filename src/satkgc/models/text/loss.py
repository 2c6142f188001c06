"""The contrastive loss over one global batch of vectors (Eq. 1 to 5 of the paper)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from satkgc.arrays import Float32, Int64
from satkgc.kg import KnowledgeGraph
from satkgc.models.model import Metrics
from satkgc.models.text.config import LossConfig

if TYPE_CHECKING:
    from satkgc.models.text.collate import TextBatch

# The log keeps which share of a batch's negatives has a cosine above each of these: how hard they are (Figure 7).
NEGATIVES_OVER = {"negatives_over_minus_02": -0.2} | {f"negatives_over_0{tenth}": tenth / 10 for tenth in (0, 2, 4, 6)}


def frequency_weights(kg: KnowledgeGraph) -> Float32:
    """ψ(e) = log(|N_e| + 1), |N_e| the distinct neighbours of e in the training graph (under Eq. 5).  # (E,)"""
    return np.log1p(kg.adjacency.degree).astype(np.float32)


def answer_counts(kg: KnowledgeGraph) -> Int64:
    """How many training samples each entity answers: every triple asks for its tail and for its head.  # (E,)"""
    return np.bincount(kg.train[:, [0, 2]].ravel(), minlength=kg.num_entities)


def closeness(hops: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """The two vectors whose outer product is ω (Section 4.3), from the hops to each sample's tail.  # (B,) → (B,), (B,)

    "paper": ω_ij = 1 / (d1 d2), d1 being the hops from the centre's head to sample i's head and d2 those to sample j's
    tail. "authors" (their program): v_i v_j with v = 1 / (d + 2), d being the hops to the sample's tail on both sides.

    The centre's head is 0 hops from itself; under "paper" it counts as 1, as close as its neighbours, since ω would be
    infinite. An entity without a path to the centre (-1) has closeness 0: no path, no hardness.
    """
    reached, hops64 = hops >= 0, hops.double()
    if rule == "authors":
        values = torch.where(reached, 1 / (hops64.clamp(min=0) + 2), 0.0).float()
        return values, values
    tails = torch.where(reached, 1 / hops64.clamp(min=1), 0.0).float()
    return tails.roll(len(hops) // 2), tails


class SampleLosses(NamedTuple):
    """What each sample of a batch loses, and what it is made of."""

    rows: Tensor  # (B,) of (h, r) → t
    columns: Tensor | None  # (B,) of t → (h, r), where the loss has two sides
    cosine: Tensor  # (B, B)
    mask: Tensor  # (B, B) negatives that are known answers


class ContrastiveLoss(nn.Module):
    """InfoNCE with additive margin, false-negative masks, self-negatives, proximity and frequency weights.

    In steps:

    1. φ[i, j] = cos(query i, tail j), for unit vectors a matrix product (Eq. 2).
    2. β·ω[i, j] is added, to the negatives or to all (Eq. 4); the margin γ is taken off the positives, φ[i, i] (Eq. 3).
    3. All is divided by τ, and masked negatives become −∞.
    4. L[i] is the negative log-softmax of the positive in its row, (h, r) → t; the query's own head joins the row as
       one more negative, without ω: an entity's distance to itself is no hardness. With `two_sided`, the same in its
       column, t → (h, r), where there is no self-negative.
    5. With `logit_adjustment` α > 0 the rows of 4 are taken over logits − α·log(count of the tail). A tail stands among
       the negatives as often as it is an answer, so that the plain loss teaches how much *more* likely it is here than
       anywhere (a common answer is distrusted); adjusted, it teaches how likely it is. Not in the paper; the logQ
       correction of sampled softmax. In a column all logits would move alike, so there it changes nothing.
    6. L is weighted, rows by ψ(t), columns by ψ(h), and averaged (Eq. 5). The paper writes a sum; the mean makes the
       gradient clip mean the same for every batch size (AdamW itself does not mind a factor).

    With `proximity` off and `frequency` off this is SimKGC's loss. A loss of one's own is a module with the same
    constructor and `forward`; its batch has the ids of heads, relations and tails.
    """

    psi: Tensor
    log_counts: Tensor

    def __init__(self, config: LossConfig, kg: KnowledgeGraph) -> None:
        super().__init__()
        self.config = config
        start = torch.tensor(math.log(1 / config.temperature))
        self.log_inverse_temperature = nn.Parameter(start)
        self.beta = nn.Parameter(torch.tensor(config.beta), requires_grad=config.proximity != "off")
        counts = np.log(np.maximum(answer_counts(kg), 1)).astype(np.float32)
        self.register_buffer("psi", torch.from_numpy(frequency_weights(kg)), persistent=False)  # (E,)
        self.register_buffer("log_counts", torch.from_numpy(counts), persistent=False)  # (E,)

    @property
    def temperature(self) -> Tensor:
        """τ."""
        return torch.exp(-self.log_inverse_temperature)

    def forward(self, queries: Tensor, tails: Tensor, batch: TextBatch) -> tuple[Tensor, Metrics]:
        """The loss of queries (B, D) and the tails that answer them (B, D), both of unit length, row by row."""
        losses = self.sample_losses(queries, tails, batch)
        loss = self._mean(losses.rows, batch.tails)
        if losses.columns is not None:
            loss = loss + self._mean(losses.columns, batch.heads)
        return loss, self._metrics(losses.cosine.detach(), losses.mask)

    def sample_losses(self, queries: Tensor, tails: Tensor, batch: TextBatch) -> SampleLosses:
        """Steps 1 to 5: the losses of the samples before they are weighted."""
        config, size = self.config, len(queries)
        scale = self.log_inverse_temperature.exp()
        # At least float32: at τ = 0.05 the rounding of bfloat16 would move a logit by up to 0.08.
        dtype = torch.promote_types(queries.dtype, torch.float32)
        queries, tails = queries.to(dtype), tails.to(dtype)
        cosine = queries @ tails.T  # (B, B) Eq. 2
        heads = tails.roll(size // 2, 0)  # (B, D): the head of sample i is the tail of its inverse

        phi = cosine
        if config.proximity != "off":
            assert batch.hops is not None
            omega = torch.outer(*closeness(batch.hops, config.proximity))  # (B, B)
            if config.proximity == "authors":
                omega = omega.fill_diagonal_(0)
            phi = phi + self.beta * omega  # Eq. 4
        logits = (phi - config.margin * torch.eye(size, device=phi.device)) * scale  # the exponents of Eq. 3
        positive = logits.diagonal()  # (B,)
        own_head = (queries * heads).sum(1) * scale  # (B,)
        mask = torch.zeros(size * size, dtype=torch.bool, device=logits.device)
        # Not mask[rows, columns] = True, which would have the host wait for the GPU.
        mask = mask.index_fill_(0, batch.masked_rows * size + batch.masked_columns, True).view(size, size)
        logits = logits.masked_fill(mask, -torch.inf)
        inverse = torch.arange(size, device=mask.device).roll(size // 2)
        own_head = own_head.masked_fill(mask.gather(1, inverse[:, None])[:, 0], -torch.inf)

        rows, answers = logits, positive
        if config.logit_adjustment:
            common = config.logit_adjustment * self.log_counts[batch.tails]  # (B,)
            rows, answers, own_head = rows - common, answers - common, own_head - common.roll(size // 2)
        total = rows.logsumexp(1)  # (B,) the logarithm of Eq. 3's denominator
        if config.self_negatives:
            total = torch.logaddexp(total, own_head)
        columns = logits.logsumexp(0) - positive if config.two_sided else None
        return SampleLosses(total - answers, columns, cosine, mask)

    def _mean(self, losses: Tensor, answers: Tensor) -> Tensor:
        """Over the batch, each sample weighted by the degree of its answer where that is on (Eq. 5)."""
        return (losses * self.psi[answers] if self.config.frequency else losses).mean()

    def _metrics(self, cosine: Tensor, mask: Tensor) -> Metrics:
        size = len(cosine)
        positive = cosine.diagonal().mean()
        negative = (cosine.sum() - cosine.diagonal().sum()) / max(1, size * (size - 1))
        metrics = {"temperature": self.temperature.detach(), "positive_cosine": positive, "negative_cosine": negative}
        if self.config.proximity != "off":
            metrics["beta"] = self.beta.detach()
        excluded = mask | torch.eye(size, dtype=torch.bool, device=mask.device)
        negatives = cosine.masked_fill(excluded, -torch.inf)
        count = (~excluded).sum().clamp(min=1)
        return metrics | {name: (negatives > bound).sum() / count for name, bound in NEGATIVES_OVER.items()}
