"""Whatever write fails, or wherever the process is killed: the old state or the new one, never a third.

And what was stopped gives the same as what was not, once it is run again.
"""

from __future__ import annotations

import csv
import errno
import resource
import shutil

import numpy as np
import pytest

from faults import KILL, KINDS, every_write, not_on_disk, run_with_fault, visible
from graphs import graph_of
from satkgc.completion import Completer, accept_proposals, is_prepared, update_run, verify_folder
from satkgc.completion.prepare import prepare
from satkgc.export import export
from satkgc.kg import DECISIONS, Decision, Decisions, KnowledgeGraph
from satkgc.manifest import write_json
from satkgc.training import RunFolder

pytest_plugins = ["world"]


def content(graph: KnowledgeGraph) -> tuple[object, ...]:
    return graph.train.tolist(), graph.entities.ids.to_pylist(), graph.known_all.head_tails.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_that_is_replaced(tmp_path, kind):
    old, new = graph_of([[0, 0, 1], [1, 0, 2]], 3), graph_of([[0, 0, 1], [1, 0, 2], [2, 1, 3]], 4, 2)
    old.save(tmp_path / "graph")
    states = [content(old), content(new)]
    seen = set()
    work = lambda: new.save(tmp_path / "graph", overwrite=True)  # noqa: E731
    for at, _ in every_write(work, tmp_path):
        if content(KnowledgeGraph.load(tmp_path / "graph")) != states[0]:
            old.save(tmp_path / "graph", overwrite=True)
        outcome, _ = run_with_fault(work, tmp_path, at, kind)
        state = states.index(content(KnowledgeGraph.load(tmp_path / "graph")))
        seen.add((outcome, state))
        assert verify_folder(tmp_path / "graph").altered == []
        assert visible(tmp_path) == ["graph"]
        if outcome != "killed":
            assert [path.name for path in tmp_path.iterdir()] == ["graph"]  # nothing is left beside it
        if outcome == "killed" or at % 4 == 0:
            work()
            assert content(KnowledgeGraph.load(tmp_path / "graph")) == states[1]
            assert [path.name for path in tmp_path.iterdir()] == ["graph"]  # nor of those that were killed
    assert {state for _, state in seen} == {0, 1}


def test_a_run_that_is_prepared_again_and_one_for_the_first_time(run_copy, completer, monkeypatch):
    monkeypatch.setattr("satkgc.completion.prepare.CHUNK", {"cpu": 30})
    # Most of the time, and nothing is written in it: the picture, and the fit, which is the same each time.
    draw, fit = "satkgc.completion.prepare.draw_reliability", "satkgc.completion.prepare.calibrate"
    monkeypatch.setattr(draw, lambda _, file: file.write_bytes(b"a picture"))
    monkeypatch.setattr(fit, lambda _, calibration=Completer.load(run_copy)._engine.calibration: calibration)
    expected = completer.tails("Q3", "near", k=90)
    model = RunFolder.load(run_copy).model("cpu")  # opened once: most of the time otherwise
    work = lambda: prepare(run_copy, model)  # noqa: E731
    for at, kind in every_write(work, run_copy):
        run_with_fault(work, run_copy, at, kind)
        assert verify_folder(run_copy).altered == []
        assert is_prepared(run_copy)
        if at % 6:
            continue
        assert Completer.load(run_copy).tails("Q3", "near", k=90) == expected
        shutil.rmtree(run_copy / "index")
        run_with_fault(work, run_copy, at, kind)
        again = Completer.load(run_copy)  # goes on, or begins
        assert again.tails("Q3", "near", k=90) == expected
        np.testing.assert_array_equal(again.vectors(), completer.vectors())
        assert not (run_copy / ".index.partial").exists()


def test_a_run_that_is_updated(run_copy, tmp_path):
    write_json(run_copy / "metrics.json", {"finished": True})
    Decisions(run_copy / DECISIONS).add(Decision("Q1", "near", "Q2", "reject"))
    (tmp_path / "new.csv").write_text("head,relation,tail\nQ3,near,x\n")
    work = lambda: update_run(run_copy, [tmp_path / "new.csv"])  # noqa: E731
    old = shutil.copytree(run_copy, tmp_path / "old")

    def restore() -> None:
        shutil.rmtree(run_copy)
        shutil.copytree(old, run_copy)

    work()
    expected = Completer.load(run_copy).tails("Q3", "near", k=90)
    restore()
    seen = set()
    for at, kind in every_write(work, tmp_path, step=13):
        if RunFolder.load(run_copy).updates:
            restore()
        outcome, _ = run_with_fault(work, tmp_path, at, kind)
        completer = Completer.load(run_copy)
        number = completer.info().run_version.number
        seen.add((outcome, number))
        assert (completer.kg.entities.find("x") is not None) == (number == 2)
        assert verify_folder(run_copy).altered == []
        assert Decisions(run_copy / DECISIONS).last()
        assert visible(tmp_path) == ["new.csv", "old", "run"]
    assert {("killed", 1), ("refused", 1), ("killed", 2)} <= seen | {("killed", 2)}
    restore()
    assert run_with_fault(work, tmp_path, 40, KILL)[0] == "killed"
    work()
    assert Completer.load(run_copy).tails("Q3", "near", k=90) == expected
    assert visible(tmp_path) == sorted(path.name for path in tmp_path.iterdir()), "nothing is left of what was killed"


def test_proposals_answers_and_what_is_accepted(prepared, completer, tmp_path, monkeypatch):
    monkeypatch.setattr("satkgc.completion.proposals.SAVE_SECONDS", 0)
    completer.propose(tmp_path / "whole.csv", n=20, relations=["near", "knows"])
    whole = (tmp_path / "whole.csv").read_bytes()
    with (tmp_path / "whole.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "reviewed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "accept": "yes"} for row in rows)
    folder = tmp_path / "here"
    folder.mkdir()

    def propose():
        completer.propose(folder / "p.csv", n=20, relations=["near", "knows"])

    def accept():
        accept_proposals(tmp_path / "reviewed.csv", folder / "p.csv")

    accept()
    accepted = (folder / "p.csv").read_bytes()
    for work, result in ((propose, whole), (accept, accepted)):
        (folder / "p.csv").unlink(missing_ok=True)
        for at, kind in every_write(work, folder):
            (folder / "p.csv").unlink(missing_ok=True)
            run_with_fault(work, folder, at, kind)
            if (folder / "p.csv").exists():
                assert (folder / "p.csv").read_bytes() == result
            else:
                work()  # goes on where it was
                assert (folder / "p.csv").read_bytes() == result
        # A kill after the result is there may leave the note of how far it got, which is right.
        assert {"p.csv"} <= set(visible(folder)) <= {"p.csv", "p.csv.state.npz"}


def test_an_export(prepared, tmp_path):
    work = lambda: export(prepared, "npy", tmp_path / "out", device="cpu")  # noqa: E731
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


def test_all_is_on_the_disk_before_it_has_its_name_and_the_folders_made_for_it_too(
    prepared, completer, run_copy, tmp_path
):
    write_json(run_copy / "metrics.json", {"finished": True})
    (tmp_path / "new.csv").write_text("head,relation,tail\nQ3,near,x\n")
    graph, model = graph_of([[0, 0, 1], [1, 0, 2]], 3), RunFolder.load(run_copy).model("cpu")
    works = {
        "import": lambda: graph.save(tmp_path / "i" / "j" / "graph"),
        "import --force": lambda: graph.save(tmp_path / "i" / "j" / "graph", overwrite=True),
        "prepare": lambda: prepare(run_copy, model),
        "propose": lambda: completer.propose(tmp_path / "p" / "new.csv", n=20, relations=["near"]),
        "export": lambda: export(prepared, "npy", tmp_path / "e" / "out", device="cpu"),
        "a decision": lambda: Decisions(run_copy / DECISIONS).add(Decision("Q1", "near", "Q2", "accept")),
        "update --out": lambda: update_run(run_copy, [tmp_path / "new.csv"], out=tmp_path / "u" / "run"),
        "update": lambda: update_run(run_copy, [tmp_path / "new.csv"]),
    }
    assert {name: missing for name, work in works.items() if (missing := not_on_disk(work, tmp_path))} == {}


def test_what_says_that_a_run_is_finished(run_copy):
    run = RunFolder.load(run_copy)
    work = lambda: write_json(run_copy / "metrics.json", {"finished": True})  # noqa: E731
    for at, kind in every_write(work, run_copy):
        write_json(run_copy / "metrics.json", {"finished": False})
        run_with_fault(work, run_copy, at, kind)
        assert run.metrics["finished"] in (True, False)


@pytest.mark.parametrize("limit", [0, 200, 3_000, 12_000])
def test_writes_that_stop_short(run_copy, prepared, completer, tmp_path, limit):
    """A file that may not grow further: libraries' own writes, in whatever language, are cut there."""
    (tmp_path / "out").mkdir()
    (tmp_path / "new.csv").write_text("head,relation,tail\nQ3,near,x\n")
    write_json(run_copy / "metrics.json", {"finished": True})

    def works():
        yield lambda: Completer.prepare(run_copy, "cpu")
        yield lambda: export(prepared, "npy", tmp_path / "out" / "npy", device="cpu")
        yield lambda: export(prepared, "parquet", tmp_path / "out" / "parquet", device="cpu")
        yield lambda: KnowledgeGraph.load(prepared / "graph").save(tmp_path / "out" / "graph")
        yield lambda: completer.propose(tmp_path / "out" / "p.csv", n=500, relations=["near", "knows"])
        yield lambda: update_run(run_copy, [tmp_path / "new.csv"], out=tmp_path / "out" / "updated")

    for work in works():

        def limited(work=work):  # type: ignore[no-untyped-def]
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            work()

        outcome, _ = run_with_fault(limited, tmp_path)
        assert outcome == "refused" or limit == 12_000
    assert verify_folder(run_copy).altered == []
    Completer.load(run_copy)
    for left in (tmp_path / "out").iterdir():
        assert not left.name.startswith(".")


def test_a_fault_that_is_no_fault_would_be_seen(tmp_path):
    """The layer itself: it counts, fails, kills, and tells a traceback from a line."""

    def work() -> None:
        (tmp_path / "a").write_text("x")
        (tmp_path / "b").mkdir()

    assert run_with_fault(work, tmp_path) == ("done", 2)
    shutil.rmtree(tmp_path / "b")
    assert run_with_fault(work, tmp_path, 2, errno.ENOSPC) == ("refused", 2)
    assert visible(tmp_path) == ["a"]
    assert run_with_fault(work, tmp_path, 1, KILL)[0] == "killed"
    with pytest.raises(AssertionError, match="a traceback"):
        run_with_fault(lambda: 1 / 0, tmp_path)


def test_what_is_not_on_the_disk_would_be_seen(tmp_path):
    def work() -> None:
        (tmp_path / ".b").mkdir()
        (tmp_path / ".b" / "c").write_text("x")
        (tmp_path / ".b").rename(tmp_path / "b")

    lost = ["b before it had its name: c"] * 2  # as a name, and what is in it
    lost += ["at the end: b", "at the end: b/c", "at the end: b/c"]
    assert not_on_disk(work, tmp_path) == lost
    assert not_on_disk(lambda: (tmp_path / "b" / "c").write_text("more"), tmp_path) == ["at the end: b/c"]
    assert not_on_disk(lambda: (tmp_path / "b" / ".d").write_text("hidden"), tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_is_kept_whole_or_not_at_all(tmp_path, kind):
    file, seen = tmp_path / "decisions.jsonl", set()
    for before in ("", "reject"):
        for at in range(1, 6):
            file.unlink(missing_ok=True)
            if before:
                Decisions(file).add(Decision("a", "r", "b", before))
            work = lambda: Decisions(file).add(Decision("a", "r", "b", "accept"))  # noqa: E731
            outcome, _ = run_with_fault(work, tmp_path, at, kind)
            state = [d.verdict for d in Decisions(file).last().values()]
            allowed = {"done": [["accept"]], "refused": [[before] * bool(before)]}
            # A killed process has told nobody: both are right.
            assert state in allowed.get(outcome, [[before] * bool(before), ["accept"]])
            seen.add(outcome)
            work()
            assert [d.verdict for d in Decisions(file).last().values()] == ["accept"]
    assert seen >= {"killed" if kind == KILL else "refused"}
