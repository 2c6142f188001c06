"""The experiments: their rows, and one done again on a small graph: plan, stop, resume, result."""

from __future__ import annotations

import json

import numpy as np
import pytest
from made_up import result
from typer.testing import CliRunner

from graphs import graph_of
from satkgc.analysis import Row, experiments, find_row, load_results, load_rows, make_plan, reproduce, save_result
from satkgc.analysis.experiments import MPNET, NO_TEXT, load_groups, table_rows
from satkgc.analysis.markdown import paper_figures
from satkgc.cli import app
from satkgc.errors import UNFINISHED, SatkgcError
from satkgc.kg import find_entry
from satkgc.training import RunFolder, make_config

SHORT = {
    "training.steps": 4,
    "training.validations": 2,
    "training.log_steps": 1,
    "sampling.batch_size": 16,
    "model.text.max_tokens": 24,
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
    monkeypatch.setattr(experiments, "load_rows", lambda: {"small": row})
    return row


@pytest.fixture(scope="module")
def finished(graph, tiny_backbone, tmp_path_factory):
    """A run and its result, made in one go."""
    folder = tmp_path_factory.mktemp("finished")
    row = Row("small", "main", "small", str(graph), "satkgc", str(tiny_backbone), 3, SHORT, sampled=5)
    return folder, reproduce(row, folder / "run", folder / "results", say=lambda _: None)


def test_the_result_is_that_of_the_run(finished, graph):
    folder, outcome = finished
    assert load_results(folder / "results").keys() == {"small"} == {outcome.row}
    run = RunFolder.load(folder / "run")
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


def test_a_row_without_text_is_done_again_and_takes_no_backbone(graph, tmp_path):
    changes = {name: value for name, value in SHORT.items() if not name.startswith("model.")}
    row = Row("plain", "structure", "plain", str(graph), "rotate-saam", NO_TEXT, 1, {**changes, "model.dim": 4})
    plan = make_plan(row, tmp_path)
    assert plan.lines()[0] == f"plain: recipe rotate-saam on {graph} without text, seed 1"
    assert (plan.config.model.interaction, plan.config.sampling.sampler) == ("rotate", "brwr")
    outcome = reproduce(row, tmp_path / "run", tmp_path / "results", say=lambda _: None)
    assert (outcome.backbone, outcome.config["model"]["kind"]) == ("none", "embedding")
    with pytest.raises(SatkgcError, match="plain reads no text; leave --backbone out"):
        make_plan(row, tmp_path, "models/mpnet")


def test_the_time_of_a_row_without_text_is_its_own_alone(tmp_path):
    save_result(result("wn18rr-complex", steps=100, minutes=2.0), tmp_path)
    assert make_plan(find_row("wn18rr-complex"), tmp_path).minutes is not None
    assert make_plan(find_row("wn18rr-tucker"), tmp_path).minutes is None


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
    assert plan.config.model.encoder.backbone == "sentence-transformers/all-mpnet-base-v2"
    save_result(result("wn18rr-edge-ablation-wo-fmt", steps=845, minutes=2.0), tmp_path)
    by_another = make_plan(row, tmp_path, "models/mpnet")
    assert by_another.minutes == pytest.approx(20)
    how_long = "about 20 minutes of training on NVIDIA H200 (by the steps of wn18rr-edge-ablation-wo-fmt)"
    assert how_long in by_another.lines()[-1]
    assert by_another.config.model.encoder.backbone == "models/mpnet"
    save_result(result("wn18rr-satkgc", steps=8450, minutes=15.0), tmp_path)
    assert "about 15 minutes of training on NVIDIA H200 (measured)" in make_plan(row, tmp_path).lines()[-1]


def test_a_plan_says_what_is_laid_over_the_recipe(tmp_path):
    lines = make_plan(find_row("fb15k-237-simkgc-adjusted"), tmp_path).lines()
    (laid,) = [line for line in lines if line.startswith("settings for FB15k-237: ")]
    assert "model.loss.logit_adjustment=1.0" in laid
    assert "sampling.batch_size=3072" in laid
    assert "backbone" not in laid
    (changed,) = [line for line in lines if line.startswith("changes to the recipe: ")]
    assert changed.endswith(": nothing")
    assert make_plan(find_row("fb15k-237-satkgc-adjusted"), tmp_path).minutes is None


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


def test_every_row_is_a_valid_configuration_of_a_known_graph_and_no_two_are_the_same():
    seen: dict[tuple[str, str], str] = {}
    for row in load_rows().values():
        assert find_entry(row.dataset).name == row.dataset
        config = make_config(row.recipe, benchmark=row.dataset, overrides=row.settings()).replace(recipe="")
        assert (row.dataset, repr(config)) not in seen, f"{row.name} is {seen[row.dataset, repr(config)]} again"
        seen[row.dataset, repr(config)] = row.name


def test_tables_and_paper_figures_that_rows_name_exist():
    for row in table_rows():
        assert row.group in load_groups()
        assert row.paper is None or row.paper in paper_figures()[row.dataset]


def test_families_unfold_into_backbones_and_seeds():
    assert find_row("wn18rr-edge-ablation-wo-pcl").backbone == MPNET
    other = find_row("wn18rr-edge-ablation-wo-pcl-minilm-seed1")
    assert (other.backbone, other.seed, other.recipe) == ("minilm", 1, "wo-pcl")
    shared = find_row("wn18rr-edge-ablation-wo-pcl").overrides
    assert shared["training.epochs"] == 5  # the length of all comparisons on this graph
    assert shared["model.text.exclude"] == "edge"  # as the name says
    assert other.overrides == {**shared, "training.learning_rate": 3e-4}  # MiniLM's own rate
    assert find_row("wn18rr-edge-batch-512-minilm").overrides == {
        **shared,
        "training.learning_rate": 3e-4,
        "sampling.batch_size": 512,
    }
    assert "wn18rr-edge-batch-512" not in load_rows()  # a family names its backbones


@pytest.mark.parametrize(
    "row",
    ["wn18rr-satkgc", "wn18rr-satkgc-authors", "wn18rr-simkgc", "fb15k-237-satkgc-authors", "fb15k-237-simkgc"],
)
def test_what_bears_a_published_name_has_two_seeds_and_no_setting_of_ours(row):
    for name, seed in ((row, 0), (f"{row}-seed1", 1)):
        known = find_row(name)
        assert (known.backbone, known.seed, known.overrides) == (MPNET, seed, {})
        config = make_config(known.recipe, benchmark=known.dataset)
        assert (config.model.loss.logit_adjustment, config.model.text.exclude) == (0, "answer")
        assert config.training.epochs == (50 if known.dataset == "WN18RR" else 30)


def test_a_row_may_stand_in_several_tables_under_other_labels():
    shown = [row for row in table_rows() if row.name == "wn18rr-edge-ablation-satkgc-minilm"]
    assert {"ablation": "SATKGC", "samplers": "BRWR", "batch": "1024"}.items() <= {
        r.group: r.label for r in shown
    }.items()
    assert find_row("wn18rr-edge-ablation-satkgc-minilm").label == "SATKGC"


def test_a_row_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(SatkgcError, match="did you mean wn18rr-satkgc"):
        find_row("wn18r-satkgc")
