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
from satkgc.models import NEGATIVES_OVER
from satkgc.training import RunFolder


@pytest.fixture(scope="module")
def run(tiny_backbone, tmp_path_factory):
    """A run folder over a small graph."""
    return write_run(tmp_path_factory.mktemp("runs") / "run", little_world(), tiny_backbone)


def invoke(command, *arguments):
    return CliRunner().invoke(app, [command, *map(str, arguments), "--device", "cpu"], env={"COLUMNS": "200"})


def test_evaluate_prints_the_metrics_as_json_and_as_a_table(run, tmp_path, monkeypatch):
    report = json.loads(invoke("evaluate", run, "--json").stdout)
    assert report["both"]["mrr"] == pytest.approx(RunFolder.load(run).evaluate().metrics()["both"]["mrr"], abs=1e-5)
    table = invoke("evaluate", run, "--ranks", tmp_path / "ranks.parquet")
    assert f"{report['both']['mrr']:.3f}" in table.stdout
    before = (tmp_path / "ranks.parquet").read_bytes()
    monkeypatch.setattr(RunFolder, "evaluate", lambda *_, **__: 1 / 0)  # it is refused before the work
    error = invoke("evaluate", run, "--split", "valid", "--ranks", tmp_path / "ranks.parquet").exception
    assert "ranks.parquet: the file is there already; choose another name" in str(error)
    assert (tmp_path / "ranks.parquet").read_bytes() == before


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


@pytest.fixture(scope="module")
def other(run, tmp_path_factory):
    """Another run on the same graph, with a log of two epochs."""
    folder = tmp_path_factory.mktemp("runs") / "other"
    shutil.copytree(run, folder)
    records = [{"step": step, "metrics": dict.fromkeys(NEGATIVES_OVER, step / 100)} for step in (1, 7, 8, 14)]
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


FIRST = {  # of each analysis its first chart, and a group of it
    "false-positives-by-distance": ("False-positive ratio", "1"),
    "false-positives-by-degree": ("False-positive ratio", "17–40"),
    "false-positive-loss": ("Mean loss", "all triples"),
    "entity-frequencies": ("Share of the occurrences an entity has, in other", "100"),
    "occurrences": ("Occurrences of triples", "450"),
    "most-and-least-visited": ("Mean degree", "least visited"),
    "negative-cosines": ("Share of in-batch negatives with a cosine over 0.2", "2"),
    "won-and-lost": ("Answers that enter and leave the top 10", "won, of the others"),
    "relation-categories": ("Share of the training triples", "N-N"),
    "distance-similarity": ("Mean cosine of two entities", "1"),
    "restart": ("Duplicate entities in a batch", "1/25"),
    "times": ("Minutes of an epoch", "drawing batches"),
}


def test_analyses_that_take_any_run_are_all_tried_here():
    # experts takes a fused run: tests/analysis/test_expert_combinations.py
    assert set(ANALYSES) - {"experts"} == set(FIRST)


@pytest.mark.parametrize("name", FIRST)
def test_every_analysis_of_a_run_as_json_as_a_table_and_as_a_picture(run, other, name, tmp_path):
    runs = (run, other) if name == "won-and-lost" else (other,)
    title, group = FIRST[name]
    result = invoke("analyse", name, *runs, "--json", "--steps", 2, "--plot", tmp_path / "charts.png")
    found = json.loads(result.stdout)
    assert (found["analysis"], found["split"]) == (name, "test")
    assert found["runs"]["other"] == {"graph": "little world", "recipe": "satkgc", "seed": 0, "commit": commit_of(run)}
    assert next(iter(found["charts"])) == title
    assert all(group in series for series in found["charts"][title].values())
    assert (tmp_path / "charts.png").read_bytes().startswith(b"\x89PNG")
    table = invoke("analyse", name, *runs, "--split", "valid", "--steps", 2).stdout
    assert title in table
    assert group in table


def commit_of(run):
    return RunFolder.load(run).about["commit"]


def test_runs_are_analysed_side_by_side_and_those_of_one_name_by_their_paths(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.copytree(run, tmp_path / "other")
    found = json.loads(
        invoke("analyse", "distance-similarity", run, tmp_path / "run", tmp_path / "other", "--json").stdout
    )
    values = found["charts"]["Mean cosine of two entities"]
    assert list(values) == list(found["runs"]) == [str(run), str(tmp_path / "run"), "other"]
    assert values[str(run)] == values["other"]


def test_what_a_run_has_not_got_is_said_in_one_line(run):
    assert "its log has no cosines of negatives" in str(invoke("analyse", "negative-cosines", run).exception)
    assert "give two runs" in str(invoke("analyse", "won-and-lost", run).exception)
    assert "this run has no experts" in str(invoke("analyse", "experts", run).exception)


def test_analyse_says_what_there_is_and_what_a_picture_is(run, tmp_path):
    text = " ".join(CliRunner().invoke(app, ["analyse", "--help"], env={"COLUMNS": "200"}).output.split())
    assert all(name in text for name in ANALYSES)
    assert "does not end in .png" in str(
        invoke("analyse", "distance-similarity", run, "--plot", tmp_path / "bars.txt").exception
    )
    assert "unknown split 'testing'" in str(
        invoke("analyse", "false-positives-by-degree", run, "--split", "testing").exception
    )
