"""A picture of what samplers visit, as Figure 6 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from satkgc.files import atomic_write
from satkgc.sampling.occurrences import Counts, Occurrences, gini


def plot_occurrences(path: Path, found: Mapping[str, Occurrences], title: str) -> None:
    """Visits of triples and entities, most frequent first; degrees and distances of what was visited."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    (triples, entities), (degrees, distances) = figure.subplots(2, 2)
    for i, (name, counted) in enumerate(found.items()):
        _ranked(triples, counted.triples, name, f"C{i}")
        _ranked(entities, counted.entities, name, f"C{i}")
        style = {"label": name, "color": f"C{i}", "marker": "o", "markersize": 4}
        degrees.plot(_shares(counted.degrees), **style)
        reached = counted.distances[:-1]
        distances.plot(_shares(reached), **style)
    for axes, what in ((triples, "triples"), (entities, "entities")):
        axes.set(title=f"Occurrences of {what} (Gini)", xlabel=f"{what}, most frequent first", ylabel="occurrences")
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
    groups = max(len(counted.degrees) for counted in found.values())
    degrees.set_xticks(range(groups), [str(2**i) if i % 2 == 0 else "" for i in range(groups)])
    degrees.set(title="Degrees of the entities visited", xlabel="neighbours, this many up to twice", ylabel="share")
    distances.set(title="Distances in a batch", xlabel="hops from the centre's head", ylabel="share of those reached")
    distances.xaxis.get_major_locator().set_params(integer=True)
    for axes in (triples, entities, degrees, distances):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    with atomic_write(path) as part:
        figure.savefig(part, dpi=120, format="png")


def _ranked(axes, counts: Counts, name: str, color: str) -> None:  # type: ignore[no-untyped-def]
    """The counts in descending order, thinned evenly on the logarithmic axis."""
    ordered = np.sort(counts)[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered), 600).astype(np.int64))
    axes.plot(ranks, ordered[ranks - 1], label=f"{name} ({gini(counts):.3f})", color=color)


def _shares(counts: Counts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return counts / max(1, counts.sum())
