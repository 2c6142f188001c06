"""The pages of results: `docs/results.md`, `docs/paper.md` and the README's table, from the files in `results/`.

Run by `make results`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from satkgc.analysis.experiments import Row, load_groups, load_rows, table_rows
from satkgc.analysis.markdown import METRICS, NOT_YET, figure_cells, paper_figures, table_line, write_page
from satkgc.analysis.paper_analyses import load_analyses
from satkgc.analysis.paper_page import paper_page
from satkgc.analysis.results import Evaluation, Result, load_results
from satkgc.errors import SatkgcError

START, END = "<!-- results:start -->", "<!-- results:end -->"
_SINGLE = (
    "main",
    "structure",
    "inductive",
    "encoders",
    "star",
)  # groups whose rows stand alone; the others compare variants
_INTRODUCTION = """# Results

Made by `make results` from the files in `results/`, one a run; no figure on this page is typed by hand. Ranks are
filtered, ties are realistic, figures are the mean of both directions on test, and weights were chosen by validation
MRR. A cell reads "ours / the paper's" where the paper has the figure; ± is half the distance between the best and the
worst seed. "SATKGC" is the paper as written, "the authors' program" what their code does where it differs, "SimKGC" as
published. What a label adds to these is ours: `model.text.exclude = "edge"`, by which a text in training keeps the
name of an answer that another training triple joins to its entity; `model.loss.logit_adjustment = 1`, with six epochs
(FB15k-237N: fifteen) at 5e-5 unless the label says otherwise. "neighbours by relation" is a recipe of ours
([findings](findings.md)). Models of structure alone read no text; their recipes' settings are ours where they say so.
The comparisons below the first three tables are short runs of equal length with the paper's
own loss, to see whether a part helps; they are not to be set against the paper's figures, which are of full length.
Minutes are those of the training steps; validation comes on top. For FB15k-237N the caption of the paper's table
speaks of ranking tails, its text of both directions; ours are the mean of both. `satkgc reproduce ROW` does any row
again.
"""


def results_page(results: dict[str, Result]) -> str:
    """The text of docs/results.md."""
    parts = [_INTRODUCTION]
    for group, title in load_groups().items():
        rows = [row for row in table_rows() if row.group == group]
        parts += [f"## {title}", "\n".join(_alone(rows, results) if group in _SINGLE else _compared(rows, results))]
    parts += ["## Runs", "\n".join(_provenance(results))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def readme_block(results: dict[str, Result]) -> str:
    """The README's table: rows that stand alone, change nothing of their recipe and have been run; of structure, the
    experts of the mixture."""
    rows = [row for row in table_rows() if row.group in _SINGLE and row.name in results and not row.overrides]
    rows = [row for row in rows if row.group != "structure" or row.recipe in ("complex", "paths")]
    return "\n".join(_alone(rows, results))


def replace_block(text: str, block: str, where: object = None) -> str:
    """Put a block between the markers of a page."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SatkgcError("no place for the results", where=where, remedy=f"put {START} and {END} into the page")
    return f"{before}{START}\n{block}\n{END}{after}"


def _alone(rows: list[Row], results: dict[str, Result]) -> Iterator[str]:
    """A line for each method; several seeds of one make a mean."""
    yield table_line(("dataset", "method", "backbone", "ranked among", "epochs", "minutes, hardware", *METRICS))
    yield table_line(("---",) * 4 + ("---:",) * 6)
    methods: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        methods.setdefault((row.dataset, row.label, row.backbone), []).append(row)
    for start, seeds in methods.items():
        row = seeds[0]
        finished = [results[seed.name] for seed in seeds if seed.name in results]
        if not finished:
            yield table_line((*start, NOT_YET, "", "", *_cells([], row)))
            continue
        length = f"{finished[0].epochs:.3g}", f"{finished[0].minutes:.0f}, {finished[0].hardware}"
        evaluations: dict[str, list[Evaluation]] = {}
        for evaluation in (part for result in finished for part in (result, *result.also)):
            evaluations.setdefault(evaluation.candidates, []).append(evaluation)
        for candidates, parts in evaluations.items():
            # A row that names a sample is compared with the paper by that sample only.
            comparable = bool(row.sampled) == ("sampled" in candidates)
            yield table_line((*start, candidates, *length, *_cells(parts, row if comparable else None)))


def _compared(rows: list[Row], results: dict[str, Result]) -> Iterator[str]:
    for dataset, backbone in dict.fromkeys((row.dataset, row.backbone) for row in rows):
        table = [row for row in rows if (row.dataset, row.backbone) == (dataset, backbone)]
        finished = [results[row.name] for row in table if row.name in results]
        if not finished:
            yield from (f"{dataset}, {backbone}: {NOT_YET}.", "")
            continue
        shared = set.intersection(*(set(row.overrides.items()) for row in table))
        settings = _settings({name: value for name, value in table[0].overrides.items() if (name, value) in shared})
        yield from (f"{', '.join((dataset, backbone, _steps(finished), *settings))}:", "")
        yield table_line(("", *METRICS, "seeds"))
        yield table_line(("---", *("---:",) * 5))
        for label in dict.fromkeys(row.label for row in table):
            alike = [row for row in table if row.label == label]
            seeds: list[Evaluation] = [results[row.name] for row in alike if row.name in results]
            yield table_line((label, *_cells(seeds, alike[0]), str(len(seeds)) if seeds else NOT_YET))
        yield ""


def _provenance(results: dict[str, Result]) -> Iterator[str]:
    if not results:
        yield f"{NOT_YET.capitalize()}."
        return
    columns = ("seed", "steps", "epochs", "minutes", "valid MRR", "test MRR", "Hits@1")
    rows = load_rows()
    yield table_line(("row", "recipe", *columns, "hardware", "commit"))
    yield table_line(("---", "---", *("---:",) * len(columns), "---", "---"))
    for name, result in results.items():
        length = (str(result.seed), f"{result.steps:,}", f"{result.epochs:.3g}", f"{result.minutes:.1f}")
        valid = "" if result.valid_mrr is None else f"{result.valid_mrr:.3f}"
        figures = (valid, f"{result.both['mrr']:.3f}", f"{result.both['hits@1']:.3f}")
        recipe = ", ".join((result.recipe, *(_settings(rows[name].overrides) if name in rows else ())))
        yield table_line((f"`{name}`", recipe, *length, *figures, result.hardware, f"`{result.commit[:10]}`"))


def _settings(overrides: Mapping[str, Any]) -> list[str]:
    """What is changed besides length and rate."""
    return [f"`{name} = {value}`" for name, value in overrides.items() if not name.startswith("training.")]


def _cells(evaluations: Sequence[Evaluation], row: Row | None) -> Iterator[str]:
    """Ours, over the seeds, beside the paper's."""
    return figure_cells(evaluations, paper_figures().get(row.dataset, {}).get(row.paper or "") if row else None)


def _steps(results: list[Result]) -> str:
    low, high = min(result.steps for result in results), max(result.steps for result in results)
    return f"{low:,} steps" if low == high else f"{low:,} to {high:,} steps"


def make_tables(root: Path) -> None:
    """Write docs/results.md, docs/paper.md and the README's table from the results below a folder."""
    results = load_results(root / "results")
    readme = root / "README.md"
    text = replace_block(readme.read_text(encoding="utf-8"), readme_block(results), readme)
    paper = paper_page(results, load_analyses(root / "results" / "analyses"))
    write_page(root / "docs" / "results.md", results_page(results))
    write_page(root / "docs" / "paper.md", paper)
    write_page(readme, text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the repository")
    make_tables(parser.parse_args().root)
