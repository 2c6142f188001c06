"""The notebooks run from their first cell to their last, with three steps of training and a tiny language model."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path

import pytest

import satkgc

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[str]:
    parts = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(part["source"]) for part in parts if part["cell_type"] == kind]


@pytest.fixture
def run(tmp_path, monkeypatch, tiny_backbone):
    """Runs a notebook as a kernel does: the cells in order, the value of a cell's last line shown."""
    monkeypatch.chdir(tmp_path)
    train = satkgc.train
    short = {"training.steps": 3, "training.device": "cpu"}

    def train_briefly(kg, recipe=None, out=None, overrides=None):
        given = {name: value for name, value in (overrides or {}).items() if name != "training.epochs"}
        tiny = {"model.encoder.backbone": str(tiny_backbone), "experts.text.model.text.max_tokens": 50}
        tiny = {} if recipe else tiny
        return train(kg, recipe, out, overrides={**given, **short, **tiny})

    monkeypatch.setattr(satkgc, "train", train_briefly, raising=False)

    def run(name: str) -> tuple[dict, list]:
        names, shown = {}, []
        for cell in cells(ROOT / "examples" / name, "code"):
            tree = ast.parse(cell)
            if isinstance(tree.body[-1], ast.Expr):
                tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
            exec(compile(ast.fix_missing_locations(tree), name, "exec"), names)
            shown.append(names.get("_"))
        return names, shown

    return run


def test_from_pandas_to_answers(run):
    names, shown = run("own_graph.ipynb")
    kg, triples = names["kg"], names["triples"]
    assert sum(len(kg.split(split)) for split in ("train", "valid", "test")) == len(triples)
    countries = names["countries"]
    holes = countries[countries.eq("").any(axis=1)]["country"]
    assert list(holes) == ["Austria", "Chile", "Finland", "Slovenia", "Uruguay"], "those that the text names"
    asked = next(table for table in shown if getattr(table, "columns", [None])[-1] == "probability")
    assert sorted(set(asked["head"])) == list(holes)
    pairs = {(row.head, row.tail) for row in triples[triples["relation"] == "borders"].itertuples()}
    assert {(tail, head) for head, tail in pairs} == pairs, "a border has two sides"


def test_comparing_systems(run):
    names, _ = run("compare_systems.ipynb")
    reports, differences = names["reports"], names["differences"]
    assert reports.keys() == {(recipe, seed) for recipe in ("distmult", "complex") for seed in (0, 1)}
    mrr = next(difference for difference in differences if difference.metric == "mrr")
    seeds = [reports["complex", seed].metrics()["both"]["mrr"] for seed in (0, 1)]
    assert seeds[0] != seeds[1]
    assert math.isclose(mrr.second, sum(seeds) / 2, rel_tol=1e-6)
    best, worst = (names["popular"].metrics(ties)["both"]["mrr"] for ties in ("optimistic", "pessimistic"))
    assert best > worst, "it ties"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_links_lead_somewhere_and_outputs_are_small(notebook):
    for target in re.findall(r"\]\(([^)#]+)", "\n".join(cells(notebook, "markdown"))):
        assert (notebook.parent / target).exists(), target
    assert notebook.stat().st_size < 100_000
