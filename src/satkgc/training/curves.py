"""The run in one picture: loss and validation MRR over the steps."""

from __future__ import annotations

from pathlib import Path

from satkgc.files import atomic_write
from satkgc.training.log import Record


def draw_curves(log: list[Record], file: Path) -> None:
    """Draw the log's loss and, where there was validation, MRR and Hits@1."""
    from matplotlib.figure import Figure  # without pyplot, which would look for a screen

    validations = [record for record in log if "validation" in record]
    steps = [record for record in log if "loss" in record]
    figure = Figure(figsize=(10, 4) if validations else (5, 4), layout="constrained")
    axes = figure.subplots(1, 2 if validations else 1, squeeze=False)[0]
    axes[0].plot([r["step"] for r in steps], [r["loss"] for r in steps], color="#2b6cb0")
    axes[0].set(xlabel="step", ylabel="loss", title="Loss")
    if validations:
        at = [r["step"] for r in validations]
        for name, style in (("mrr", "o-"), ("hits@1", "s--"), ("hits@10", "^:")):
            axes[1].plot(at, [r["validation"]["both"][name] for r in validations], style, label=name)
        axes[1].set(xlabel="step", title="Validation, filtered", ylim=(0, None))
        axes[1].legend()
    for ax in axes:
        ax.grid(alpha=0.3)
    with atomic_write(file) as part:
        figure.savefig(part, dpi=120, format="png")
