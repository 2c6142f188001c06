"""The part of each expert in an answer: against the definition, entity by entity."""

from __future__ import annotations

import shutil
from dataclasses import asdict

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from fused_runs import overrides
from little_world import little_world
from satkgc.cli import app
from satkgc.cli.complete import _expert
from satkgc.completion import Completer, ExpertShare, NewEntity, Question, Role, verify_folder
from satkgc.completion.prepare import prepare
from satkgc.errors import SatkgcError
from satkgc.export import export
from satkgc.manifest import write_manifest
from satkgc.models import FusedConfig, FusedModel, Mixture, PathConfig, PathModel, Questions, TextModel
from satkgc.serving.app import create_app
from satkgc.training import RunFolder, train_or_stop
from toy_models import PlainScores, WordVectors

KG = little_world()


class Few(PlainScores):
    """Has something to say of every second entity alone."""

    def knows_entities(self):
        return np.arange(self.kg.num_entities) % 2 == 0

    def knows_questions(self, questions):
        return questions.entities < self.kg.num_entities


@pytest.fixture(scope="module")
def completer(tmp_path_factory):
    experts = {"words": WordVectors(KG), "plain": PlainScores(KG, 0.05), "few": Few(KG, 0.1, dim=4)}
    weights = np.random.default_rng(2).random((8, 3))
    mixture = Mixture(tuple(experts), np.array([9.0, 1.0, 1.0]), weights.mean(0), weights)
    folder = tmp_path_factory.mktemp("experts")
    model = FusedModel(KG, FusedConfig(), experts, mixture=mixture)
    model.save(folder / "model")
    return Completer(prepare(folder, model), folder)


def literal(completer, entity, directed, answer):
    """Shares by the definition."""
    model, kg = completer._engine.model, completer.kg
    log_shares = model.log_shares(Questions(np.array([entity], np.int32), np.array([directed], np.int32)))[:, 0].numpy()
    scores = model.score(Questions(np.array([entity], np.int32), np.array([directed], np.int32)))[0].numpy()
    out = set(completer._engine.exclude((entity, directed)).tolist())
    rivals = sorted((e for e in range(90) if e not in out), key=lambda e: (-scores[e], e))[:50]
    weights = model.mixture.weights[directed]

    def part(n, e):
        if np.isinf(log_shares[n, e]):
            return None
        silent = np.isinf(log_shares[:, e])
        return (weights[n] + weights[silent].sum() / (~silent).sum()) * log_shares[n, e]

    lifts, ranks = [], []
    known = set(kg.known_all.answers(entity, directed).tolist())
    for n in range(3):
        parts = [p for e in rivals if e != answer and (p := part(n, e)) is not None]
        own = part(n, answer)
        lifts.append(None if own is None else own - sum(parts) / len(parts))
        ranks.append(1 + sum(log_shares[n, e] > log_shares[n, answer] for e in range(90) if e not in known))
    size = sum(abs(lift) for lift in lifts if lift is not None)
    return [(None, None) if lift is None else (lift / size, rank) for lift, rank in zip(lifts, ranks, strict=True)]


@pytest.mark.parametrize("directed", [0, 3, 6])
def test_shares_are_as_defined(completer, directed):
    silent = 0
    for entity in (2, 5, 44):
        parts = {"head": f"Q{entity}"} if directed < 4 else {"tail": f"Q{entity}"}
        relation = KG.relations.id(directed % 4)
        for answer in completer.ask([Question(**parts, relation=relation, k=8)])[0]:
            expected = literal(completer, entity, directed, int(answer.id[1:]))
            assert [expert.name for expert in answer.experts] == ["words", "plain", "few"]
            for expert, (share, rank) in zip(answer.experts, expected, strict=True):
                assert expert.rank == rank
                assert expert.share == (None if share is None else pytest.approx(share, abs=1e-4))
                silent += share is None
            assert sum(abs(expert.share or 0) for expert in answer.experts) == pytest.approx(1)
            ends = (f"Q{entity}", answer.id) if directed < 4 else (answer.id, f"Q{entity}")
            evidence = completer.evidence(ends[0], relation, ends[1], asked="tail" if directed < 4 else "head")
            for one, other in zip(evidence.experts, answer.experts, strict=True):
                assert (one.name, one.rank) == (other.name, other.rank)
                assert one.share == (None if other.share is None else pytest.approx(other.share, abs=1e-4))
            assert evidence.score == pytest.approx(answer.score, abs=1e-4)
    assert silent


def test_a_new_entity_is_left_to_who_reads(completer):
    new = NewEntity("somebody new", "of whom nothing is known")
    for answer in completer.tails(new, "near", k=3):
        words, *others = answer.experts
        assert abs(words.share) == pytest.approx(1)
        assert [expert.share for expert in others] == [None, None]
    as_answer = completer.evidence("Q4", "near", new)
    assert as_answer.experts[0].share is not None
    assert as_answer.experts[0].rank is None
    assert as_answer.experts[1].share is None
    assert completer.relations("Q4", new, k=2)[0].experts == ()


def test_questions_asked_again_are_not_scored_again(completer, monkeypatch):
    model = completer._engine.model
    completer.tails("Q9", "near")
    monkeypatch.setattr(model, "_log_shares", None)
    first = completer.tails("Q9", "near")
    assert first[0].experts
    monkeypatch.undo()
    before, even = model.mixture, Mixture.even(model.names, 4)
    model.mixture = even
    question = Questions(np.array([9], np.int32), np.array([3], np.int32))
    experts = {name: model.expert(name) for name in model.names}
    fresh = FusedModel(KG, FusedConfig(), experts, mixture=even).score(question)
    assert torch.equal(model.score(question), fresh), "nothing is remembered of other scales"
    model.mixture = before


@pytest.fixture(scope="module")
def run(tiny_backbone, tmp_path_factory):
    """A trained one, prepared."""
    trained, _ = train_or_stop(
        KG, "fused", tmp_path_factory.mktemp("fused") / "run", overrides=overrides(tiny_backbone)
    )
    Completer.load(trained, "cpu")
    return trained.folder


def test_a_share_that_rounds_to_nothing_has_no_sign():
    assert _expert(ExpertShare("complex", -0.004, 3000)) == "complex 0%"
    assert _expert(ExpertShare("complex", -0.006, 3000)) == "complex -1%"


def test_a_run_answers_with_probabilities_and_names_its_experts(run):
    completer = Completer.load(run, "cpu")
    answers = completer.tails("Q3", "near", k=4)
    assert all(0 <= answer.probability <= 1 for answer in answers)
    assert (run / "reliability.png").exists()
    evidence = completer.evidence("Q3", "near", answers[0].id)
    assert evidence.query_text.startswith("[CLS]")
    assert evidence.similar
    assert completer.suggest_relations("Q3")
    assert completer.reads_facts()
    asked = CliRunner().invoke(
        app, ["evidence", str(run), "--head", "Q3", "--relation", "near", "--tail", answers[0].id]
    )
    assert "what each expert adds to it" in asked.output
    for expert in evidence.experts:
        assert f"  {expert.name:<12} " in asked.output
    listed = asked.output.split("paths that the path model's answer rests on")[1].splitlines()[1:]
    for line, path in zip(listed, evidence.strong_paths, strict=False):
        assert line.startswith(f"  {path.weight:.2f}  {path.steps[0].source_name} ")
        assert line.endswith(f" {path.steps[-1].target_name}")
        assert all(step.relation_name in line for step in path.steps)
    table = CliRunner().invoke(app, ["complete", str(run), "--head", "Q3", "--relation", "near"]).output
    assert f"text {answers[0].experts[0].share:.0%}" in table
    listed = CliRunner().invoke(app, ["complete", str(run), "--head", "Q3", "--relation", "near", "--json"]).output
    assert '"experts"' in listed
    proposed = run.parent / "new.csv"
    assert completer.propose(proposed, n=20) == 20


def test_the_service_says_who_said_it(run):
    from fastapi.testclient import TestClient

    with TestClient(create_app(lambda: Completer.load(run, "cpu")), base_url="http://localhost") as client:
        while client.get("/health").json()["status"] == "loading":
            pass
        answers = client.post("/api/v1/complete", json={"head": "Q3", "relation": "near", "k": 2}).json()["answers"]
        assert [expert["name"] for expert in answers[0]["experts"]] == ["text", "complex", "paths"]
        triple = {"head": "Q3", "relation": "near", "tail": answers[0]["id"]}
        evidence = client.post("/api/v1/evidence", json=triple).json()
        expected = Completer.load(run, "cpu").evidence("Q3", "near", answers[0]["id"])
        assert evidence["experts"] == [pytest.approx(asdict(expert), abs=1e-5) for expert in expected.experts]
        assert expected.strong_paths
        for path, own in zip(evidence["strong_paths"], expected.strong_paths, strict=True):
            assert path == {
                "steps": [asdict(step) for step in own.steps],
                "weight": pytest.approx(own.weight, rel=1e-3),
            }


def test_a_fused_run_is_verified_with_its_experts_and_exports_its_text_model(run, tmp_path):
    assert verify_folder(run).altered == []
    export(run, "npy", tmp_path / "vectors", device="cpu")
    exported = np.load(tmp_path / "vectors" / "entities.npy")
    expert, vectors = RunFolder.load(run).model("cpu").entity_vectors()
    np.testing.assert_allclose(exported, vectors.numpy(), atol=1e-5)
    assert isinstance(expert, TextModel)
    shutil.copytree(run, tmp_path / "run")
    file = next((tmp_path / "run" / "experts" / "complex" / "model").glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    assert verify_folder(tmp_path / "run").altered == [f"experts/complex/model/{file.name}"]
    with pytest.raises(SatkgcError, match=file.name):
        Completer.load(tmp_path / "run", "cpu")
    write_manifest(file.parent)  # whole, but not the one that the weights were fitted to
    with pytest.raises(SatkgcError, match="fitted to another model than complex is now"):
        Completer.load(tmp_path / "run", "cpu")


def test_an_added_entity_is_an_answer_by_who_has_something_to_say(completer, tmp_path):
    """Of words alone the one who reads; its score is that of the same words given as a candidate."""
    experts = {"words": WordVectors(KG), "paths": PathModel(KG, PathConfig(dim=4, layers=2)).eval()}
    model = FusedModel(KG, FusedConfig(), experts)
    model.save(tmp_path / "model")
    completer = Completer(prepare(tmp_path, model), tmp_path)
    before = completer.tails("Q4", "near", k=100)
    plain = NewEntity("somebody new", "near Q4, near it all")
    linked = NewEntity("another", "of whom a fact is known", facts=[Role("near", "head", "Q7")])
    scores = {new.name: completer.evidence("Q4", "near", new).score for new in (plain, linked)}
    ids = {new.name: completer.add(new) for new in (plain, linked)}
    answers = {answer.id: answer for answer in completer.tails("Q4", "near", k=200)}
    assert len(answers) == len(before) + 2
    assert list(answers) == sorted(answers, key=lambda id: -answers[id].score)
    for name, expected in ((plain.name, [False, True]), (linked.name, [False, False])):
        answer = answers[ids[name]]
        assert [expert.share is None for expert in answer.experts] == expected
        assert answer.probability is None or 0 <= answer.probability <= 1
        assert completer.evidence("Q4", "near", ids[name]).score == pytest.approx(answer.score, abs=1e-4)
    assert answers[ids[plain.name]].score == pytest.approx(scores[plain.name], abs=1e-2)
    asked = completer.tails(ids[linked.name], "near", k=3)
    assert asked
    assert completer.tails("Q4", "near", k=3, among=[ids[plain.name]])[0].id == ids[plain.name]
    words = NewEntity("a third", "in words of its own, beside those that were added")
    texts = tuple(completer._engine.resolve(new) for new in (words, plain, linked))
    asked = Questions(np.array([90], np.int32), np.array([KG.relations.index("near")], np.int32), texts)
    expected = model.score(asked, np.array([[91, 92]], np.int32))[0].tolist()
    answers = {answer.id: answer.score for answer in completer.tails(words, "near", k=200)}
    assert [answers[ids[new.name]] for new in (plain, linked)] == pytest.approx(expected, abs=1e-4)
