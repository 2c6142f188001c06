"""The page of the paper: every system has a row, results fill it, verdicts follow the figures."""

from __future__ import annotations

import json
import re

import pytest
from made_up import result

from satkgc.analysis import ANALYSES, load_rows
from satkgc.analysis.markdown import paper_figures
from satkgc.analysis.paper_analyses import load_analyses
from satkgc.analysis.paper_page import BOTH, TABLE_2, TABLE_3, TABLE_12, WIKIDATA, paper_page
from satkgc.errors import SatkgcError

EMPTY = paper_page({}, {})


def part_of(page, title):
    """What stands below a heading."""
    return next(part for part in page.split("\n## ") if part.startswith(title))


def findings(analysis, charts, graph="WN18RR"):
    """A file as `satkgc analyse --json` prints it, of one run of SATKGC and one of SimKGC."""
    runs = {name: {"graph": graph, "recipe": name, "seed": 0, "commit": "0"} for name in ("satkgc", "simkgc")}
    return {(analysis, graph): {"analysis": analysis, "split": "test", "runs": runs, "charts": charts}}


@pytest.mark.parametrize(
    ("title", "systems", "datasets"),
    [("Table 2.", TABLE_2, BOTH), ("Table 12.", TABLE_12, BOTH), ("Table 3.", TABLE_3, WIKIDATA)],
)
def test_every_system_of_the_paper_has_a_row_with_its_figure_and_a_reason_or_a_command(title, systems, datasets):
    part = part_of(EMPTY, title)
    for dataset in datasets:
        table = part.split(f"| {dataset} |")[1].split("\n\n")[0]
        for system in systems:
            if system not in paper_figures()[dataset]:
                continue
            (line,) = [line for line in table.splitlines() if line.startswith(f"| {system}: ")]
            figures = [float(figure) for figure in re.findall(r"– / (\d\.\d+)", line)]
            assert figures == paper_figures()[dataset][system]
            assert "`satkgc " in line or "here" in line
            assert not line.startswith(f"| {system}: not built here")  # it says what it is


def test_all_systems_that_the_paper_reports_are_on_the_page():
    for dataset in (*BOTH, *WIKIDATA, "FB15k-237N"):
        for system, figures in paper_figures()[dataset].items():
            assert " | ".join(f"– / {figure:.3f}" for figure in figures) in EMPTY, (dataset, system)


def test_all_tables_and_figures_stand_in_order():
    titles = re.findall(r"^## (.+?)\.", EMPTY, re.MULTILINE)
    for kind, last in (("Table", 14), ("Figure", 10)):
        numbers = [int(n) for title in titles if title.startswith(kind) for n in re.findall(r"\d+", title)]
        assert numbers == list(range(1, last + 1))


def test_commands_name_rows_that_exist():
    named = re.findall(r"`satkgc reproduce ([\w-]+)`", EMPTY)
    assert len(named) > 20
    assert set(named) <= set(load_rows())
    for name, runs in re.findall(r"`satkgc analyse ([\w-]+) (.+?) --json", EMPTY):
        assert name in ANALYSES
        assert {run.removeprefix("runs/") for run in runs.split()} <= set(load_rows())


def test_a_result_fills_its_row():
    page = paper_page({"wn18rr-rotate": result("wn18rr-rotate", 0.48)}, {})
    for title in ("Table 2.", "Table 8."):
        assert "| **RotatE**: 10 epochs, one seed | 0.480 / 0.471 |" in part_of(page, title)


def ablation(**mrr):
    names = {"full": "satkgc", "wo_saam": "wo-saam", "simkgc": "simkgc"}
    return {
        row: result(row, value + seed / 500)
        for name, value in mrr.items()
        for seed, row in enumerate(
            (f"wn18rr-edge-ablation-{names[name]}-minilm", f"wn18rr-edge-ablation-{names[name]}-minilm-seed1")
        )
    }


@pytest.mark.parametrize(("full", "verdict"), [(0.62, "holds"), (0.58, "does not hold"), (0.6, "level")])
def test_a_verdict_is_that_of_the_difference_and_of_what_seeds_explain(full, verdict):
    part = part_of(paper_page(ablation(full=full, wo_saam=0.6), {}), "Section 5.3.")
    line = part.split("- Subgraph batches (SaaM) help:\n")[1].splitlines()[0]
    assert f"ours {full - 0.6:+.3f} (± 0.002; minilm, 1,690 steps, 2 seeds): {verdict}." in line
    assert "the paper +0.021" in line


def test_the_whole_holds_in_part_if_some_do():
    of = {verdict: part_of(paper_page(r, {}), "Table 2.").splitlines()[2] for verdict, r in (
        ("holds", ablation(full=0.7, simkgc=0.6)),
        ("not", ablation(full=0.5, simkgc=0.6)),
        ("part", ablation(full=0.7, simkgc=0.6) | {n: result(n, m) for n, m in (
            ("fb15k-237-satkgc-adjusted", 0.3), ("fb15k-237-simkgc-adjusted", 0.4))}),
        ("none", {}),
    )}  # fmt: skip
    assert of == {
        "holds": "**Holds** in all settings below.",
        "not": "**Does not hold** in any setting below.",
        "part": "**Holds in part.**",
        "none": "**Not measured yet.**",
    }


def test_the_authors_program_is_compared_with_simkgc_as_published():
    results = {n: result(n, m) for n, m in (("wn18rr-satkgc-authors", 0.7), ("wn18rr-simkgc", 0.66))}
    line = next(line for line in part_of(paper_page(results, {}), "Table 2.").splitlines() if "ours +0.040" in line)
    assert "the authors' program" in line


CHARTS = {
    "Figure 1.": (
        "false-positives-by-distance",
        {"False-positive ratio": {"satkgc": {"1": 3, "2": 2, "3": 1}, "simkgc": {"1": 4, "2": 2, "3": 1}}},
    ),
    "Figure 2.": (
        "false-positives-by-degree",
        {
            "False-positive ratio": {"satkgc": {"1–2": 1, "3–9": 2}, "simkgc": {"1–2": 1, "3–9": 3}},
            "Mean degree of the tail": {"satkgc": {"false positives": 7.5}, "simkgc": {"false positives": 6.5}},
        },
    ),
    "Figure 5.": (
        "entity-frequencies",
        {"Share": {n: {"98": 1, "100": v} for n, v in (("graph", 9), ("random batches", 3), ("SaaM batches", 2))}},
    ),
    "Figure 6.": (
        "occurrences",
        {
            "Gini coefficient of the occurrences": {
                name: {"triples": t, "entities": e}
                for name, t, e in (("RANDOM", 0, 0.9), ("RWR", 0.2, 0.5), ("BRWR_P", 0.1, 0.7), ("BRWR", 0.3, 0.4))
            }
        },
    ),
    "Section 5.5.": (
        "most-and-least-visited",
        {f"Mean {n}": {"satkgc": {"most visited": 1, "least visited": 2}} for n in ("degree", "betweenness")},
    ),
    "Figure 7.": (
        "negative-cosines",
        {
            "Share of in-batch negatives with a cosine over 0.2": {"satkgc": {"1": 0.3}, "simkgc": {"1": 0.2}},
            "Share of in-batch negatives": {"satkgc, epoch 1": {"0.2 to 0.4": 0.3}},
        },
    ),
    "Section 5.6.": (
        "won-and-lost",
        {
            "Answers that enter and leave the top 10": {
                "satkgc against simkgc": {"lost, of those in the top 10": 0.03, "won, of the others": 0.3}
            }
        },
    ),
    "Table 11.": ("distance-similarity", {"Mean cosine of two entities": {"satkgc": {"1": 0.8, "2": 0.7}}}),
    "Table 13.": (
        "false-positive-loss",
        {"Mean loss": {"satkgc, L": {"all triples": 0.1, "false positives": 0.2}}},
    ),
}  # fmt: skip


def turned(charts):
    """The same with the values of every series the other way round: 1 / value."""
    return {
        title: {name: {group: 1 / (value + 0.01) for group, value in series.items()} for name, series in chart.items()}
        for title, chart in charts.items()
    }


@pytest.mark.parametrize("title", CHARTS)
def test_an_analysis_is_judged_by_its_values(title):
    name, charts = CHARTS[title]
    part = part_of(paper_page({}, findings(name, charts)), title)
    assert re.search(r"\bholds\b(?! in part)", part)
    assert "does not hold" not in part
    assert part.count("not measured yet") == 1  # FB15k-237
    other = part_of(paper_page({}, findings(name, turned(charts))), title)
    assert re.search(r"does not hold|holds in part", other)


def test_analyses_are_read_and_what_is_none_is_refused_in_one_line(tmp_path):
    ((key, data),) = findings("occurrences", CHARTS["Figure 6."][1]).items()
    (tmp_path / "occurrences-wn18rr.json").write_text(json.dumps(data))
    assert load_analyses(tmp_path) == {key: data}
    assert load_analyses(tmp_path / "none") == {}
    (tmp_path / "x.json").write_text('{"charts": {}}')
    with pytest.raises(SatkgcError, match=r"x\.json: not an analysis.*satkgc analyse") as refusal:
        load_analyses(tmp_path)
    assert "\n" not in str(refusal.value)
