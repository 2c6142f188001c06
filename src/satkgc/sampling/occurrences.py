"""How often a sampler visits triples and entities (Figure 6 of the paper), and what its batches look like."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from satkgc.kg import KnowledgeGraph
from satkgc.sampling.sampler import Sampler

Counts = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Counts over a number of batches."""

    steps: int
    seconds: float  # drawing alone
    triples: Counts  # (T,) visits of each training triple
    entities: Counts  # (E,) visits of each entity, as head or tail of a batch's triples
    duplicates: Counts  # (steps,) ends of triples in a batch that were there already
    distances: Counts  # visits by hops from the centre's head; the last one counts those not reached
    degrees: Counts  # visits by the entity's degree: 1, 2-3, 4-7, ...

    @classmethod
    def count(cls, sampler: Sampler, steps: Iterable[int]) -> Occurrences:
        """Draw these steps and count."""
        kg = sampler.kg
        triples, entities = np.zeros(len(kg.train), np.int64), np.zeros(kg.num_entities, np.int64)
        distances, duplicates, seconds = np.zeros(1, np.int64), [], 0.0
        for step in steps:
            began = time.perf_counter()
            batch = sampler.draw(step)
            seconds += time.perf_counter() - began
            ends, often = np.unique(kg.train[batch.triples][:, ::2], return_counts=True)
            triples[batch.triples] += 1
            entities[ends] += often
            duplicates.append(int(often.sum()) - len(ends))
            hops = np.bincount(np.full(1, 0) if batch.hops is None else batch.hops + 1)
            distances = np.pad(distances, (0, max(0, len(hops) - len(distances))))
            distances[: len(hops)] += hops
        return cls(
            len(duplicates),
            seconds,
            triples,
            entities,
            np.array(duplicates, np.int64),
            np.roll(distances, -1),
            _by_degree(kg, entities),
        )

    def to_json(self) -> dict[str, Any]:
        """The figures that fit a page."""
        return {
            "steps": self.steps,
            "batches_per_second": self.steps / self.seconds if self.seconds else None,
            "triple_visits": skew(self.triples),
            "entity_visits": skew(self.entities),
            "duplicates_per_batch": float(self.duplicates.mean()) if self.steps else None,
            "distances": {
                "hops": (self.distances[:-1] / max(1, self.distances.sum())).tolist(),
                "unreached": float(self.distances[-1] / max(1, self.distances.sum())),
            },
            "degrees": {
                f"{2**i}-{2 ** (i + 1) - 1}" if i else "1": float(share)
                for i, share in enumerate(self.degrees / max(1, self.degrees.sum()))
            },
        }


def _by_degree(kg: KnowledgeGraph, entities: Counts) -> Counts:
    seen = np.flatnonzero(entities)
    group = np.log2(kg.adjacency.degree[seen]).astype(np.int64)
    return np.bincount(group, weights=entities[seen]).astype(np.int64)


def gini(counts: Counts) -> float:
    """0 where all are equal, near 1 where few have all: half the mean difference of two, in units of the mean."""
    total, n = counts.sum(), len(counts)
    if total == 0:
        return 0.0
    return float(2 * (np.sort(counts) * np.arange(1, n + 1)).sum() / (n * total) - (n + 1) / n)


def variation(counts: Counts) -> float:
    """The standard deviation in units of the mean: unlike `gini`, it looks at the most frequent above all."""
    return float(counts.std() / counts.mean()) if counts.sum() else 0.0


def skew(counts: Counts) -> dict[str, Any]:
    """Several measures of how unequal counts are."""
    ordered = np.sort(counts)[::-1]
    percent = max(1, len(counts) // 100)
    return {
        "gini": gini(counts),
        "variation": variation(counts),
        "top_percent_share": float(ordered[:percent].sum() / max(1, ordered.sum())),
        "most": int(ordered[0]),
        "median": float(np.median(counts)),
        "least": int(ordered[-1]),
        "never": float((counts == 0).mean()),
    }
