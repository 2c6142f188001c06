"""The edges that messages go along: triples and their inverses, sorted for each pass over them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from satkgc.arrays import Int32, Int64

CHUNK = 512  # edges of a group that one program or thread takes at a time
HUB = 1024  # edges into a node that make it a hub
COLUMNS = "source", "relation", "target", "ptr", "keep", "count"  # tensors of a graph


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
    typical: float  # the mean log-degree by which degrees are measured
    keep: Tensor  # (E,) bool: edges that carry messages
    count: Tensor  # (N,) float32: kept edges into a node, and one for its start
    num_hubs: int  # nodes with more than HUB edges
    place_dtype: torch.dtype  # that holds every place of an edge among those of its target
    made: dict[str, Any] = field(default_factory=dict)  # what a GPU needs besides; shared by all that `without` gives

    @classmethod
    def build(
        cls,
        triples: Int32,
        num_nodes: int,
        num_relations: int,
        device: torch.device | str = "cpu",
        typical: float | None = None,
    ) -> MessageGraph:
        """From (T, 3) triples with relations below `num_relations`, R; `typical` is that of training, or its own."""
        head, relation, tail = np.asarray(triples, np.int32).T
        ends, directed = np.concatenate([head, tail, head]), np.concatenate([relation, relation + num_relations])
        edges = ends[: len(directed)], directed, ends[len(head) :]
        source, directed, target = _sorted_edges(*edges, num_nodes, 2 * num_relations)
        degree = np.bincount(target, minlength=num_nodes)
        return cls(
            num_nodes,
            2 * num_relations,
            source=_int32(source, device),
            relation=_int32(directed, device),
            target=_int32(target, device),
            ptr=_int32(np.concatenate([[0], np.cumsum(degree)]), device),
            typical=mean_log_degree(degree) if typical is None else typical,
            keep=torch.ones(len(source), dtype=torch.bool, device=device),
            count=torch.from_numpy((degree + 1).astype(np.float32)).to(device),
            num_hubs=int((degree > HUB).sum()),
            place_dtype=torch.int16 if degree.max(initial=0) < 2**15 else torch.int32,
        )

    @property
    def by_degree(self) -> Tensor:
        """Nodes, those with most edges first, so that none is left for last.  # (N,) int32"""
        if "by_degree" not in self.made:
            degree = self.ptr[1:] - self.ptr[:-1]
            self.made["by_degree"] = degree.sort(descending=True, stable=True).indices.int()
        return self.made["by_degree"]

    @property
    def by_source(self) -> Groups:
        """The edges from each node."""
        return self._groups("by_source", self.source, self.relation, self.num_nodes)

    @property
    def by_relation(self) -> Groups:
        """The edges of each directed relation."""
        return self._groups("by_relation", self.relation, self.source, self.num_relations)

    @cached_property
    def by_count(self) -> Tensor:
        """Nodes by the number of their kept edges, fewest first.  # (N,) int64"""
        return self.count.sort(stable=True).indices

    @property
    def scale(self) -> Tensor:
        """Log-degree over the typical one, of kept edges alone: any other would tell which were left out.  # (N,)"""
        return self.count.log() / self.typical

    def without(self, edges: Tensor) -> MessageGraph:
        """The same graph with some edges, each named once, left out."""
        gone = -torch.ones(len(edges), device=edges.device)
        count = self.count.index_add(0, self.target[edges], gone)
        return replace(self, keep=self.keep.index_fill(0, edges, False), count=count)

    def to(self, device: torch.device | str) -> MessageGraph:
        """The same on another device."""
        return replace(self, **{name: getattr(self, name).to(device) for name in COLUMNS}, made={})

    def _groups(self, name: str, key: Tensor, other: Tensor, size: int) -> Groups:
        if name not in self.made:
            edge = key.sort(stable=True).indices
            target = self.target[edge]
            chunks = _chunks(torch.bincount(key, minlength=size).cpu().numpy())
            parts = edge.int(), target, other[edge], edge.int() - self.ptr[target]
            self.made[name] = Groups(*parts, *(_int32(part, key.device) for part in chunks))
        return self.made[name]


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


def _sorted_edges(source: Int32, relation: Int32, target: Int32, nodes: int, relations: int) -> tuple[Int32, ...]:
    """By target, then source, then relation, in linear time."""
    edges = source, relation, target
    for column, size in ((1, relations), (0, nodes), (2, nodes)):
        edges = _counting_sort(*edges, edges[column], size)
    return edges


@njit(cache=True, nogil=True)
def _counting_sort(source, relation, target, key, size):  # type: ignore[no-untyped-def]
    first = np.zeros(size + 1, np.int64)
    for value in key:
        first[value + 1] += 1
    for value in range(size):
        first[value + 1] += first[value]
    out = np.empty((3, len(key)), np.int32)
    for edge in range(len(key)):
        slot = first[key[edge]]
        first[key[edge]] += 1
        out[0, slot], out[1, slot], out[2, slot] = source[edge], relation[edge], target[edge]
    return out[0], out[1], out[2]
