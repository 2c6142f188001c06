"""An experiment done again on a small graph: plan, stop, resume, result; and the commands around it."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest
from made_up import result
from typer.testing import CliRunner

from graphs import graph_of
from satkgc.analysis import rows
from satkgc.analysis.reproduce import make_plan, reproduce
from satkgc.analysis.results import load_results, save_result
from satkgc.analysis.rows import Row, find_row
from satkgc.cli import app
from satkgc.cli.reproduce import UNFINISHED
from satkgc.errors import SatkgcError
from satkgc.training import Run

SHORT = {
    "training.steps": 4,
    "training.validations": 2,
    "training.log_steps": 1,
    "sampling.batch_size": 16,
    "text.max_tokens": 24,
    "training.device": "cpu",
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A folder with a small graph in its binary form."""
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, [30, 2, 30], (90, 3)), axis=0)
    triples = rng.permutation(triples)
    folder = tmp_path_factory.mktemp("graph") / "small"
    graph_of(triples[:-20], 30, 2, triples[-20:-10], triples[-10:]).save(folder)
    return folder


@pytest.fixture
def small_row(graph, tiny_backbone, monkeypatch):
    """A row of its own, which the commands find too."""
    row = Row("small", "main", "small", str(graph), "satkgc", str(tiny_backbone), 3, SHORT, sampled=5)
    monkeypatch.setattr(rows, "load_rows", lambda: {"small": row})
    return row


@pytest.fixture(scope="module")
def finished(graph, tiny_backbone, tmp_path_factory):
    """A run and its result, made in one go."""
    folder = tmp_path_factory.mktemp("finished")
    row = Row("small", "main", "small", str(graph), "satkgc", str(tiny_backbone), 3, SHORT, sampled=5)
    return folder, reproduce(row, folder / "run", folder / "results", say=lambda _: None)


def test_the_result_is_that_of_the_run(finished, graph):
    folder, made = finished
    assert load_results(folder / "results").keys() == {"small"} == {made.row}
    run = Run.load(folder / "run")
    report = run.evaluate("test", device="cpu").to_json()
    kept = json.loads((folder / "results" / "small.json").read_text())
    for side in ("head", "tail", "both"):
        assert kept[side]["mrr"] == pytest.approx(report[side]["mrr"], abs=1e-5)
    assert kept["also"][0]["candidates"] == "5 sampled of all entities"
    assert (kept["steps"], kept["seed"], kept["split"]) == (4, 3, "test")
    assert kept["config"]["sampling"]["batch_size"] == 16
    assert kept["overrides"] == SHORT
    assert [step for step, _ in kept["curves"]["loss"]] == [1, 2, 3, 4]
    assert [step for step, _ in kept["curves"]["valid_mrr"]] == [2, 4]
    assert kept["valid_mrr"] == pytest.approx(run.metrics["valid"]["both"]["mrr"], abs=1e-5)
    assert "cores" in kept["hardware"]
    assert (folder / "run" / "ranks-test.parquet").exists()


def test_a_run_that_stops_says_so_and_goes_on_to_the_same_result(small_row, finished, tmp_path):
    command = ["reproduce", "small", "--yes", "--out", str(tmp_path / "run"), "--results", str(tmp_path / "results")]
    stopped = CliRunner().invoke(app, [*command, "--max-minutes", "0.00001"])
    assert stopped.exit_code == UNFINISHED, stopped.output
    assert "--resume goes on" in stopped.output
    assert not (tmp_path / "results").exists()
    went_on = CliRunner().invoke(app, [*command, "--resume"])
    assert went_on.exit_code == 0, went_on.output
    assert "4 steps" in went_on.output
    (kept,) = load_results(tmp_path / "results").values()
    assert kept.both["mrr"] == pytest.approx(finished[1].both["mrr"], abs=1e-5)
    again = CliRunner().invoke(app, [*command, "--resume"])  # a finished run is only evaluated
    assert again.exit_code == 0, again.output


def test_nothing_begins_without_a_yes(small_row, tmp_path):
    command = ["reproduce", "small", "--out", str(tmp_path / "run"), "--results", str(tmp_path)]
    refused = CliRunner().invoke(app, command, input="n\n")
    assert refused.exit_code == 1
    assert "has not been measured yet" in refused.output
    assert not list(tmp_path.iterdir())


def test_the_plan_takes_its_time_from_the_results(tmp_path):
    row = find_row("wn18rr-satkgc")
    plan = make_plan(row, tmp_path)
    assert (plan.steps, plan.epochs, plan.minutes) == (8450, 50, None)
    assert plan.config.encoder.backbone == "sentence-transformers/all-mpnet-base-v2"
    save_result(result("wn18rr-ablation-wo-fmt", steps=845, minutes=2.0), tmp_path)
    by_another = make_plan(row, tmp_path, "models/mpnet")
    assert by_another.minutes == pytest.approx(20)
    assert (
        "about 20 minutes of training on NVIDIA H200 (by the steps of wn18rr-ablation-wo-fmt)" in by_another.lines()[-1]
    )
    assert by_another.config.encoder.backbone == "models/mpnet"
    save_result(result("wn18rr-satkgc", steps=8450, minutes=15.0), tmp_path)
    assert "about 15 minutes of training on NVIDIA H200 (measured)" in make_plan(row, tmp_path).lines()[-1]


def test_a_plan_says_what_is_laid_over_the_recipe(tmp_path):
    lines = make_plan(find_row("fb15k-237-simkgc"), tmp_path).lines()
    (laid,) = [line for line in lines if line.startswith("settings for FB15k-237: ")]
    assert "objective.popularity=1.0" in laid
    assert "sampling.batch_size=3072" in laid
    assert "backbone" not in laid
    (changed,) = [line for line in lines if line.startswith("changes to the recipe: ")]
    assert changed.endswith(": nothing")
    assert make_plan(find_row("fb15k-237-satkgc"), tmp_path).minutes is None


def test_rows_are_listed_with_their_results(tmp_path):
    save_result(result("wn18rr-satkgc", 0.7), tmp_path)
    listed = CliRunner().invoke(app, ["reproduce", "--list", "--results", str(tmp_path)], env={"COLUMNS": "80"})
    line = next(line for line in listed.output.splitlines() if "wn18rr-satkgc " in line)
    assert "0.700" in line
    assert "fb15k-237-restart-1-2-minilm-seed1" in listed.output


def test_no_row_or_an_unknown_one_is_told():
    assert isinstance(CliRunner().invoke(app, ["reproduce"]).exception, SatkgcError)
    unknown = CliRunner().invoke(app, ["reproduce", "wn18rr-satkg"]).exception
    assert "did you mean wn18rr-satkgc" in str(unknown)


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments), "--device", "cpu"], env={"COLUMNS": "200"})


def test_evaluate_prints_the_metrics_as_json_and_as_a_table(finished, tmp_path):
    run = finished[0] / "run"
    report = json.loads(evaluate(run, "--json").stdout)
    assert report["both"]["mrr"] == pytest.approx(finished[1].both["mrr"], abs=1e-5)
    shown = evaluate(run, "--ranks", tmp_path / "ranks.parquet")
    assert f"{report['both']['mrr']:.3f}" in shown.stdout
    assert (tmp_path / "ranks.parquet").exists()


def test_evaluate_takes_every_option(finished):
    run = finished[0] / "run"
    other = json.loads(evaluate(run, "--split", "valid", "--ties", "pessimistic", "--rerank", "2:0.1", "--json").stdout)
    assert (other["split"], other["ties"], other["rerank"]) == ("valid", "pessimistic", {"hops": 2, "weight": 0.1})
    few = json.loads(evaluate(run, "--candidates", "7", "--json").stdout)
    assert few["candidates"] == "7 sampled of all entities"
    split = json.loads(evaluate(run, "--candidates", "split", "--memory-mib", "32", "--json").stdout)
    assert split["num_candidates"] < 30
    assert split["config"]["memory_mib"] == 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split", "train"), "choose test or valid"),
        (("--candidates", "few"), "give all, split or a number"),
        (("--rerank", "two"), "give HOPS or HOPS:WEIGHT"),
        (("--ties", "lucky"), "evaluation.ties is 'lucky'"),
    ],
)
def test_evaluate_refuses_nonsense_in_one_line(finished, options, message):
    error = evaluate(finished[0] / "run", *options).exception
    assert isinstance(error, SatkgcError)
    assert message in str(error)


def test_evaluate_says_where_no_run_is(tmp_path):
    assert "no run here" in str(evaluate(tmp_path).exception)


def test_the_paper_s_figures_of_a_run(finished, tmp_path, monkeypatch, capsys):
    run = finished[0] / "run"
    for module, title in (("fp_by_distance", "1"), ("fp_by_degree", "–")):
        monkeypatch.setattr("sys.argv", [module, str(run), "--plot", str(tmp_path / f"{module}.png")])
        runpy.run_module(f"satkgc.analysis.{module}", run_name="__main__")
        ratios = json.loads(capsys.readouterr().out)["run"]
        assert title in next(iter(ratios))
        assert max(ratios.values()) > 0
        assert (tmp_path / f"{module}.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("sys.argv", ["distance_similarity", str(run)])
    runpy.run_module("satkgc.analysis.distance_similarity", run_name="__main__")
    assert -1 <= json.loads(capsys.readouterr().out)["1"] <= 1.0001
