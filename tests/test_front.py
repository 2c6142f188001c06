"""`satkgc.train` and `satkgc train` leave the same folder behind, which can be asked at once."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from typer.testing import CliRunner

import satkgc
from satkgc.cli import app
from satkgc.errors import UNFINISHED, SatkgcError
from satkgc.models import ContrastiveLoss, TextModel
from satkgc.training import default_recipe, recipes
from tasks import small_graph


@pytest.fixture(scope="module")
def settings(tiny_backbone):
    return {
        "model.encoder.backbone": str(tiny_backbone),
        "model.encoder.dropout": 0.0,
        "model.text.max_tokens": 30,
        "model.text.neighbours": 0,
        "sampling.batch_size": 32,
        "training.steps": 5,
        "training.learning_rate": 3e-3,
        "training.validations": 1,
        "training.device": "cpu",
    }


def assignments(settings):
    return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def run(settings, tmp_path_factory):
    return satkgc.train(small_graph(), "simkgc", tmp_path_factory.mktemp("runs") / "small", overrides=settings)


def test_the_package_trains(run):
    assert isinstance(run, satkgc.Run)
    assert run.finished
    assert satkgc.evaluate(run, "valid").metrics()["both"] == pytest.approx(run.metrics["valid"]["both"])


@pytest.mark.parametrize("validation", [60, 4])
def test_that_there_are_no_probabilities_is_told_with_the_reason(settings, tmp_path, capsys, validation):
    kg = small_graph()
    fewer = satkgc.KnowledgeGraph.from_arrays(
        "few", kg.entities, kg.relations, kg.train[validation:], kg.train[:validation]
    )
    run = satkgc.train(fewer, "simkgc", tmp_path / "few", overrides={**settings, "training.steps": 2})
    said = capsys.readouterr().err
    told = "answers have no probabilities: the model finds too few of the 4 validation triples" in said
    assert told == (validation == 4) == (not run.completer().calibrated)


def test_a_run_is_asked_in_one_call(run):
    before = {path: path.stat().st_mtime_ns for path in (run.folder / "index").rglob("*")}
    assert before, "a finished run has its index"
    completer = satkgc.Run.load(run.folder).completer()
    head, relation, tail = run.kg.train[0]
    names = run.kg.entities.id(head), run.kg.relations.id(relation)
    answers = completer.tails(*names, k=run.kg.num_entities)
    assert run.kg.entities.id(tail) in {answer.id for answer in answers}
    assert {path: path.stat().st_mtime_ns for path in (run.folder / "index").rglob("*")} == before


def test_the_command_line(run, settings, tmp_path):
    small_graph().save(tmp_path / "graph")
    command = ["train", str(tmp_path / "graph"), "--recipe", "simkgc", "--out", str(tmp_path / "run")]
    command += assignments(settings)
    shown = CliRunner().invoke(app, [*command, "--show"])
    assert shown.exit_code == 0, shown.output
    assert "model.loss.proximity = off" in shown.stdout
    assert "# 5 steps" in shown.stdout
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stdout.strip().endswith(str(tmp_path / "run"))
    other = satkgc.Run.load(tmp_path / "run")
    assert other.metrics["steps"] == 5
    assert other.config == run.config
    names = [{path.relative_to(one.folder) for path in one.folder.rglob("*")} for one in (run, other)]
    assert names[0] == names[1]
    assert [record.get("loss") for record in other.log()] == [record.get("loss") for record in run.log()]
    with pytest.raises(SatkgcError, match="has no value"):
        CliRunner().invoke(app, [*command, "--set", "training.steps"], catch_exceptions=False)


def test_without_a_recipe_a_cpu_gets_the_quick_one(tiny_backbone, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    short = {"model.encoder.backbone": str(tiny_backbone), "training.device": "cpu", "training.steps": 2}
    short |= {f"experts.{name}.training.validations": 0 for name in ("text", "complex")}
    run = satkgc.train(small_graph(), overrides=short | {"experts.text.model.text.max_tokens": 30})
    assert run.folder.as_posix() == "runs/small-quick", "named after graph and recipe"
    assert [part.config.model.kind for part in run.experts.values()] == ["frozen", "embedding"]
    assert "no GPU, so the recipe is quick" in capsys.readouterr().err
    assert run.completer().tails(run.kg.entities.id(0), run.kg.relations.id(0), k=3)
    assert run.completer().info().model.backbones == ("tiny-bert",)
    assert not list(run.folder.rglob("checkpoints"))


def test_a_gpu_gets_the_full_recipe_and_so_does_a_loss_of_ones_own(monkeypatch):
    assert default_recipe("cpu") == "quick"
    assert default_recipe("cpu", custom=True) == "satkgc-adjusted"
    monkeypatch.setattr(recipes, "find_device", lambda name: torch.device("cuda:0"))
    assert default_recipe() == "satkgc-adjusted"


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_a_script_that_is_told_to_stop_does_not_go_on_with_half_a_model(
    settings, tmp_path, number, raised, monkeypatch
):
    backward = TextModel.backward

    def interrupted(*args):
        os.kill(os.getpid(), number)
        return backward(*args)

    monkeypatch.setattr(TextModel, "backward", interrupted)
    with pytest.raises(raised):
        satkgc.train(small_graph(), "satkgc", tmp_path, overrides=settings)
    monkeypatch.undo()
    run = satkgc.Run.load(tmp_path)
    assert (tmp_path / "checkpoints" / "step-00000001").is_dir()
    assert not run.finished
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path), "--device", "cpu"])
    assert "is not finished: the weights are the latest so far" in result.stderr
    limited = settings | {"training.max_minutes": 1e-9}
    command = ["train", str(tmp_path / "graph"), "--out", str(tmp_path), "--resume", *assignments(limited)]
    assert CliRunner().invoke(app, command).exit_code == UNFINISHED


def test_a_run_that_reaches_its_limit_is_returned_as_it_is(settings, tmp_path):
    run = satkgc.train(small_graph(), "satkgc", tmp_path, overrides=settings | {"training.max_minutes": 1e-9})
    assert not run.finished
    assert not (tmp_path / "index").exists()
    finished = satkgc.train(small_graph(), out=tmp_path, overrides={"training.max_minutes": None}, resume=True)
    assert finished.finished
    assert (tmp_path / "index").exists()


def test_a_run_with_parts_of_ones_own_is_resumed_from_python_alone(settings, tmp_path):
    class Mine(ContrastiveLoss):
        pass

    short = settings | {"training.steps": 1, "training.validations": 0}
    satkgc.train(small_graph(), out=tmp_path, overrides=short, loss=Mine)
    command = ["train", str(tmp_path / "graph"), "--out", str(tmp_path), "--resume"]
    with pytest.raises(
        SatkgcError, match=r"Mine, not that of its recipe; go on from Python: satkgc.train\(…, loss=Mine"
    ):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_the_front_of_the_package_lists_what_it_has():
    assert set(satkgc.__all__) <= set(dir(satkgc))
    for name in satkgc.__all__:
        assert getattr(satkgc, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        satkgc.trian  # noqa: B018
