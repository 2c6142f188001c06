"""The paper's figures, and its tables that are no ranks, beside what `satkgc analyse` found (`results/analyses/`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from satkgc.analysis.experiments import load_rows
from satkgc.analysis.markdown import paper_figures, table_head, table_line
from satkgc.errors import SatkgcError

GRAPHS = ("WN18RR", "FB15k-237")
Charts = dict[str, dict[str, dict[str, float]]]  # by title, series and group
Analyses = dict[tuple[str, str], dict[str, Any]]  # by name and graph
Lines = Iterator[str]


def load_analyses(folder: Path) -> Analyses:
    """What `satkgc analyse --json` printed, by analysis and graph; none where there is no folder."""
    found: Analyses = {}
    for file in sorted(folder.glob("*.json")):
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            graph = next(iter(data["runs"].values()))["graph"]
            found[data["analysis"], graph] = data
            assert data["charts"], "no charts"
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration, AssertionError) as error:
            remedy = "write what `satkgc analyse NAME RUN --json` prints"
            raise SatkgcError(f"not an analysis: {error}", where=file, remedy=remedy) from error
    return found


def section(name: str, analyses: Analyses, judge: Callable[[str, dict[str, Any]], Lines], runs: str) -> Lines:
    """A judgement for each graph that has been analysed, and for the others the command that does it."""
    for graph in GRAPHS:
        data = analyses.get((name, graph))
        if data is not None:
            yield from judge(graph, data)
            continue
        row = graph.lower()
        rows = (f"{row}-{run}" for run in runs.split())
        folders = " ".join(f"runs/{run}" if run in load_rows() else f"runs/{run}-authors" for run in rows)
        command = f"satkgc analyse {name} {folders} --json > results/analyses/{name}-{row}.json"
        yield from (f"{graph}: not measured yet (`{command}`).", "")


def chart_lines(chart: dict[str, dict[str, float]], groups_are: str, groups: tuple[str, ...] | None = None) -> Lines:
    """A row a group, a column a series."""
    every = dict.fromkeys(group for series in chart.values() for group in series)
    yield from table_head((groups_are, *chart))
    for group in groups or every:
        yield table_line((group, *(f"{series[group]:.3g}" if group in series else "" for series in chart.values())))
    yield ""


def _series(data: dict[str, Any], title: str, recipe: str) -> dict[str, float] | None:
    """The series of the first run of a recipe, `satkgc` or `satkgc-authors` for "satkgc"."""
    for label, run in data["runs"].items():
        if run["recipe"].startswith(recipe):
            return dict(data["charts"][title][label])
    return None


def judge_false_positives(graph: str, data: dict[str, Any]) -> Lines:
    """Figures 1 and 2: do false positives grow towards near, or high-degree, entities, and does SATKGC have fewer?"""
    title = "False-positive ratio"
    chart = data["charts"][title]
    by_degree = data["analysis"].endswith("degree")
    ordered = (list(series.values()) for series in chart.values())
    grows = [_falls(values[::-1] if by_degree else values[:4]) for values in ordered]
    where = "higher degrees" if by_degree else "shorter distances"
    text = f"{graph}: the ratio grows towards {where} for {sum(grows)} of {len(grows)} runs"
    ours, theirs = (_series(data, title, recipe) for recipe in ("satkgc", "simkgc"))
    if ours and theirs:
        end = list(ours)[-1] if by_degree else "1"
        text += f"; at {end} SATKGC has {ours[end]:.3g}, SimKGC {theirs[end]:.3g}"
        grows.append(ours[end] < theirs[end])
    yield from (f"{text}: {_verdict(grows)}.", "")
    yield from chart_lines(chart, "degree of the tail" if by_degree else "distance")
    if by_degree:
        degrees = data["charts"]["Mean degree of the tail"]
        means = ", ".join(f"{name} {series['false positives']:.1f}" for name, series in degrees.items())
        paper = paper_figures()["Section 5.5, FB15k-237"]["mean degree of false positives"]
        beside = f" (the paper: {paper[0]:.0f} for SATKGC, {paper[1]:.0f} for SimKGC)" if graph == "FB15k-237" else ""
        yield from (f"Mean degree of the tails of false positives{beside}: {means}.", "")


def judge_frequencies(graph: str, data: dict[str, Any]) -> Lines:
    """Figure 5: is the graph long-tailed, are random batches less so, and SaaM's nearly uniform?"""
    (chart,) = data["charts"].values()
    times = {name: series["100"] * len(series) / sum(series.values()) for name, series in chart.items()}
    flatter = [times["SaaM batches"] < 0.9 * times["random batches"], times["random batches"] < 0.9 * times["graph"]]
    text = ", ".join(f"{value:.1f} times in {name.replace('graph', 'the graph')}" for name, value in times.items())
    yield f"{graph}: the 2 % of entities with most neighbours occur, against an equal share, {text}. That SaaM's"
    yield f"batches are the flattest {_one(flatter[0])}; that random ones are flatter than the graph"
    yield f"{_one(flatter[1])}."
    yield ""


def judge_occurrences(graph: str, data: dict[str, Any]) -> Lines:
    """Figure 6: which sampler is how skewed?"""
    skew = data["charts"]["Gini coefficient of the occurrences"]
    by = {of: {name: values[of] for name, values in skew.items()} for of in ("triples", "entities")}
    even, most = (choose(by["entities"], key=by["entities"].__getitem__) for choose in (min, max))
    triples = max(by["triples"], key=by["triples"].__getitem__)
    verdict = _verdict([triples == "BRWR", even == "BRWR", most == "RANDOM"])
    yield f"{graph}: the paper has BRWR as the most skewed in triples and the least in entities, RANDOM as the most in"
    yield f"entities; ours are {triples}, {even} and {most}: {verdict}."
    yield ""
    yield from chart_lines(by, "Gini coefficient")


def judge_extremes(graph: str, data: dict[str, Any]) -> Lines:
    """Section 5.5: are the most visited triples peripheral?"""
    measures = {name: next(iter(data["charts"][f"Mean {name}"].values())) for name in ("degree", "betweenness")}
    paper = paper_figures()["Section 5.5, FB15k-237"] if graph == "FB15k-237" else {}
    texts = []
    for name, values in measures.items():
        text = f"mean {name} {values['most visited']:.3g} and {values['least visited']:.3g}"
        theirs = paper.get(f"mean {name}")
        texts.append(text + (f" (the paper: {theirs[0]:.3g} and {theirs[1]:.3g})" if theirs else ""))
    verdict = _verdict([values["most visited"] < values["least visited"] for values in measures.values()])
    yield f"{graph}, entities of the 1,000 most and least visited triples: {'; '.join(texts)}: {verdict}."
    yield ""


def judge_cosines(graph: str, data: dict[str, Any]) -> Lines:
    """Figure 7: does SATKGC meet harder negatives throughout?"""
    title = "Share of in-batch negatives with a cosine over 0.2"
    ours, theirs = (_series(data, title, recipe) for recipe in ("satkgc", "simkgc"))
    if ours and theirs:
        more = [ours[epoch] > theirs[epoch] for epoch in ours if epoch in theirs]
        text = f"SATKGC has the larger share of hard negatives in {sum(more)} of {len(more)} epochs"
        yield from (f"{graph}: {text}: {_verdict(more)}.", "")
    yield from chart_lines(data["charts"]["Share of in-batch negatives"], "cosine")


def judge_won_and_lost(graph: str, data: dict[str, Any]) -> Lines:
    """Section 5.6: does SATKGC lose little of SimKGC's top 10, and win much?"""
    paper = paper_figures()["Section 5.6"]
    lost, won = (paper[name][GRAPHS.index(graph)] for name in ("lost", "won"))
    for pair, shares in data["charts"]["Answers that enter and leave the top 10"].items():
        ours = {name.split(",")[0]: share for name, share in shares.items()}
        yield f"{graph}, {pair}: loses {ours['lost']:.2%} of the top-10 answers (the paper: {lost:.2%}) and wins"
        yield f"{ours['won']:.2%} of the others ({won:.2%}): {_one(ours['won'] > ours['lost'])}."
    yield ""


def judge_similarity(graph: str, data: dict[str, Any]) -> Lines:
    """Table 11: do cosines fall with the distance?"""
    chart = data["charts"]["Mean cosine of two entities"]
    falls = [_falls(list(series.values())[:6]) for series in chart.values()]
    yield f"{graph}: cosines fall with every step up to six for {sum(falls)} of {len(falls)} runs: {_verdict(falls)}."
    yield ""
    paper = {str(at): cosine for at, cosine in enumerate(paper_figures()["Table 11"]["cosine"], 1)}
    yield from chart_lines({**chart, **({"the paper": paper} if graph == "FB15k-237" else {})}, "distance")


def judge_loss(graph: str, data: dict[str, Any]) -> Lines:
    """Table 13: is the loss higher on false positives?"""
    chart = data["charts"]["Mean loss"]
    more = all(series.get("false positives", 0) > series["all triples"] for series in chart.values())
    yield from (f"{graph}: that false positives lose more {_one(more)}.", "")
    paper = paper_figures()["Table 13"]
    columns = {f"the paper, {name}": {of: paper[of][i] for of in paper} for i, name in enumerate(("ψ·L", "L"))}
    yield from chart_lines({**chart, **(columns if graph == "WN18RR" else {})}, "mean loss of")


def _verdict(true: list[bool]) -> str:
    return "holds" if all(true) else "holds in part" if any(true) else "does not hold"


def _one(true: bool) -> str:
    return "holds" if true else "does not hold"


def _falls(values: list[float]) -> bool:
    return all(first > second for first, second in pairwise(values))
