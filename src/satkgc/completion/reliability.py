"""The reliability plot: how often answers told as p were true."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from satkgc.completion.calibration import BINS, Calibration


def draw_reliability(calibration: Calibration, file: Path) -> None:
    """Draw held-out candidates by probability: the share that was true above, how many there were below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curve = calibration.curve
    counts = np.array(curve.counts)
    middle = (np.arange(BINS) + 0.5) / BINS
    figure = Figure(figsize=(5, 6), layout="constrained")
    FigureCanvasAgg(figure)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="perfect")
    seen = counts > 0
    upper.plot(
        np.array(curve.confidence)[seen], np.array(curve.accuracy)[seen], marker="o", label="held-out candidates"
    )
    upper.set_ylabel("share that was true")
    upper.set_title(f"calibration error {calibration.ece:.4f} (first answers {calibration.ece_first:.3f})")
    upper.legend()
    lower.bar(middle, counts, width=0.9 / BINS)
    lower.set_yscale("log")
    lower.set_ylabel("candidates")
    lower.set_xlabel("probability")
    part = file.with_name(file.name + ".part")
    figure.savefig(part, dpi=120, format="png")
    os.replace(part, file)
