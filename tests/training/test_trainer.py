"""A run from a graph to a folder that loads without it, and what it refuses."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.kg import Vocabulary
from satkgc.models import ContrastiveLoss, TextModel
from satkgc.processes import Processes
from satkgc.training import Config, Custom, RunFolder, make_config, train_or_stop, trainer
from satkgc.training.checkpoint import Checkpoints
from satkgc.training.resume import WRITTEN
from satkgc.training.validation import Validation
from tasks import small_graph


@pytest.fixture(scope="module")
def settings(tiny_backbone):
    return {
        "model.encoder.backbone": str(tiny_backbone),
        "model.encoder.dropout": 0.0,
        "model.text.max_tokens": 30,
        "model.text.neighbours": 0,
        "sampling.batch_size": 32,
        "training.steps": 60,
        "training.learning_rate": 3e-3,
        "training.validations": 2,
        "training.validation_triples": 6,
    }


def train(kg, *args, **options):
    """The run, whether it came to its end or not; of the default recipe of GPUs, unless one is given."""
    if not (args or options.keys() & {"config", "resume"}):
        args = ("satkgc-adjusted",)
    return train_or_stop(kg, *args, **options)[0]


@pytest.fixture(scope="module")
def run(settings, tmp_path_factory):
    random_state = torch.random.get_rng_state()
    run = train(small_graph(), "satkgc", tmp_path_factory.mktemp("runs") / "small", overrides=settings)
    assert torch.equal(torch.random.get_rng_state(), random_state)  # the caller's random numbers are left alone
    return run


def test_it_learns(run):
    losses = [record["loss"] for record in run.log() if "loss" in record]
    assert losses[-1] < 0.95 * losses[0]
    report = evaluate(run.model(), run.kg, "train")
    untrained = evaluate(TextModel(run.kg, run.config.model), run.kg, "train")
    assert report.metrics()["both"]["mrr"] > 2 * untrained.metrics()["both"]["mrr"]


def test_the_log_has_everything(run):
    steps = [record for record in run.log() if "loss" in record]
    assert [record["step"] for record in steps] == [10, 20, 30, 40, 50, 60]
    keys = ["loss", "gradient_norm", "lr", "triples_per_second", "data_wait"]
    assert all(isinstance(record[key], float) for record in steps for key in keys)
    shown = [name for name in steps[0]["metrics"] if not name.startswith("negatives_over_")]
    assert shown == ["temperature", "positive_cosine", "negative_cosine", "beta"]
    for name in ("temperature", "beta"):
        assert steps[0]["metrics"][name] != steps[-1]["metrics"][name]
    assert [record["step"] for record in run.log() if "validation" in record] == [30, 60]


def test_the_folder_is_whole_and_loads_in_one_call(run):
    for name in ("config.json", "graph", "model", "log.jsonl", "metrics.json", "curves.png", "README.md"):
        assert (run.folder / name).exists(), name
    assert (run.folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    again = RunFolder.load(run.folder)
    assert again.config == run.config
    assert again.metrics["valid"]["both"] == pytest.approx(again.evaluate("valid").metrics()["both"])
    card = (run.folder / "README.md").read_text()
    assert "| batches | brwr, 32 samples |" in card
    assert "| model | text |" in card
    temperature = run.log()[-2]["metrics"]["temperature"]
    assert f"| temperature at the end | {temperature:.4g} |" in card
    assert "| model.loss.proximity | paper |" in card


def test_the_best_validated_weights_are_kept(run):
    validations = {r["step"]: r["validation"]["both"]["mrr"] for r in run.log() if "validation" in r}
    assert run.metrics["kept_step"] == max(validations, key=validations.get)
    assert validations[run.metrics["kept_step"]] > 0
    count = next(r for r in run.log() if "validation" in r)["validation"]["both"]["count"]
    assert count == 2 * 6  # validation_triples, both directions
    assert run.metrics["valid"]["both"]["count"] == 2 * len(run.kg.valid)


class ForgetsLater(ContrastiveLoss):
    """A loss that is turned round after the thirtieth step: what was learnt is unlearnt."""

    seen = 0

    def forward(self, *inputs):
        self.seen += 1
        value, metrics = super().forward(*inputs)
        return value * (1 if self.seen <= 30 else -1), metrics


def test_the_metrics_are_those_of_the_kept_weights_not_of_the_last(settings, tmp_path):
    changed = settings | {"training.validation_triples": 0}  # all, so that a validation could serve as the metrics
    kg = small_graph()
    run = train(replace(kg, valid=kg.train), out=tmp_path, overrides=changed, custom=Custom(loss=ForgetsLater))
    assert run.metrics["kept_step"] == 30
    assert run.metrics["valid"]["both"] == pytest.approx(run.evaluate("valid").metrics()["both"])


def test_a_callback_sees_every_step(settings, tmp_path):
    seen = []

    def note(step, model, batch, metrics):
        seen.append((step, batch.step, len(batch), type(model), {n: v.item() for n, v in metrics.items()}))

    short = settings | {"training.steps": 4, "training.validations": 0, "training.log_steps": 1}
    run = train(small_graph(), "satkgc", tmp_path, overrides=short, callbacks=[note])
    assert [one[:4] for one in seen] == [(step, step - 1, 32, TextModel) for step in (1, 2, 3, 4)]
    for (*_, metrics), record in zip(seen, run.log(), strict=True):
        assert metrics == {"loss": record["loss"], "gradient_norm": record["gradient_norm"], **record["metrics"]}


def test_a_typed_config_trains_as_the_overrides_do(settings, run, tmp_path):
    config = make_config("satkgc", triples=len(run.kg.train), overrides=settings)
    assert run.config == config
    short = {"training.steps": 2, "training.validations": 0}
    one = train(small_graph(), out=tmp_path / "one", config=config, overrides=short)
    two = train(small_graph(), "satkgc", tmp_path / "two", overrides=settings | short)
    assert one.config == two.config
    assert [r["loss"] for r in one.log()] == [r["loss"] for r in two.log()]
    with pytest.raises(SatkgcError, match="a recipe and a config at once; give one of them"):
        train(small_graph(), "satkgc", tmp_path / "three", config=Config())
    changed = one.config.replace(training=one.config.training.replace(seed=1))
    with pytest.raises(SatkgcError, match=r"training\.seed was 0 when this run was started, and is 1 now"):
        train(small_graph(), out=tmp_path / "one", config=changed, resume=True)


def test_a_finished_run_is_not_trained_again(run, capsys):
    before = (run.folder / "log.jsonl").read_bytes()
    assert train_or_stop(run.kg, out=run.folder, resume=True)[1] is None
    assert "is finished" in capsys.readouterr().err
    assert (run.folder / "log.jsonl").read_bytes() == before


def test_what_resuming_refuses(run):
    kg = run.kg
    with pytest.raises(SatkgcError, match="there is a run here already"):
        train(kg, out=run.folder)
    with pytest.raises(SatkgcError, match="started with recipe satkgc, not simkgc"):
        train(kg, "simkgc", run.folder, resume=True)
    with pytest.raises(SatkgcError, match=r"model.loss.margin was 0.02 when this run was started, and is 0.5 now"):
        train(kg, out=run.folder, resume=True, overrides={"model.loss.margin": 0.5})
    other = replace(kg, train=np.ascontiguousarray(kg.train[::-1]))
    with pytest.raises(SatkgcError, match="another graph"):
        train(other, out=run.folder, resume=True)
    worded = Vocabulary.build("entity", kg.entities.ids, kg.entities.names, pa.array(["better"] * kg.num_entities))
    with pytest.raises(SatkgcError, match="or with other texts; choose another --out, or out="):
        train(replace(kg, entities=worded), out=run.folder, resume=True)


def test_a_start_that_fails_leaves_nothing_behind(settings, tmp_path):
    out = tmp_path / "runs" / "first"
    for wrong in ({"sampling.batch_size": 1024}, {"model.encoder.backbone": str(tmp_path / "no such")}):
        with pytest.raises(SatkgcError):
            train(small_graph(), out=out, overrides=settings | wrong)
        assert not out.exists()
    # One that was killed before the first step may be started anew, with other settings too.
    RunFolder.create(out, make_config("satkgc"), small_graph(), "small")
    assert train(small_graph(), out=out, overrides=settings | {"training.steps": 1}).finished


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_something_else_in_it_is_left_alone(settings, tmp_path, resume):
    (tmp_path / "README.md").write_text("mine")
    small_graph().save(tmp_path / "project" / "graph")
    for folder in (tmp_path, tmp_path / "project"):
        before = sorted(folder.rglob("*"))
        with pytest.raises(
            SatkgcError, match=r"this folder holds no run, but a (README\.md|graph); choose another --out"
        ):
            train(small_graph(seed=1), out=folder, overrides=settings, resume=resume)
        assert sorted(folder.rglob("*")) == before


def test_files_of_other_names_may_lie_in_a_run_folder(settings, tmp_path):
    (tmp_path / "train.txt").write_text("where the output goes")
    run = train(small_graph(), out=tmp_path, overrides=settings | {"training.steps": 1})
    assert run.finished
    assert (tmp_path / "train.txt").read_text() == "where the output goes"
    known = WRITTEN | {"config.json", ".lock", "train.txt"}
    assert {path.name for path in tmp_path.iterdir()} <= known  # or something could be written over


def test_the_folder_of_a_graph_is_no_run_folder(settings, tmp_path):
    graph = small_graph().save(tmp_path / "graph")
    before = sorted(path.name for path in (tmp_path / "graph").iterdir())
    for resume in (False, True):
        with pytest.raises(SatkgcError, match="this folder holds a graph; choose another --out"):
            train(graph, out=tmp_path / "graph", overrides=settings, resume=resume)
    assert sorted(path.name for path in (tmp_path / "graph").iterdir()) == before


def test_what_a_start_left_that_was_killed_is_written_over(settings, tmp_path):
    small_graph(seed=1).save(tmp_path / "graph")
    (tmp_path / ".graph.partial-12").mkdir()
    (tmp_path / ".lock").touch()
    assert train(small_graph(), out=tmp_path, overrides=settings | {"training.steps": 1}).finished


def test_only_one_process_trains_a_run(settings, tmp_path):
    script = "import sys, time; from pathlib import Path; from satkgc.training.run_folder import exclusive\n"
    script += "with exclusive(Path(sys.argv[1])): print('here', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "here\n"
            with pytest.raises(SatkgcError, match="another process is at work on this run"):
                train(small_graph(), out=tmp_path, overrides=settings)
        finally:
            other.kill()  # the lock goes with it
    assert train(small_graph(), out=tmp_path, overrides=settings | {"training.steps": 1}).finished


def test_a_run_that_another_process_began_meanwhile_is_not_overwritten(settings, run, tmp_path, monkeypatch):
    def join(device):  # the other one comes, trains and goes between our first look and our lock
        shutil.copytree(run.folder, tmp_path / "run")
        return Processes.join(device)

    monkeypatch.setattr(trainer, "Processes", SimpleNamespace(join=join))
    with pytest.raises(SatkgcError, match="there is a run here already"):
        train(small_graph(), out=tmp_path / "run", overrides=settings)
    assert RunFolder.load(tmp_path / "run").finished


@pytest.mark.parametrize("place", [1, 2, 3])  # the first validation, the last, all triples at the end
def test_validation_that_is_interrupted_is_made_up_for(settings, run, tmp_path, place, monkeypatch):
    calls = []

    def measure(*args, **options):
        calls.append(args)
        if len(calls) == place:
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("not reached")
        return evaluate(*args, **options)

    monkeypatch.setattr("satkgc.training.validation.evaluate", measure)
    stopped, why = train_or_stop(small_graph(), "satkgc", tmp_path, overrides=settings)
    assert why == "SIGTERM"
    assert not stopped.finished
    assert max((tmp_path / "checkpoints").glob("step-*")).name == ("step-00000030" if place == 1 else "step-00000060")
    resumed = train(small_graph(), out=tmp_path, overrides=settings, resume=True)
    assert resumed.metrics["kept_step"] == run.metrics["kept_step"]
    assert resumed.metrics["valid"]["both"] == run.metrics["valid"]["both"]
    validations = [[record for record in one.log() if "validation" in record] for one in (run, resumed)]
    assert validations[0] == validations[1]
    for name in ("query", "entity"):
        weights = [load_file(one.folder / "model" / name / "model.safetensors") for one in (run, resumed)]
        assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())


@pytest.mark.parametrize("benchmark", [None, "WN18RR"])
def test_a_recipe_that_was_edited_is_not_resumed_as_if_it_were_the_old_one(settings, tmp_path, benchmark, capsys):
    recipe = tmp_path / "mine.toml"
    recipe.write_text('extends = "satkgc"\n[model.loss]\nmargin = 0.05\nlogit_adjustment = 1.0\n')
    limited = settings | {"training.max_minutes": 1e-9}
    out = tmp_path / "run"
    graph = replace(small_graph(), benchmark=benchmark)
    assert not train(graph, recipe, out, overrides=limited).finished
    applied = benchmark or "small graphs"
    assert f"the settings for {applied} where it says nothing itself; run folder" in capsys.readouterr().err
    assert not train(graph, recipe, out, overrides=limited, resume=True).finished
    recipe.write_text('extends = "satkgc"\n[model.loss]\nmargin = 0.3\nlogit_adjustment = 1.0\n')
    with pytest.raises(SatkgcError, match=r"model.loss.margin was 0.05 when this run was started, and is 0.3 now"):
        train(graph, recipe, out, overrides=limited, resume=True)


def test_a_plain_run_is_resumed_without_what_its_recipe_says_for_small_graphs(tmp_path):
    recipe, out = tmp_path / "mine.toml", tmp_path / "run"
    recipe.write_text('extends = "complex"\n[training]\nclip = 2\n[graph.small.training]\nclip = 3\n')
    limited = {"training.steps": 60, "sampling.batch_size": 8, "training.max_minutes": 1e-9}
    begun = train(small_graph(), recipe, out, overrides=limited, graph_settings=False)
    assert (begun.finished, begun.config.training.clip) == (False, 2.0)
    assert train(small_graph(), recipe, out, resume=True).config.training.clip == 2.0


def test_resuming_may_change_how_but_not_what(run, capsys):
    train(run.kg, out=run.folder, resume=True, overrides={"training.workers": 2})
    assert "training.workers: 2 instead of 1" in capsys.readouterr().err
    assert RunFolder.load(run.folder).config.training.workers == 2


def test_a_loss_that_is_no_number_stops_the_run_by_naming_the_step(settings, tmp_path):
    overrides = settings | {"model.loss.temperature": 1e-38, "training.log_steps": 4}
    with pytest.raises(SatkgcError, match=r"the loss of step 1 is .*lower training.learning_rate"):
        train(small_graph(), out=tmp_path / "run", overrides=overrides)
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_and_the_last_good_checkpoint_is_kept(settings, tmp_path, monkeypatch):
    backward = TextModel.backward

    def spoiled(model, batch, context):
        metrics = backward(model, batch, context)
        return metrics | {"loss": metrics["loss"] * (np.nan if batch.step == 8 else 1)}

    monkeypatch.setattr(TextModel, "backward", spoiled)  # no real batch can be relied on to fail just then
    overrides = settings | {"training.validations": 6, "training.steps": 12, "training.checkpoint_minutes": 1e-9}
    with pytest.raises(SatkgcError, match="the loss of step 9 is nan"):
        train(small_graph(), out=tmp_path / "run", overrides=overrides)
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.latest(pytest.fail).name == "step-00000008"
    monkeypatch.undo()
    assert train(small_graph(), out=tmp_path / "run", resume=True).metrics["steps"] == 12


def test_a_disk_that_is_full_at_the_end_loses_nothing(settings, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trainer, "keep_model", full)
    short = settings | {"training.steps": 2, "training.validations": 0}
    with pytest.raises(SatkgcError, match=r"the disk is full; the checkpoints are intact.*--resume"):
        train(small_graph(), out=tmp_path / "run", overrides=short)
    monkeypatch.undo()
    assert train(small_graph(), out=tmp_path / "run", resume=True).metrics["kept_step"] == 2


def test_markov_chains_read_the_model_and_can_be_resumed(settings, tmp_path):
    shared = settings | {"training.steps": 7, "sampling.mcmc.refresh": 3, "sampling.mcmc.path": 8}
    whole = train(small_graph(), "mcmc", tmp_path / "whole", overrides=shared)
    limited = shared | {"training.max_minutes": 1e-9}
    run, stopped = train_or_stop(small_graph(), "mcmc", tmp_path / "parts", overrides=limited)
    assert stopped == "training.max_minutes"
    (saved,) = (run.folder / "checkpoints").glob("step-*")
    assert saved.name == "step-00000003"  # only where the sampler looks at the model can it be saved
    unlimited = {"training.max_minutes": None}
    parts = train(small_graph(), out=tmp_path / "parts", resume=True, overrides=unlimited)
    left, right = (dict(r.model().named_parameters()) for r in (whole, parts))
    assert all(torch.equal(value, right[name]) for name, value in left.items())


def test_lost_best_weights_are_told_and_the_last_ones_kept(settings, run, tmp_path, capsys, monkeypatch):
    values = iter([0.9, 0.1, 0.1])  # the first step's are the best
    monkeypatch.setattr(
        Validation, "__call__", lambda *_: {"both": dict.fromkeys(run.metrics["valid"]["both"], next(values))}
    )
    shared = settings | {"training.steps": 2, "training.validations": 2, "training.keep_checkpoints": True}
    graph, folder = small_graph(), tmp_path / "run"
    train(graph, out=folder, overrides=shared)
    (best,) = (folder / "checkpoints").glob("best-*")
    (best / "weights.safetensors").write_bytes(b"")
    (folder / "metrics.json").unlink()  # as if it had been killed just before the end
    run = train(graph, out=folder, resume=True)
    assert "the best weights are lost, the last ones are kept instead" in capsys.readouterr().err
    assert run.metrics["kept_step"] == 2
    last = load_file(folder / "checkpoints" / "step-00000002" / "weights.safetensors")
    for name, value in run.model().named_parameters():
        assert torch.equal(value, last[name])
    assert "beta" in load_file(folder / "model" / "loss.safetensors")


def test_settings_for_a_benchmark_are_laid_over_the_recipe_and_said(settings, tmp_path, capsys):
    wordnet = replace(small_graph(), benchmark="WN18RR")
    short = settings | {"training.steps": 1, "training.validations": 0}
    for plain in (False, True):
        run = train(wordnet, "simkgc", tmp_path / str(plain), overrides=short, graph_settings=not plain)
        assert run.config.training.epochs == (10 if plain else 50)
        assert ("the settings for WN18RR laid over it" in capsys.readouterr().err) is not plain
    assert run.config.applied is None


def test_a_graph_that_only_bears_the_name_of_a_benchmark_has_no_such_settings(settings, tmp_path):
    named = replace(small_graph(), name="WN18RR")
    short = settings | {"training.steps": 1, "training.validations": 0}
    assert train(named, "simkgc", tmp_path / "run", overrides=short).config.applied == "small"


def test_a_graph_without_validation_triples_keeps_the_last_weights(settings, tmp_path):
    graph = replace(small_graph(), valid=small_graph().valid[:0])
    run = train(graph, out=tmp_path / "run", overrides=settings | {"training.steps": 3})
    assert run.metrics["kept_step"] == 3
    assert "valid" not in run.metrics
    assert not list((run.folder / "checkpoints").glob("best-*"))
