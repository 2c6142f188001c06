"""The degree distribution as a picture."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph


def plot_degrees(graph: KnowledgeGraph, file: Path) -> None:
    """How many entities have each degree, and the share that has at least it; both axes logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    degree = graph.adjacency.degree
    values, entities = np.unique(degree[degree > 0], return_counts=True)
    if not len(values):
        raise SatkgcError("no entity has a neighbour: there is nothing to draw", where=graph.name)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.loglog(values, entities, ".", color="#4477aa", alpha=0.7, label="entities of this degree")
    at_least = np.cumsum(entities[::-1])[::-1]
    axes.loglog(values, at_least, "-", color="#cc6677", linewidth=1.5, label="entities of this degree or more")
    axes.set_xlabel("degree (distinct neighbours in train)")
    axes.set_ylabel("entities")
    axes.set_title(f"{graph.name}: mean degree {degree.mean():.1f}, highest {degree.max():,}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    partial = file.with_name(f".{file.name}.partial")
    try:
        FigureCanvasAgg(figure).print_png(partial)
        os.replace(partial, file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SatkgcError(f"cannot write the picture: {error.strerror or error}", where=file) from error
