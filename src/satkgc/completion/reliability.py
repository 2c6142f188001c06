"""How far the probabilities can be trusted: a plot, and a section of the run's report."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from satkgc.completion.calibration import BINS, Calibration
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

HEADING = "## Probabilities"


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
    with atomic_write(file) as part:
        figure.savefig(part, dpi=120, format="png")


def report(calibration: Calibration, card: Path) -> None:
    """Put a section about the probabilities at the end of the run's report, in the place of an older one."""
    before = card.read_text(encoding="utf-8").partition(f"\n{HEADING}")[0] if card.exists() else ""
    rows = []
    for precision in (0.5, 0.7, 0.8, 0.9, 0.95):
        try:
            least = calibration.threshold(precision)
        except SatkgcError:
            break
        recall = calibration.curve.recall[calibration.curve.thresholds.index(least)]
        rows.append(f"| {precision:.0%} | {least:.2f} | {recall:.0%} |\n")
    table = "| wanted precision | probability at least | true answers kept |\n|---|---|---|\n" + "".join(rows)
    text = f"""{before.rstrip()}

{HEADING}

Fitted on half of {calibration.questions:,} validation questions. On the other half, the expected calibration error is
{calibration.ece:.4f} over all candidates and {calibration.ece_first:.3f} over first answers.

{table if rows else "No threshold reaches a precision of 50 %."}
![share of true answers by probability](reliability.png)
"""
    with atomic_write(card) as part:
        part.write_text(text.lstrip(), encoding="utf-8")
