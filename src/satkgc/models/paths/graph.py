"""The edges that messages go along: triples and their inverses, sorted for each pass over them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Int32, Int64

CHUNK = 512  # edges of a group that one program or thread takes at a time
HUB = 1024  # edges into a node that make it a hub


@dataclass(frozen=True, eq=False)
class Groups:
    """Edges grouped by what they share, source or relation, in chunks of bounded size."""

    edge: Tensor  # (E,) the edge's place in the order by target
    target: Tensor  # (E,)
    other: Tensor  # (E,) what the edge does not share with its group: its relation, or its source
    place: Tensor  # (E,) the edge's place among those of its target
    start: Tensor  # (C,) first slot of a chunk
    stop: Tensor  # (C,)
    owner: Tensor  # (C,) the group of a chunk
    chunks: Tensor  # (G,) chunks of each group


@dataclass(frozen=True, eq=False)
class MessageGraph:
    """A graph's edges and their inverses, sorted by target, then source, then relation; all tensors on one device."""

    num_nodes: int  # N
    num_relations: int  # 2R, inverses counted
    source: Tensor  # (E,) int32
    relation: Tensor  # (E,) int32, directed
    target: Tensor  # (E,) int32
    ptr: Tensor  # (N + 1,) int32: the edges into node v are ptr[v]:ptr[v + 1]
    by_degree: Tensor  # (N,) int32: nodes, those with most edges first, so that none is left for last
    num_hubs: int  # of them, with more than HUB edges
    by_source: Groups
    by_relation: Groups
    typical: float  # the mean log-degree of the graph whose edges these are
    keep: Tensor  # (E,) bool: edges that carry messages
    count: Tensor  # (N,) float32: kept edges into a node, and one for its start
    place_dtype: torch.dtype  # that holds every place

    @classmethod
    def build(
        cls,
        triples: Int32,
        num_nodes: int,
        num_relations: int,
        device: torch.device | str = "cpu",
        typical: float | None = None,
    ) -> MessageGraph:
        """From (T, 3) triples with relations below `num_relations`, R; `typical` is that of a graph it is a part of."""
        head, relation, tail = np.asarray(triples, np.int32).T
        source, target = np.concatenate([head, tail]), np.concatenate([tail, head])
        directed = np.concatenate([relation, relation + num_relations])
        order = np.lexsort((directed, source, target))
        source, directed, target = source[order], directed[order], target[order]
        degree = np.bincount(target, minlength=num_nodes)
        ptr = np.concatenate([[0], np.cumsum(degree)])
        place = np.arange(len(target)) - ptr[target]
        if typical is None:
            typical = mean_log_degree(degree)

        def groups(key: Int32, other: Int32, size: int) -> Groups:
            edge = np.argsort(key, kind="stable")
            columns = (edge, target[edge], other[edge], place[edge], *_chunks(np.bincount(key, minlength=size)))
            return Groups(*(_int32(column, device) for column in columns))

        return cls(
            num_nodes,
            2 * num_relations,
            source=_int32(source, device),
            relation=_int32(directed, device),
            target=_int32(target, device),
            ptr=_int32(ptr, device),
            by_degree=_int32(np.argsort(-degree, kind="stable"), device),
            num_hubs=int((degree > HUB).sum()),
            by_source=groups(source, directed, num_nodes),
            by_relation=groups(directed, source, 2 * num_relations),
            typical=typical,
            keep=torch.ones(len(source), dtype=torch.bool, device=device),
            count=torch.from_numpy((degree + 1).astype(np.float32)).to(device),
            place_dtype=torch.int16 if degree.max(initial=0) < 2**15 else torch.int32,
        )

    @property
    def scale(self) -> Tensor:
        """Log-degree over its mean, of the edges that are kept: any other would tell which were left out.  # (N,)"""
        return self.count.log() / self.typical

    def without(self, edges: Tensor) -> MessageGraph:
        """The same graph with some edges, each named once, left out."""
        gone = -torch.ones(len(edges), device=edges.device)
        count = self.count.index_add(0, self.target[edges], gone)
        return replace(self, keep=self.keep.index_fill(0, edges, False), count=count)

    def to(self, device: torch.device | str) -> MessageGraph:
        """The same on another device."""
        return replace(self, **_moved(self, device))


def mean_log_degree(degree: Int64) -> float:
    """Of nodes with so many edges each, as log(degree + 1)."""
    return float(np.log(degree + 1.0).mean()) if degree.any() else 1.0


def find_edges(ptr: Int64, source: Int32, relation: Int32, pairs: Int32, directed: Int32 | None = None) -> Int64:
    """The edges u → v of (n, 2) pairs, ascending; with `directed`, (n,), only those of that relation.

    `ptr`, `source`, `relation` are those of a `MessageGraph`, as arrays.
    """
    edges = []
    for i, (u, v) in enumerate(pairs.tolist()):
        into = source[ptr[v] : ptr[v + 1]]
        low, high = ptr[v] + np.searchsorted(into, u), ptr[v] + np.searchsorted(into, u, "right")
        slots = np.arange(low, high)
        edges.append(slots if directed is None else slots[relation[low:high] == directed[i]])
    return np.unique(np.concatenate(edges)) if edges else np.empty(0, np.int64)


def _chunks(sizes: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Start, stop and group of every chunk, and how many each group has."""
    chunks = -(-sizes // CHUNK)
    owner = np.repeat(np.arange(len(sizes)), chunks)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    first = np.cumsum(sizes) - sizes
    start = first[owner] + number * CHUNK
    return start, np.minimum(start + CHUNK, (first + sizes)[owner]), owner, chunks


def _int32(array: Any, device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, np.int32)).to(device)


def _moved(part: Any, device: torch.device | str) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        name: value.to(device) if isinstance(value, Tensor) else replace(value, **_moved(value, device))
        for name, value in values.items()
        if isinstance(value, Tensor | Groups)
    }
