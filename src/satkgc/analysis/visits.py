"""What samplers visit: occurrences of triples and entities (Figure 6), entity frequencies against the graph's own
(Figure 5), the most and the least visited triples (Section 5.5), duplicates by restart probability (Figure 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from satkgc.analysis.chart import Chart, align
from satkgc.analysis.options import Options, Runs
from satkgc.analysis.similarity import choose_sources
from satkgc.arrays import Float64, Int32, Int64
from satkgc.kg import KnowledgeGraph, betweenness
from satkgc.sampling import Occurrences, SamplingConfig, gini, make_sampler
from satkgc.training import RunFolder

SAMPLERS = {"RANDOM": "random", "RWR": "rwr", "BRWR_P": "brwr_p", "BRWR": "brwr"}  # by the names of the paper
RESTARTS = {"1/100": 0.01, "1/25": 1 / 25, "1/5": 0.2, "1/2": 0.5}
BATCHES = 100  # that Figure 5 draws
STEPS = 1_000  # at most, unless told otherwise
MOST = 1_000  # triples on either end
_SHARES = 50  # of the entities in Figure 5, as many in each
_POINTS = 40  # of a curve
_SOURCES = 2_000  # betweenness is estimated from so many entities


def chart_occurrences(runs: Runs, options: Options) -> list[Chart]:
    """Figure 6: how often each triple and entity comes, the most frequent first, with each sampler."""
    triples: dict[str, dict[str, float]] = {}
    entities: dict[str, dict[str, float]] = {}
    skew: dict[str, dict[str, float]] = {}
    for label, run in runs.items():
        for name, sampler in SAMPLERS.items():
            seen = count_visits(run, run.config.sampling.replace(sampler=sampler), options)
            series = name if len(runs) == 1 else f"{label}, {name}"
            triples[series], entities[series] = in_descending_order(seen.triples), in_descending_order(seen.entities)
            skew[series] = {"triples": gini(seen.triples), "entities": gini(seen.entities)}
    return [
        align("Occurrences of triples", "triples, most frequent first", triples, "log-log"),
        align("Occurrences of entities", "entities, most frequent first", entities, "log-log"),
        align("Gini coefficient of the occurrences", "of", skew),
    ]


def chart_frequencies(runs: Runs, options: Options) -> list[Chart]:
    """Figure 5: the share of all occurrences that an entity has, by degree, in the graph and in batches."""
    charts = []
    for label, run in runs.items():
        kg, own = run.kg, run.config.sampling
        saam = own.replace(sampler="brwr") if own.sampler in ("random", "mcmc") else own
        counts = {"graph": np.bincount(kg.train[:, ::2].ravel(), minlength=kg.num_entities)}
        for name, config in (("random batches", own.replace(sampler="random")), ("SaaM batches", saam)):
            counts[name] = count_visits(run, config, options, options.steps or BATCHES).entities
        series = {name: frequency_by_degree(kg, count) for name, count in counts.items()}
        groups = [f"{(place + 1) * 100 / _SHARES:g}" for place in range(_SHARES)]
        title = f"Share of the occurrences an entity has, in {label}"
        charts.append(Chart(title, "entities by ascending degree, per cent", groups, series, "line"))
    return charts


def chart_extremes(runs: Runs, options: Options) -> list[Chart]:
    """Section 5.5: the entities of the most and the least visited triples, by their mean degree and betweenness."""
    found = {}
    for label, run in runs.items():
        visits = count_visits(run, run.config.sampling, options).triples
        found[label] = measure_extremes(run.kg, visits, choose_sources(run.kg.num_entities, _SOURCES))
    return [
        align(
            f"Mean {measure}",
            f"entities of the {MOST:,} triples",
            {label: part[measure] for label, part in found.items()},
        )
        for measure in ("degree", "betweenness")
    ]


def chart_restart(runs: Runs, options: Options) -> list[Chart]:
    """Figure 9: duplicate entities in a batch by restart probability, and Hits@1 on validation of the runs."""
    steps = options.steps or BATCHES
    duplicates, hits = {}, {}
    for label, run in runs.items():
        own = run.config.sampling
        configs = {name: own.replace(sampler="brwr", restart=restart) for name, restart in RESTARTS.items()}
        seen = {name: count_visits(run, config, options, steps) for name, config in configs.items()}
        duplicates[label] = {name: float(part.duplicates.mean()) for name, part in seen.items()}
        if "valid" in run.metrics:
            mean = count_visits(run, own, options, steps).duplicates.mean() if own.sampler != "mcmc" else np.nan
            hits[f"{label} (restart {own.restart:.3g}, {mean:.0f} duplicates)"] = run.metrics["valid"]["both"]["hits@1"]
    charts = [align("Duplicate entities in a batch", "restart probability", duplicates)]
    return charts + ([align("Hits@1 on validation", "run", {"Hits@1": hits})] if hits else [])


def count_visits(run: RunFolder, config: SamplingConfig, options: Options, steps: int | None = None) -> Occurrences:
    """Draw what the run would draw under these settings."""
    length = steps or options.steps or min(run.config.total_steps(len(run.kg.train)), STEPS)
    sampler = make_sampler(run.kg, config, run.config.training.seed)
    return Occurrences.count(sampler, options.track(range(length), f"{config.sampler}: drawing", length))


def in_descending_order(counts: Int64) -> dict[str, float]:
    """The counts at some ranks, evenly spread on a logarithmic axis."""
    ordered = np.sort(counts)[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered), _POINTS).astype(np.int64))
    return {str(rank): float(ordered[rank - 1]) for rank in ranks}


def frequency_by_degree(kg: KnowledgeGraph, counts: Int64) -> Float64:
    """The mean share of an entity in all occurrences, in equal parts of the entities by ascending degree."""
    order = np.argsort(kg.adjacency.degree, kind="stable")
    shares = counts[order] / max(1, counts.sum())
    return np.array([part.mean() if len(part) else np.nan for part in np.array_split(shares, _SHARES)])


def measure_extremes(
    kg: KnowledgeGraph, visits: Int64, sources: Int32, most: int = MOST
) -> dict[str, dict[str, float]]:
    """Mean degree and betweenness of the distinct entities of the most and of the least visited triples.

    Of triples visited equally often the earlier ones are taken.
    """
    between = betweenness(kg.adjacency, sources)
    order = np.argsort(-visits, kind="stable")
    ends = {"most visited": order[:most], "least visited": np.argsort(visits, kind="stable")[:most]}
    entities = {name: np.unique(kg.train[rows][:, ::2]) for name, rows in ends.items()}
    measures: dict[str, Any] = {"degree": kg.adjacency.degree, "betweenness": between}
    return {
        measure: {name: float(values[members].mean()) for name, members in entities.items()}
        for measure, values in measures.items()
    }
