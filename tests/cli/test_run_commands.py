"""`satkgc evaluate` and `satkgc analyse`, on a run whose model was never trained."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from little_world import little_world, write_run
from satkgc.analysis import ANALYSES
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.training import RunFolder


@pytest.fixture(scope="module")
def run(tiny_backbone, tmp_path_factory):
    """A run folder over a small graph."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", little_world(), tiny_backbone)


def invoke(command, *arguments):
    return CliRunner().invoke(app, [command, *map(str, arguments), "--device", "cpu"], env={"COLUMNS": "200"})


def test_evaluate_prints_the_metrics_as_json_and_as_a_table(run, tmp_path):
    report = json.loads(invoke("evaluate", run, "--json").stdout)
    assert report["both"]["mrr"] == pytest.approx(RunFolder.load(run).evaluate().metrics()["both"]["mrr"], abs=1e-5)
    table = invoke("evaluate", run, "--ranks", tmp_path / "ranks.parquet")
    assert f"{report['both']['mrr']:.3f}" in table.stdout
    assert (tmp_path / "ranks.parquet").exists()


def test_evaluate_takes_every_option(run):
    options = ("--split", "valid", "--ties", "pessimistic", "--rerank", "2:0.1", "--json")
    other = json.loads(invoke("evaluate", run, *options).stdout)
    assert (other["split"], other["ties"], other["rerank"]) == ("valid", "pessimistic", {"hops": 2, "weight": 0.1})
    few = json.loads(invoke("evaluate", run, "--candidates", "7", "--json").stdout)
    assert few["candidates"] == "7 sampled of all entities"
    split = json.loads(invoke("evaluate", run, "--candidates", "split", "--memory-mib", "32", "--json").stdout)
    assert split["num_candidates"] < 90
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
def test_evaluate_refuses_nonsense_in_one_line(run, options, message):
    error = invoke("evaluate", run, *options).exception
    assert isinstance(error, SatkgcError)
    assert message in str(error)


@pytest.mark.parametrize("command", [("evaluate",), *(("analyse", name) for name in ANALYSES)])
def test_a_folder_without_a_run_is_one_line(command, tmp_path):
    error = invoke(*command, tmp_path).exception
    assert isinstance(error, SatkgcError)
    assert str(error).startswith(f"{tmp_path}: no run here")
    assert "\n" not in str(error)


@pytest.mark.parametrize(("name", "group"), zip(ANALYSES, ["1", "–", "1"], strict=True))
def test_every_analysis_of_a_run_as_json_as_a_table_and_as_a_picture(run, name, group, tmp_path):
    result = invoke("analyse", name, run, "--json", "--plot", tmp_path / "bars.png")
    (values,) = json.loads(result.stdout).values()
    assert group in next(iter(values))
    assert max(values.values()) > 0
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    table = invoke("analyse", name, run, "--split", "valid").stdout
    assert next(iter(values)) in table
    assert ANALYSES[name].values.capitalize() in table


def test_runs_are_analysed_side_by_side_and_those_of_one_name_by_their_paths(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.copytree(run, tmp_path / "other")
    values = json.loads(
        invoke("analyse", "distance-similarity", run, tmp_path / "run", tmp_path / "other", "--json").stdout
    )
    assert list(values) == [str(run), str(tmp_path / "run"), "other"]
    assert values[str(run)] == values["other"]


def test_analyse_says_what_there_is_and_what_a_picture_is(run, tmp_path):
    text = " ".join(CliRunner().invoke(app, ["analyse", "--help"], env={"COLUMNS": "200"}).output.split())
    assert all(name in text for name in ANALYSES)
    assert "does not end in .png" in str(
        invoke("analyse", "distance-similarity", run, "--plot", tmp_path / "bars.txt").exception
    )
    assert "unknown split 'testing'" in str(
        invoke("analyse", "false-positives-by-degree", run, "--split", "testing").exception
    )
