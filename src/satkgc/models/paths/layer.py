"""A layer of the path model, and its parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from satkgc.models.paths.aggregate import STATISTICS, aggregate, aggregate_plain
from satkgc.models.paths.graph import MessageGraph
from satkgc.models.paths.update import update, update_plain


class PathLayer(nn.Module):
    """One hop: aggregate what neighbours hold, and update every state by it (Corso et al., 2020)."""

    def __init__(self, dim: int, num_relations: int) -> None:
        super().__init__()
        self.weights = nn.Linear(dim, num_relations * dim)  # of each edge's relation, given the question's
        self.own = nn.Linear(dim, dim)
        self.update = nn.Linear(STATISTICS * dim, 3 * dim, bias=False)  # plain, times log-degree, by log-degree
        self.norm = nn.LayerNorm(dim)
        nn.init.normal_(self.weights.weight, std=0.02)
        nn.init.normal_(self.weights.bias, std=0.5)
        bound = ((1 + 3 * STATISTICS) * dim) ** -0.5
        for parameter in (self.own.weight, self.own.bias, self.update.weight):
            nn.init.uniform_(parameter, -bound, bound)

    def forward(
        self,
        states: Tensor,
        queries: Tensor,
        heads: Tensor,
        graph: MessageGraph,
        edge_weights: Tensor | None = None,
        plain: bool = False,
    ) -> Tensor:
        """# states (N, B, D), queries (B, D), heads (B,) → (N, B, D)"""
        nodes, batch, dim = states.shape
        weights = self.weights(queries).view(batch, -1, dim).transpose(0, 1)  # (2R, B, D)
        parts = states, weights.to(states.dtype), queries.to(states.dtype), heads, graph
        unfused = plain or edge_weights is not None
        statistics = aggregate_plain(*parts, edge_weights) if unfused else aggregate(*parts)
        changes = self.update(statistics.flatten(2)).view(nodes, batch, 3, dim)
        return (update_plain if plain else update)(states, self.own(states), changes, graph.scale, self.norm)

    def matrices(self) -> Tensor:
        """Of statistics and own state together: plain, times log-degree, by log-degree.  # (3, D, 5D)"""
        own = functional.pad(self.own.weight[None], (0, 0, 0, 0, 0, 2))  # (3, D, D)
        return torch.cat([self.update.weight.view(3, -1, self.update.in_features), own], 2)
