"""A run that begins from the weights of another one, on a graph that has grown."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
import torch

from fused_runs import overrides
from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, Decision, Decisions, KnowledgeGraph, Vocabulary, read_decisions
from satkgc.models import Questions
from satkgc.training import Config, RunFolder, TrainingConfig, make_config, train_or_stop
from satkgc.training.run_folder import model_sum
from satkgc.training.start import config_from, overridden
from satkgc.training.state import schedule
from tasks import small_graph

KG = small_graph()
SMALL = {"training.device": "cpu", "sampling.batch_size": 16, "training.steps": 30, "training.validations": 1}
EMBEDDING = SMALL | {"model.dim": 8}


def grown(kg=KG):
    """The graph with a new entity and a new relation, each before all others: every number has changed."""

    def with_first(vocabulary, id):
        columns = vocabulary.ids, vocabulary.names, vocabulary.descriptions
        return Vocabulary.build(vocabulary.kind, *(pa.array([id, *column.to_pylist()]) for column in columns))

    splits = [part + 1 for part in (kg.train, kg.valid, kg.test)]
    splits[0] = np.concatenate([splits[0], [[0, 0, 5], [0, 1, 3]]])
    return KnowledgeGraph.from_arrays("grown", with_first(kg.entities, "x"), with_first(kg.relations, "s"), *splits)


def train(kg, out, *args, **options):
    return train_or_stop(kg, *args, out=out, **options)[0]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return train(KG, tmp_path_factory.mktemp("start") / "run", "complex", overrides=EMBEDDING)


@pytest.fixture(scope="module")
def fused(tiny_backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("start") / "fused"
    return train(KG, folder, "fused", overrides=overrides(tiny_backbone))


def first_weights(run):
    """The weights after a step that moves next to nothing."""
    return dict(run.model("cpu").named_parameters())


LOGGED = {"training.log_steps": 1}
SLOW = {"training.steps": 60, "training.learning_rate": 0.1, "training.warmup_steps": 0}
STILL = {"training.learning_rate": 1e-12, "training.steps": 1}


def test_rows_are_matched_by_id_and_others_are_fresh(source, tmp_path):
    run = train(grown(), tmp_path / "on", overrides=STILL, from_run=source)
    old, new, size = first_weights(source), first_weights(run), KG.num_relations
    torch.testing.assert_close(new["entities.weight"][1:], old["entities.weight"])
    torch.testing.assert_close(new["relations.weight"][1 : 1 + size], old["relations.weight"][:size])
    torch.testing.assert_close(new["relations.weight"][2 + size :], old["relations.weight"][size:])
    assert new["entities.weight"][0].abs().max() < 0.1 * old["entities.weight"].abs().max(), "as it was drawn"
    assert run.about["from"]["model"] == model_sum(source)


def test_every_expert_of_a_fused_run_begins_from_its_counterpart(fused, tmp_path):
    still = {f"experts.{name}.{key}": value for name in fused.config.experts for key, value in STILL.items()}
    run = train(grown(), tmp_path / "on", overrides=still, from_run=fused)
    size, dim = KG.num_relations, 4
    for name, expert in run.experts.items():
        assert expert.about["from"]["model"] == model_sum(fused.experts[name])
        old = dict(fused.experts[name].model("cpu").named_parameters())
        for key, new in expert.model("cpu").named_parameters():
            if new.shape == old[key].shape:
                torch.testing.assert_close(new, old[key], msg=f"{name} {key}")
    paths, before = (dict(r.experts["paths"].model("cpu").named_parameters()) for r in (run, fused))
    key = "layers.0.weights.weight"
    moved = paths[key].view(2, 1 + size, dim, dim)[:, 1:]
    torch.testing.assert_close(moved, before[key].view(2, size, dim, dim))


def test_the_frozen_heads_too(tiny_backbone, tmp_path):
    settings = SMALL | {"model.encoder.backbone": str(tiny_backbone), "model.hidden": 16, "model.text.max_tokens": 30}
    old = train(KG, tmp_path / "old", "frozen", overrides=settings)
    new = train(grown(), tmp_path / "new", overrides=STILL, from_run=old)
    assert len(new.model("cpu").vectors) == KG.num_entities + 1
    before, after = first_weights(old), first_weights(new)
    torch.testing.assert_close(after["change.weight"], before["change.weight"])
    torch.testing.assert_close(after["relations.weight"][1 : 1 + KG.num_relations], before["relations.weight"][:3])


def test_a_third_as_long_unless_said_otherwise(source, fused, tmp_path):
    third = train(KG, tmp_path / "third", from_run=source)
    assert third.metrics["steps"] == 10
    assert source.config.training.warmup_steps == 0
    assert third.config.training.learning_rate == pytest.approx(3 * source.config.training.learning_rate)
    assert schedule(0, 100, third.config.training.warmup_steps) == 0.1, "it is warmed up, over a tenth of the run"
    said = config_from(source, {"training.warmup_steps": 0, "training.learning_rate": 0.02}).training
    assert (said.warmup_steps, said.learning_rate) == (0, 0.02), "unless said otherwise"
    frozen = config_from(fused, {}).experts["text"].training
    assert frozen.learning_rate == fused.config.experts["text"].training.learning_rate, "AdamW's stays"
    long = train(KG, tmp_path / "epochs", from_run=source, overrides={"training.epochs": 1.0})
    assert long.metrics["steps"] == long.config.sampling.steps_per_epoch(len(KG.train)) != 10
    assert long.config.recipe == "complex"
    assert long.config.model == source.config.model


@pytest.mark.parametrize(
    ("recipe", "settings", "said"),
    [
        ("complex", {"model.dim": 9}, "model.dim is 8, not 9"),
        ("distmult", {"model.dim": 8}, "model.interaction is complex, not distmult"),
        ("paths", {"model.dim": 4}, "model.kind is embedding, not paths"),
        ("quick", {}, "its experts are none, not text, complex"),
        (None, {"model.dim": 9}, "model.dim is 8, not 9"),
    ],
)
def test_another_kind_or_shape_is_refused_by_the_setting(source, tmp_path, recipe, settings, said):
    if recipe not in (None, "quick"):
        settings = SMALL | settings
    with pytest.raises(SatkgcError, match=said):
        train(KG, tmp_path / "on", recipe, overrides=settings, from_run=source)
    assert not (tmp_path / "on").exists()


def test_an_unfinished_run_is_refused(source, tmp_path):
    copy = shutil.copytree(source.folder, tmp_path / "copy")
    (copy / "metrics.json").unlink()
    with pytest.raises(SatkgcError, match="not finished"):
        train(KG, tmp_path / "on", from_run=copy)


def test_a_resumed_run_remembers_where_it_began(source, tmp_path):
    begin = shutil.copytree(source.folder, tmp_path / "begin")
    whole = train(grown(), tmp_path / "whole", from_run=begin)

    def stop(step, *_):
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_or_stop(grown(), out=tmp_path / "on", from_run=begin, overrides=LOGGED, callbacks=[stop])
    on = RunFolder.load(tmp_path / "on")
    assert on.began
    assert not list((on.folder / "checkpoints").glob("step-*")), "it has to read the weights again"
    other = train(KG, tmp_path / "other", "complex", overrides=EMBEDDING | {"training.seed": 1, "training.steps": 2})
    with pytest.raises(SatkgcError, match="leave --from out"):
        train(grown(), on.folder, resume=True, from_run=other)
    with pytest.raises(SatkgcError, match="began anew"):
        train(KG, other.folder, resume=True, from_run=begin)
    resumed = train(grown(), on.folder, resume=True)
    for name, value in first_weights(resumed).items():
        assert torch.equal(value, first_weights(whole)[name])
    del resumed
    shutil.rmtree(begin)
    (tmp_path / "whole" / "metrics.json").unlink()
    shutil.rmtree(tmp_path / "whole" / "checkpoints", ignore_errors=True)
    with pytest.raises(SatkgcError, match="gone or another"):
        train(grown(), tmp_path / "whole", resume=True)


def reject(run, *triples, verdict="reject"):
    for h, r, t in triples:
        Decisions(run / DECISIONS).add(Decision(KG.entities.id(h), KG.relations.id(r), KG.entities.id(t), verdict))


def shares(run, triples):
    """What the model gives each tail among all entities that the graph does not have there."""
    heads, relations, tails = np.array(triples, np.int32).T
    scores = run.model("cpu").score(Questions(heads, relations)).clone()
    for row, (h, r, _) in zip(scores, triples, strict=True):
        row[torch.from_numpy(KG.known_all.tails(h, r).copy()).long()] = -torch.inf
    return scores.softmax(1)[np.arange(len(tails)), tails].numpy()


WRONG = [(h, 0, t) for h in range(6) for t in range(KG.num_entities) if t not in KG.known_all.tails(h, 0)]


def test_what_was_rejected_counts_as_a_negative_and_goes_along(source, tmp_path, capsys):
    wrong = [WRONG[i] for i in np.argsort(shares(source, WRONG))[-4:]]  # which it is surest of
    begin = shutil.copytree(source.folder, tmp_path / "begin")
    control = train(KG, tmp_path / "control", from_run=begin, overrides=SLOW)
    reject(begin, *wrong, tuple(KG.train[0].tolist()), tuple(KG.valid[0].tolist()))
    reject(begin, (0, 1, 2), verdict="accept")
    reject(begin, wrong[0], verdict="open")
    capsys.readouterr()
    run = train(KG, tmp_path / "on", from_run=begin, overrides=SLOW)
    assert "3 rejected statements count as negatives" in capsys.readouterr().err, "not what the graph has"
    assert (shares(run, wrong[1:]) < 0.7 * shares(control, wrong[1:])).all()
    rejected = {d.statement for d in read_decisions(begin).values() if d.verdict == "reject"}
    assert read_decisions(run.folder).keys() == rejected
    assert len(rejected) == 5
    assert not (control.folder / DECISIONS).exists()


def test_experts_learn_what_was_rejected_of_the_whole_where_they_can(fused, tmp_path, capsys):
    begin = shutil.copytree(fused.folder, tmp_path / "begin")
    reject(begin, *WRONG[:2])
    run = train(KG, tmp_path / "on", from_run=begin)
    logs = {name: [record.get("metrics", {}) for record in expert.log()] for name, expert in run.experts.items()}
    assert {n: any("rejected" in m for m in log) for n, log in logs.items()} == {
        "text": False,
        "complex": True,
        "paths": True,
    }
    assert "2 rejected statements not used: a text model compares answers within a batch" in capsys.readouterr().err


def test_overrides_of_a_typed_config_reach_experts_and_stand_over_its_steps():
    steps = overridden(Config(training=TrainingConfig(steps=20)), {"training.epochs": 2})
    assert (steps.training.epochs, steps.training.steps) == (2.0, None)
    quick = overridden(make_config("quick"), {"training.seed": 3, "training.epochs": 2})
    assert {(part.training.seed, part.training.epochs) for part in quick.experts.values()} == {(3, 2.0)}
    with pytest.raises(SatkgcError, match=r"training\.clip is a setting of the experts of a fused run"):
        overridden(make_config("quick"), {"training.clip": 3})
