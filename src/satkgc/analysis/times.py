"""How long a run takes: drawing subgraphs, searching distances, training an epoch (Table 10)."""

from __future__ import annotations

import time

from satkgc.analysis.chart import Chart, align
from satkgc.analysis.options import Options, Runs
from satkgc.sampling import Needs, make_sampler
from satkgc.training import RunFolder

BATCHES = 50


def chart_times(runs: Runs, options: Options) -> list[Chart]:
    """Minutes of an epoch. Batches are drawn now, on this machine; training is what the run's own log says.

    There is no time before training as in the paper: subgraphs are drawn and distances searched while the model
    computes.
    """
    minutes = {}
    for label, run in runs.items():
        triples, metrics = len(run.kg.train), run.metrics
        epoch = run.config.sampling.steps_per_epoch(triples)
        plain, with_hops = (_seconds(run, Needs(hops=hops), options) * epoch / 60 for hops in (False, True))
        minutes[label] = {"drawing batches": plain, "distances in them": max(0.0, with_hops - plain)}
        if metrics:
            minutes[label]["training"] = metrics["training_minutes"] / metrics["steps"] * epoch
    return [align("Minutes of an epoch", "work", minutes)]


def _seconds(run: RunFolder, needs: Needs, options: Options) -> float:
    """Of one batch, on one core, once all is compiled and in memory."""
    make_sampler(run.kg, run.config.sampling, run.config.training.seed, needs).draw(0)
    sampler = make_sampler(run.kg, run.config.sampling, run.config.training.seed, needs)
    steps = options.steps or BATCHES
    began = time.process_time()
    for step in options.track(range(steps), "drawing", steps):
        sampler.draw(step)
    return (time.process_time() - began) / steps
