"""A run folder opens in one call, that of the version before too; what is none is told."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
import torch
from filelock import FileLock

from satkgc.errors import SatkgcError
from satkgc.models import EncoderConfig, Questions, TextModel, TextModelConfig
from satkgc.settings import flatten
from satkgc.training import Config, RunFolder, make_config, run_folder, train_or_stop
from satkgc.training.run_folder import exclusive
from tasks import small_graph

# What satkgc 0.1 wrote for recipe neighbours on WN18RR, but for the backbone, and with a setting of each kind changed.
FORMAT_1 = {
    "recipe": "neighbours",
    "applied": "WN18RR",
    "sampling": {
        "sampler": "random", "batch_size": 1024, "subgraph_triples": 10000, "walk_steps": 0, "restart": 0.04,
        "entity_disjoint": False, "pick": "random", "random_share": 0.0, "epoch_rule": "authors", "distances": "none",
        "mcmc": {"path": 64, "k": 15, "alpha": 0.75, "burn_in": 100, "refresh": 100},
    },
    "text": {
        "entity_format": "colon", "max_tokens": 60, "description_words": 20, "neighbours": 8,
        "neighbour_relations": True, "bare_share": 0.25, "short_words": 1000, "hide": "edge", "relation_order": "given",
    },
    "encoder": {
        "backbone": "minilm", "revision": None, "tied": False, "pooling": "cls", "dropout": None, "forward": "packed",
        "attention": "auto", "compile": "auto",
    },
    "objective": {
        "temperature": 0.06, "train_temperature": True, "margin": 0.02, "two_sided": True, "self_negatives": True,
        "mask": "known", "proximity": "off", "proximity_rule": "product", "beta": 0.0001, "train_beta": True,
        "frequency": True, "popularity": 0.5, "reduction": "mean",
    },
    "training": {
        "seed": 3, "epochs": 20.0, "steps": None, "learning_rate": 5e-05, "objective_learning_rate": None,
        "warmup_steps": 400, "weight_decay": 0.0001, "clip": 10.0, "precision": "auto", "chunk_tokens": 4096,
        "average": 0.0, "validations": 10, "validation_triples": 2000, "select": "best", "checkpoint_minutes": 10.0,
        "max_minutes": None, "device": "auto", "workers": 1, "log_steps": 10, "tracker": "none",
    },
    "evaluation": {"candidates": "all", "seed": 5},
}  # fmt: skip


def write_format_1(folder, tree):
    about = {"format": 1, "version": "0.1.0", "commit": None, "source": "small", "config": tree}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(about))


def test_the_settings_of_format_1_have_the_names_of_now(tmp_path):
    write_format_1(tmp_path, FORMAT_1)
    config = RunFolder.load(tmp_path).config
    changed = {
        "model.text.neighbours": 0,
        "model.text.neighbour_dropout": 0.25,
        "model.text.max_tokens": 60,
        "model.encoder.pooling": "cls",
        "model.encoder.chunk_tokens": 4096,
        "model.loss.temperature": 0.06,
        "sampling.mcmc.path": 64,
        "training.seed": 3,
        "evaluation.seed": 5,
    }
    assert config == make_config("neighbours", benchmark="WN18RR", overrides=changed)
    assert config.model.text.neighbours_per_relation == 8
    assert (config.training.tracker, config.applied) == (None, "WN18RR")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"proximity": "all", "proximity_rule": "product"}, "paper"),
        ({"proximity": "negatives", "proximity_rule": "authors"}, "authors"),
        ({"proximity": "off"}, "off"),
    ],
)
def test_proximity_of_format_1(tmp_path, old, new):
    write_format_1(tmp_path, {**FORMAT_1, "objective": {**FORMAT_1["objective"], **old}, "applied": "none"})
    config = RunFolder.load(tmp_path).config
    assert config.model.loss.proximity == new
    assert config.applied is None
    bare = {**FORMAT_1, "text": {**FORMAT_1["text"], "neighbour_relations": False}}
    write_format_1(tmp_path, bare)
    text = RunFolder.load(tmp_path).config.model.text
    assert (text.neighbours, text.neighbours_per_relation) == (8, 0)


def test_a_model_of_format_1_opens(tiny_backbone, tmp_path):
    kg = small_graph()
    encoder = EncoderConfig(backbone=str(tiny_backbone), pooling="cls", chunk_tokens=4096)
    RunFolder.create(tmp_path, Config(), kg, "small")
    tree = {**FORMAT_1, "encoder": {**FORMAT_1["encoder"], "backbone": str(tiny_backbone)}}
    write_format_1(tmp_path, tree)
    run = RunFolder.load(tmp_path)
    assert run.config.model.encoder == encoder
    model = TextModel(kg, run.config.model)
    with torch.no_grad():
        model.towers.entity.model.embeddings.word_embeddings.weight.mul_(-1)
    model.save(run.folder / "model")
    (run.folder / "model" / "loss.safetensors").rename(run.folder / "model" / "objective.safetensors")
    (run.folder / "model" / "towers.json").write_text("{}")  # settings, which are read from config.json now
    questions = Questions(kg.train[:5, 0], kg.train[:5, 1])
    assert torch.equal(RunFolder.load(run.folder).model("cpu").score(questions), model.eval().score(questions))


def test_a_run_of_format_1_that_is_not_finished_is_not_gone_on_with(tmp_path):
    kg = small_graph()
    RunFolder.create(tmp_path, Config(), kg, "small")
    write_format_1(tmp_path, FORMAT_1)
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n')
    message = r"this run was begun by satkgc 0\.1\.0; finish it with that version, or choose another --out"
    with pytest.raises(SatkgcError, match=message):
        train_or_stop(kg, out=tmp_path, resume=True)
    (tmp_path / "metrics.json").write_text('{"finished": true}')
    train_or_stop(kg, out=tmp_path, resume=True, overrides={"training.workers": 2})
    config = RunFolder.load(tmp_path).config  # written anew, in the format of now
    assert json.loads((tmp_path / "config.json").read_text())["format"] == 2
    assert (config.training.workers, config.model.text.neighbours_per_relation) == (2, 8)


def test_a_run_of_another_version_is_refused(tmp_path):
    RunFolder.create(tmp_path, Config(), small_graph(), "small")
    about = json.loads((tmp_path / "config.json").read_text())
    assert about.pop("sha256")
    assert about["format"] == 2
    assert flatten(about["config"]) == flatten(Config().model_dump())
    (tmp_path / "config.json").write_text(json.dumps(about | {"format": 0, "version": "0.0.1"}))
    with pytest.raises(SatkgcError, match=r"format 0, written by satkgc 0.0.1; this version reads 2"):
        RunFolder.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(SatkgcError, match=r"not the config.json"):
        RunFolder.load(tmp_path)
    with pytest.raises(SatkgcError, match="no run here"):
        RunFolder.load(tmp_path / "nowhere")


@pytest.mark.parametrize("number", [1, 2])
def test_a_foreign_config_is_told(tmp_path, number):
    (tmp_path / "config.json").write_text(f'{{"format": {number}}}')
    with pytest.raises(SatkgcError, match=r"config\.json: not the config\.json of a run"):
        RunFolder.load(tmp_path)


def test_settings_that_were_edited_by_hand_are_checked_with_the_file(tmp_path):
    run = RunFolder.create(tmp_path, Config(), small_graph(), "small")
    tree = Config().model_dump()
    tree["sampling"]["batch_size"] = 3
    about = json.loads((run.folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(about | {"config": tree}))
    with pytest.raises(SatkgcError, match=r'altered; .* if you changed it on purpose, take the line "sha256" out'):
        RunFolder.load(tmp_path)
    del about["sha256"]
    (tmp_path / "config.json").write_text(json.dumps(about | {"config": tree}))
    with pytest.raises(SatkgcError, match=r"config\.json: sampling\.batch_size is 3; set an even number"):
        RunFolder.load(tmp_path)


def test_a_run_has_no_model_before_it_was_trained(tmp_path):
    run = RunFolder.create(tmp_path, Config(), small_graph(), "small")
    with pytest.raises(SatkgcError, match="this run has no model yet; finish it with --resume"):
        run.model()
    assert not run.began
    assert not run.finished
    assert run.log() == []
    assert np.array_equal(RunFolder.load(tmp_path).kg.train, small_graph().train)
    assert repr(run) == f"RunFolder({str(tmp_path)!r}: recipe satkgc, not finished)"


def test_the_benchmark_of_a_graph_is_known_to_its_run(tmp_path):
    kg = small_graph()
    object.__setattr__(kg, "benchmark", "WN18RR")
    RunFolder.create(tmp_path, Config(model=TextModelConfig()), kg, "small")
    assert RunFolder.load(tmp_path).kg.benchmark == "WN18RR"


def test_where_there_are_no_locks_a_run_is_trained_without(tmp_path, monkeypatch):
    def none(*_args, **_options):
        raise NotImplementedError("as filelock before 4 says of such a file system")

    monkeypatch.setattr(FileLock, "acquire", none)
    with exclusive(tmp_path / "run"):
        assert (tmp_path / "run").is_dir()


def test_the_commit_is_that_of_the_repository_that_has_the_program(tmp_path, monkeypatch):
    def git(*command):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *command], cwd=tmp_path, check=True)

    monkeypatch.delenv("SATKGC_COMMIT", raising=False)
    monkeypatch.setattr(run_folder, "__file__", str(tmp_path / "lib" / "run.py"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "run.py").write_text("")
    (tmp_path / "notes").write_text("")
    git("init", "-q")
    git("add", "notes")
    git("commit", "-qm", "somebody's project, with a copy of the program in it")
    assert run_folder._commit() is None
    git("add", "lib")
    git("commit", "-qm", "the program itself")
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tmp_path, text=True).strip()
    assert run_folder._commit() == commit
    (tmp_path / "lib" / "run.py").write_text("changed")
    assert run_folder._commit() == f"{commit}-dirty"
