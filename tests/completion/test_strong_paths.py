"""Evidence of a path model: its strongest paths, in names, for each part that is asked for."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from little_world import little_world
from satkgc.completion import Completer, NewEntity, Role, evidence
from satkgc.completion.prepare import prepare
from satkgc.kg import KnowledgeGraph
from satkgc.models import FusedConfig, FusedModel, PathConfig, PathModel, strongest_paths
from toy_models import PlainScores, WordVectors

KG = little_world()


def path_expert(kg):
    torch.manual_seed(1)
    return PathModel(kg, PathConfig(dim=4, layers=3)).eval()


def opened(folder, model):
    model.save(folder / "model")
    return Completer(prepare(folder, model), folder)


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    experts = {"words": WordVectors(KG), "roads": path_expert(KG)}
    return opened(tmp_path_factory.mktemp("fused"), FusedModel(KG, FusedConfig(), experts))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return opened(tmp_path_factory.mktemp("alone"), path_expert(KG))


@pytest.mark.parametrize("completer", ["fused", "alone"])
@pytest.mark.parametrize("asked", ["tail", "relation", "head"])
def test_they_are_the_models_own_from_the_questions_entity_to_the_answer(request, completer, asked):
    completer, model = request.getfixturevalue(completer), path_expert(KG)
    facts = {(KG.entities.id(h), KG.relations.id(r), KG.entities.id(t)) for h, r, t in KG.facts.tolist()}
    inverse = weights = 0
    for h, r, t in [(3, 3, 41), *KG.train[:6].tolist()]:
        paths = completer.evidence(f"Q{h}", KG.relations.id(r), f"Q{t}", asked=asked).strong_paths
        start, directed, end = (t, r + KG.num_relations, h) if asked == "head" else (h, r, t)
        expected = [path for path in strongest_paths(model, start, directed, end, 3) if path.weight > 0]
        assert [path.weight for path in paths] == pytest.approx([path.weight for path in expected], rel=1e-4)
        for path, own in zip(paths, expected, strict=True):
            assert (path.steps[0].source, path.steps[-1].target) == (f"Q{start}", f"Q{end}")
            assert [step.target for step in path.steps] == [f"Q{v}" for _, _, v in own.edges]
            assert all(before.target == after.source for before, after in pairwise(path.steps))
            for step in path.steps:
                ends = (step.source, step.target) if step.direction == "out" else (step.target, step.source)
                triple = ends[0], step.relation, ends[1]
                assert triple in facts
                assert triple != (f"Q{h}", KG.relations.id(r), f"Q{t}")
                assert step.target_name == completer.entity(step.target).name
                inverse += step.direction == "in"
        weights += len(paths)
    assert inverse
    assert weights > 3


def test_entities_beyond_the_graph_have_none(fused):
    new = NewEntity("bora", "a town", facts=(Role("near", "head", "Q3"),))
    assert fused.evidence("Q4", "near", "Q3").strong_paths
    for head, tail in ((new, "Q3"), ("Q3", new)):
        for asked in ("head", "tail"):
            assert fused.evidence(head, "near", tail, asked=asked).strong_paths == ()


def test_a_relation_that_the_path_model_never_saw_has_none(tmp_path):
    kept = KG.train[KG.train[:, 1] != 3]
    kg = KnowledgeGraph.from_arrays("less", KG.entities, KG.relations, kept, KG.valid[:9])
    completer = opened(tmp_path, FusedModel(kg, FusedConfig(), {"words": WordVectors(kg), "roads": path_expert(kg)}))
    assert strongest_paths(path_expert(kg), 3, 3, 41, 3)
    assert completer.evidence("Q3", "near", "Q41").strong_paths == ()
    assert completer.evidence("Q3", "knows", "Q41").strong_paths


def test_no_other_model_has_any_and_no_answer_pays_for_them(tmp_path, fused, monkeypatch):
    experts = {"words": WordVectors(KG), "plain": PlainScores(KG, 0.05)}
    other = opened(tmp_path, FusedModel(KG, FusedConfig(), experts))
    assert other.evidence("Q4", "near", "Q3").strong_paths == ()
    monkeypatch.setattr(evidence, "strongest_paths", None)
    assert fused.tails("Q4", "near")
    with pytest.raises(TypeError):
        fused.evidence("Q4", "near", "Q3")
