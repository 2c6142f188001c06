"""What samplers visit: how often each triple and entity, how far, of what degree, and the picture of it (Figure 6)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.arrays import Float64, Int64
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph
from satkgc.sampling.sampler import Sampler


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Counts over a number of batches."""

    steps: int
    seconds: float  # drawing alone
    triples: Int64  # (T,) visits of each training triple
    entities: Int64  # (E,) visits of each entity, as head or tail of a batch's triples
    duplicates: Int64  # (steps,) ends of triples in a batch that were there already
    hops: Int64  # visits by hops from the centre's head, where batches have them; the last one counts those not reached
    degrees: Int64  # visits by the entity's degree: 1, 2-3, 4-7, ...

    @classmethod
    def count(cls, sampler: Sampler, steps: Iterable[int]) -> Occurrences:
        """Draw these steps and count."""
        kg = sampler.kg
        triples, entities = np.zeros(len(kg.train), np.int64), np.zeros(kg.num_entities, np.int64)
        hops, duplicates, seconds = np.zeros(1, np.int64), [], 0.0
        for step in steps:
            began = time.perf_counter()
            batch = sampler.draw(step)
            seconds += time.perf_counter() - began
            ends, often = np.unique(kg.train[batch.triples][:, ::2], return_counts=True)
            triples[batch.triples] += 1
            entities[ends] += often
            duplicates.append(int(often.sum()) - len(ends))
            if batch.hops is not None:
                counts = np.bincount(batch.hops + 1)
                hops = np.pad(hops, (0, max(0, len(counts) - len(hops))))
                hops[: len(counts)] += counts
        return cls(
            len(duplicates),
            seconds,
            triples,
            entities,
            np.array(duplicates, np.int64),
            np.roll(hops, -1),
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
                "hops": (self.hops[:-1] / max(1, self.hops.sum())).tolist(),
                "unreached": float(self.hops[-1] / max(1, self.hops.sum())),
            },
            "degrees": {
                f"{2**i}-{2 ** (i + 1) - 1}" if i else "1": float(share)
                for i, share in enumerate(self.degrees / max(1, self.degrees.sum()))
            },
        }


def _by_degree(kg: KnowledgeGraph, entities: Int64) -> Int64:
    seen = np.flatnonzero(entities)
    group = np.log2(kg.adjacency.degree[seen]).astype(np.int64)
    return np.bincount(group, weights=entities[seen]).astype(np.int64)


def gini(counts: Int64) -> float:
    """0 where all are equal, near 1 where few have all: half the mean difference of two, in units of the mean."""
    total, n = counts.sum(), len(counts)
    if total == 0:
        return 0.0
    return float(2 * (np.sort(counts) * np.arange(1, n + 1)).sum() / (n * total) - (n + 1) / n)


def variation(counts: Int64) -> float:
    """The standard deviation in units of the mean: unlike `gini`, it looks at the most frequent above all."""
    return float(counts.std() / counts.mean()) if counts.sum() else 0.0


def skew(counts: Int64) -> dict[str, Any]:
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


def plot_occurrences(path: Path, occurrences: Mapping[str, Occurrences], title: str) -> None:
    """Visits of triples and entities, most frequent first; degrees and distances of what was visited."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    (triples, entities), (degrees, hops) = figure.subplots(2, 2)
    for i, (name, counted) in enumerate(occurrences.items()):
        _ranked(triples, counted.triples, name, f"C{i}")
        _ranked(entities, counted.entities, name, f"C{i}")
        style = {"label": name, "color": f"C{i}", "marker": "o", "markersize": 4}
        degrees.plot(_shares(counted.degrees), **style)
        hops.plot(_shares(counted.hops[:-1]), **style)
    for axes, what in ((triples, "triples"), (entities, "entities")):
        axes.set(title=f"Occurrences of {what} (Gini)", xlabel=f"{what}, most frequent first", ylabel="occurrences")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
    groups = max(len(counted.degrees) for counted in occurrences.values())
    degrees.set_xticks(range(groups), [str(2**i) if i % 2 == 0 else "" for i in range(groups)])
    degrees.set(title="Degrees of the entities visited", xlabel="neighbours, this many up to twice", ylabel="share")
    hops.set(title="Distances in a batch", xlabel="hops from the centre's head", ylabel="share of those reached")
    hops.xaxis.get_major_locator().set_params(integer=True)
    for axes in (triples, entities, degrees, hops):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    with atomic_write(path) as part:
        figure.savefig(part, dpi=120, format="png")


def _ranked(axes, counts: Int64, name: str, color: str) -> None:  # type: ignore[no-untyped-def]
    """The counts in descending order, thinned evenly on the logarithmic axis."""
    ordered = np.sort(counts)[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered), 600).astype(np.int64))
    axes.plot(ranks, ordered[ranks - 1], label=f"{name} ({gini(counts):.3f})", color=color)


def _shares(counts: Int64) -> Float64:
    return counts / max(1, counts.sum())
