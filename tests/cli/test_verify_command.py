"""`satkgc verify` names every file that is not as it was written."""

from __future__ import annotations

import json

import pytest
from commands import run

from satkgc import KnowledgeGraph
from satkgc.cli.verify import verify
from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, Decision, Decisions

pytest_plugins = ["world"]


def covered(run_folder):
    """All files of a run but those for people to look at or to change, and the locks."""
    names = [path.relative_to(run_folder).as_posix() for path in run_folder.rglob("*") if path.is_file()]
    return sorted(
        n for n in names if n not in ("README.md", "reliability.png", "relations.toml") and not n.endswith(".lock")
    )


def test_every_file_is_covered_and_named(run_copy):
    assert run("verify", run_copy).stdout.startswith(f"{run_copy}: all is as it was written (")
    names = covered(run_copy)
    assert {"config.json", "graph/meta.json", "model/tokenizer/tokenizer.json", "index/entities.npy"} <= set(names)
    for name in names:
        file = run_copy / name
        content = file.read_bytes()
        for damage in (None, content[:-2], content[:9] + bytes([content[9] ^ 1]) + content[10:]):
            if damage is not None:
                file.write_bytes(damage)
            elif name in ("config.json", "model/manifest.json", "index/manifest.json"):
                continue  # then it is no run, or one of an earlier version
            else:
                file.unlink()
            with pytest.raises(SatkgcError, match=r"1 file is not as written; copy"):
                run("verify", run_copy)
            file.write_bytes(content)


def test_an_altered_decision_is_named_and_one_that_was_cut_off_never_was(run_copy):
    file = run_copy / DECISIONS
    for tail in ("Q2", "Q3"):
        Decisions(file).add(Decision("Q1", "near", tail, "reject"))
    content = file.read_bytes()
    file.write_bytes(content[:-2])
    run("verify", run_copy)
    file.write_bytes(content.replace(b"Q3", b"Q4"))
    with pytest.raises(SatkgcError, match=r"1 file is not as written; copy"):
        run("verify", run_copy)


def test_all_of_several_are_named(run_copy, capsys):
    for name in ("model/tokenizer/tokenizer.json", "index/names.npy", "graph/train.npy"):
        (run_copy / name).write_bytes(b"")
    with pytest.raises(SatkgcError, match="3 files are not as written"):
        verify(run_copy)
    lines = capsys.readouterr().out.splitlines()
    names = ["graph/train.npy", "index/names.npy", "model/tokenizer/tokenizer.json"]
    assert lines == [f"{name}: altered, cut short or missing" for name in names]


def test_a_graph_and_what_has_no_sums(run_copy, tmp_path):
    KnowledgeGraph.load(run_copy / "graph").save(tmp_path / "graph")
    assert "all is as it was written (1 parts)" in run("verify", tmp_path / "graph").stdout
    meta = json.loads((tmp_path / "graph" / "meta.json").read_text())
    del meta["sha256"]
    (tmp_path / "graph" / "meta.json").write_text(json.dumps(meta))
    assert "meta.json: no sum, as earlier versions left it" in run("verify", tmp_path / "graph").stdout
    (run_copy / "model" / "manifest.json").unlink()
    assert run("verify", run_copy).stdout.splitlines()[0] == "model/: no sum, as earlier versions left it"
    with pytest.raises(SatkgcError, match="neither a graph nor a run"):
        run("verify", tmp_path)
