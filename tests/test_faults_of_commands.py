"""Faults in what other commands write, as in test_faults.py: `check`, `duplicates`, `evaluate`, `complete`, `sample`,
`kg inspect`, `kg get`, `analyse`, `reproduce`, all forms of `accept`, `fuse` and `train --from`.

`classify`, `compare`, `verify` and `mcp` write nothing; `serve` what `prepare` writes, and decisions.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from faults import every_write, not_on_disk, run_with_fault, visible
from graphs import graph_of
from satkgc.analysis import Chart, Result, draw_charts, load_results, save_result
from satkgc.cli.complete import _answer_file as answer_questions
from satkgc.completion import accept_into, accept_proposals, verify_folder
from satkgc.completion.duplicates import Duplicate, accept_duplicates, merge_duplicates, write_duplicates
from satkgc.kg import Decision, Decisions, KnowledgeGraph, relation_logic, write_logic, write_tsv
from satkgc.training import RunFolder, fuse_or_stop, train_or_stop
from satkgc.training.checkpoint import Checkpoints
from tasks import small_graph

pytest_plugins = ["world"]

SMALL = {"training.device": "cpu", "model.dim": 4, "sampling.batch_size": 32, "training.validations": 1}


@pytest.fixture
def reviewed(run_copy: Path) -> Path:
    """A run on whose page two statements were accepted."""
    for tail in ("Q80", "Q81"):
        Decisions(run_copy / "decisions.jsonl").add(Decision("Q1", "knows", tail, "accept"))
    return run_copy


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two pairs that are one each."""
    columns = ("a", "b", 0.9, 1.0, None, 0.2, ("r – c",), None, 5, 2, "", "")
    file = tmp_path / "pairs.csv"
    write_duplicates(file, [Duplicate("e0", "e1", *columns), Duplicate("e2", "e3", *columns)])
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"accept": "yes"} for row in rows)
    return file


def a_result() -> Result:
    return next(iter(load_results(Path(__file__).parents[1] / "results").values()))


def test_one_file_is_whole_or_not_there(completer, reviewed, table, tmp_path, monkeypatch):
    monkeypatch.setattr("satkgc.completion.checking.SAVE_SECONDS", 0)
    monkeypatch.setattr("satkgc.completion.checking.BATCH", 10)
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "asked.jsonl").write_text('{"head": "Q1", "relation": "near"}\n' * 3)
    report, result = RunFolder.load(completer.run).evaluate("test", device="cpu"), a_result()
    works = {
        "ranks.parquet": report.save_ranks,
        "relations.toml": lambda out: write_logic(completer.kg, relation_logic(completer.kg), out),
        "answers.jsonl": lambda out: answer_questions(completer, tmp_path / "asked.jsonl", 3, out, {}),
        "bars.png": lambda out: draw_charts([Chart("seen", "group", ["1"], {"run": np.ones(1)})], out),
        f"{result.row}.json": lambda out: save_result(result, out.parent),
        "doubts.csv": lambda out: completer.check(5, ["near"], "valid", out),
        "same.csv": lambda out: completer.duplicates(5, 0.0, out),
        "page.nt": lambda out: accept_proposals(reviewed, out),
        "page.tsv": lambda out: accept_proposals(reviewed, out),
        "pairs.nt": lambda out: accept_duplicates(table, out),
        "pairs.tsv": lambda out: accept_duplicates(table, out),
    }
    for name, command in works.items():
        work = lambda name=name, command=command: command(here / name)  # noqa: E731
        work()
        whole = (here / name).read_bytes()
        (here / name).unlink()
        assert whole
        for at, kind in every_write(work, here):
            (here / name).unlink(missing_ok=True)
            outcome, _ = run_with_fault(work, here, at, kind)
            if not (here / name).exists():
                assert outcome != "done"
                work()
            assert (here / name).read_bytes() == whole
        assert name in visible(here)
        shutil.rmtree(here)
        here.mkdir()


def test_a_folder_of_tables_is_whole_or_not_there(completer, tmp_path):
    work = lambda: write_tsv(completer.kg, tmp_path / "out")  # noqa: E731
    work()
    whole = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    shutil.rmtree(tmp_path / "out")
    for at, kind in every_write(work, tmp_path):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        outcome, _ = run_with_fault(work, tmp_path, at, kind)
        assert outcome == "killed" or visible(tmp_path) == [path.name for path in tmp_path.iterdir()]
        if not (tmp_path / "out").exists():
            work()
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == whole


@pytest.mark.parametrize("command", ["accept_into", "merge_duplicates"])
def test_a_graph_that_grows_or_is_merged(reviewed, table, tmp_path, command):
    here = tmp_path / "here"
    here.mkdir()
    old = graph_of([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 0]], 4) if command == "merge_duplicates" else None
    old = old or RunFolder.load(reviewed).kg
    old.save(here / "graph")
    run, source = (accept_into, reviewed) if command == "accept_into" else (merge_duplicates, table)
    work = lambda: run(source, here / "graph")  # noqa: E731
    work()
    states = [graph.train.tolist() for graph in (old, KnowledgeGraph.load(here / "graph"))]
    assert states[0] != states[1]
    seen = set()
    old.save(here / "graph", overwrite=True)
    for at, kind in every_write(work, here, 7):
        if KnowledgeGraph.load(here / "graph").train.tolist() != states[0]:
            old.save(here / "graph", overwrite=True)
        outcome, _ = run_with_fault(work, here, at, kind)
        seen.add(states.index(KnowledgeGraph.load(here / "graph").train.tolist()))
        assert visible(here) == ["graph"]
        assert outcome == "killed" or [path.name for path in here.iterdir()] == ["graph"]
    old.save(here / "graph", overwrite=True)
    work()
    assert KnowledgeGraph.load(here / "graph").train.tolist() == states[1]
    assert [path.name for path in here.iterdir()] == ["graph"]
    assert 0 in seen


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> RunFolder:
    """A finished run of a small embedding model."""
    folder = tmp_path_factory.mktemp("source") / "run"
    return train_or_stop(small_graph(), "complex", folder, overrides=SMALL | {"training.steps": 3})[0]


@pytest.mark.parametrize("command", ["fuse", "train --from"])
def test_a_run_made_of_runs_is_finished_or_goes_on(source, tmp_path, command):
    second = Path(shutil.copytree(source.folder, tmp_path / "second"))

    def work(out: Path = tmp_path / "out") -> None:
        if command == "fuse":
            fuse_or_stop([source.folder, second], out, device="cpu", resume=True)
        else:
            train_or_stop(small_graph(), None, out, overrides={"training.steps": 2}, from_run=source, resume=True)

    def models(out: Path) -> dict[str, bytes]:
        files = (path for path in out.rglob("*") if path.parent.name == "model")
        return {str(path.relative_to(out)): path.read_bytes() for path in files}

    work(tmp_path / "whole")
    expected = models(tmp_path / "whole")
    assert expected
    out = tmp_path / "out"
    for at, kind in every_write(work, out, 23):
        shutil.rmtree(out, ignore_errors=True)
        outcome, _ = run_with_fault(work, out, at, kind)
        if (out / "metrics.json").exists() and RunFolder.load(out).metrics["finished"]:
            assert models(out) == expected
        else:
            assert outcome != "done"
            work()  # goes on, or begins
        assert models(out) == expected
        assert verify_folder(out).altered == []


def test_a_run_is_on_the_disk_before_it_counts_as_finished(source, reviewed, table, completer, tmp_path):
    kept = SMALL | {"training.steps": 2, "training.checkpoint_minutes": 0, "training.keep_checkpoints": True}
    second = Path(shutil.copytree(source.folder, tmp_path / "second"))
    graph = RunFolder.load(reviewed).kg.save(tmp_path / "graph").path
    works = {
        "a run that begins": lambda: RunFolder.create(tmp_path / "n" / "run", source.config, small_graph(), "made up"),
        "a checkpoint": lambda: Checkpoints(tmp_path / "k" / "run").save("step-1", {}, {}, {}),
        "a result": lambda: save_result(a_result(), tmp_path / "r" / "results"),
        "train": lambda: train_or_stop(small_graph(), "complex", tmp_path / "t" / "run", overrides=kept),
        "fuse": lambda: fuse_or_stop([source.folder, second], tmp_path / "f" / "run", device="cpu"),
        "check": lambda: completer.check(5, ["near"], "valid", tmp_path / "c" / "doubts.csv"),
        "duplicates": lambda: completer.duplicates(5, 0.0, tmp_path / "d" / "same.csv"),
        "accept": lambda: accept_proposals(reviewed, tmp_path / "a" / "page.nt"),
        "accept pairs": lambda: accept_duplicates(table, tmp_path / "b" / "pairs.tsv"),
        "accept into a graph": lambda: accept_into(reviewed, graph),
    }
    assert {name: missing for name, work in works.items() if (missing := not_on_disk(work, tmp_path))} == {}
    assert (tmp_path / "t" / "run" / "checkpoints").is_dir()
