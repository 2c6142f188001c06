"""What the paper says of its tables, put to our results: its systems with our figures, and which of two is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from satkgc.analysis.experiments import Row, table_rows
from satkgc.analysis.markdown import METRICS, figure_cells, paper_figures, table_head, table_line
from satkgc.analysis.results import Evaluation, Result

OURS = ("neighbours", "fused")  # recipes of our own, which no system of the paper stands for
ALONE = ("main", "structure", "encoders", "star")  # groups of full runs; the others compare short ones
ALSO = {"MPNet": "SATKGC"}  # what the paper calls otherwise in another table
AUTHORS = ", the authors' program"
ONE_SEED = 0.005  # how far apart two seeds of one system may lie, where only one was run
Results = dict[str, Result]


@dataclass(frozen=True)
class Comparison:
    """Two systems in one setting of ours."""

    dataset: str
    setting: str
    paper: float  # the better one's MRR less the other's
    ours: float
    spread: float  # of seeds
    seeds: int  # of the one that has fewer

    @property
    def verdict(self) -> str:
        """Whether ours says what the paper says."""
        if abs(self.ours) <= self.spread:
            return "level"
        return "holds" if self.ours > 0 else "does not hold"

    def sentence(self) -> str:
        """For a list."""
        seeds = f"{self.seeds} seeds" if self.seeds > 1 else "one seed"
        figures = f"the paper {self.paper:+.3f}, ours {self.ours:+.3f} (± {self.spread:.3f}; {self.setting}, {seeds})"
        return f"{self.dataset}: {figures}: {self.verdict}"


def systems_table(dataset: str, systems: tuple[str, ...], why: dict[str, str], results: Results) -> Iterator[str]:
    """Every system of a table with our runs of it, or why there is none."""
    yield from table_head((dataset, *METRICS))
    for system in systems:
        paper = paper_figures()[dataset].get(system)
        if paper is None:
            continue
        lines = list(_our_lines(dataset, system, results))
        if not lines:
            rows = [row for row in table_rows() if _is(row, dataset, ALSO.get(system, system))]
            reason = f"`satkgc reproduce {rows[0].name}`" if rows else why.get(system, "not built here")
            lines = [((), f"{system}: {reason}")]
        for evaluations, label in lines:
            yield table_line((label, *figure_cells(evaluations, paper)))


def _our_lines(dataset: str, system: str, results: Results) -> Iterator[tuple[tuple[Evaluation, ...], str]]:
    """Our full runs of a system, or short ones where there are no others: their evaluations, and what they are."""
    for seeds in _methods(dataset, system, results).values():
        row, found = seeds[0], [results[seed.name] for seed in seeds]
        parts: list[Evaluation] = list(found)
        if row.sampled:
            parts = [other for result in found for other in result.also if "sampled" in other.candidates]
        count = f"{len(found)} seeds" if len(found) > 1 else "one seed"
        name = row.label if row.group in ALONE else system
        backbone = "" if row.backbone == "none" else f"{row.backbone}, "
        yield tuple(parts), f"**{name}**: {backbone}{found[0].epochs:.3g} epochs, {count}"


def _methods(dataset: str, system: str, results: Results) -> dict[tuple[str, ...], list[Row]]:
    methods: dict[tuple[str, ...], list[Row]] = {}
    for row in table_rows():
        if _is(row, dataset, ALSO.get(system, system)) and row.name in results:
            methods.setdefault((row.group, row.label, row.backbone), []).append(row)
    alone = {key: rows for key, rows in methods.items() if key[0] in ALONE}
    return alone or methods


def compare(better: str, worse: str, datasets: tuple[str, ...], results: Results) -> Iterator[Comparison]:
    """In every setting in which we have both."""
    for dataset in datasets:
        paper = paper_figures()[dataset]
        ours, theirs = _by_setting(dataset, better, results), _by_setting(dataset, worse, results)
        for (group, backbone, added), first in ours.items():
            # The authors' program, where the other has no such form, is compared with it as published.
            second = theirs.get((group, backbone, added)) or theirs.get((group, backbone, added.removesuffix(AUTHORS)))
            if second is None:
                continue
            one, two = ([result.both["mrr"] for result in part] for part in (first, second))
            seeds = min(len(one), len(two))
            spread = sum((max(part) - min(part)) / 2 for part in (one, two)) if seeds > 1 else ONE_SEED
            text = "" if backbone == "none" else f"{backbone}, "
            setting = f"{text}{first[0].steps:,} steps{added}"
            difference = mean(one) - mean(two)
            yield Comparison(dataset, setting, paper[better][0] - paper[worse][0], difference, spread, seeds)


def _by_setting(dataset: str, system: str, results: Results) -> dict[tuple[str, str, str], list[Result]]:
    """Runs of a system by what they share with those of others: the table, the backbone, the rest of the label."""
    found: dict[tuple[str, str, str], list[Result]] = {}
    for row in table_rows():
        if _is(row, dataset, system) and row.name in results:
            added = row.label.removeprefix(system) if row.group in ALONE else ""
            found.setdefault((row.group, row.backbone, added), []).append(results[row.name])
    return found


def _is(row: Row, dataset: str, system: str) -> bool:
    return (row.dataset, row.paper) == (dataset, system) and row.recipe not in OURS


def claims(pairs: tuple[tuple[str, str, str], ...], datasets: tuple[str, ...], results: Results) -> Iterator[str]:
    """A sentence on the whole, then one for each claim and setting: (what is claimed, the better one, the other)."""
    found = {text: list(compare(better, worse, datasets, results)) for text, better, worse in pairs}
    yield overall([one.verdict for part in found.values() for one in part])
    yield ""
    for text, comparisons in found.items():
        yield f"- {text}:" if comparisons else f"- {text}: not measured yet."
        yield from (f"    - {one.sentence()}." for one in comparisons)


def overall(verdicts: list[str]) -> str:
    """One word for many."""
    kinds = set(verdicts)
    if not kinds:
        return "**Not measured yet.**"
    if kinds == {"holds"}:
        return "**Holds** in all settings below."
    return "**Holds in part.**" if "holds" in kinds else "**Does not hold** in any setting below."
