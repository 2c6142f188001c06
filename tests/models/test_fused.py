"""The mixture: its scores against a loop in double precision, experts that have nothing to say, new entities, files."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from satkgc.errors import SatkgcError
from satkgc.models import EmbeddingConfig, EmbeddingModel, FusedConfig, FusedModel, Mixture, NewEntityText, Questions
from tasks import small_graph
from toy_models import PlainScores, WordVectors

KG = small_graph()
E, R = KG.num_entities, KG.num_relations


class Shy(PlainScores):
    """Has nothing to say about questions on the entities 0 to 9, nor of every third entity as an answer."""

    def knows_questions(self, questions):
        return (questions.entities >= 10) & (questions.entities < E)

    def knows_entities(self):
        return np.arange(E) % 3 != 0

    def score(self, questions, candidates=None):
        assert (questions.entities >= 10).all()
        assert (questions.entities < E).all()
        return super().score(questions, candidates)


def fused(novelty=False, **experts):
    """Experts with weights that differ from relation to relation."""
    rng, count = np.random.default_rng(5), len(experts)
    weights = rng.random((2 * R, count)).round(3)
    mixture = Mixture(tuple(experts), (1 + rng.random(count)).round(3), weights.mean(0).round(3), weights)
    if novelty:
        mixture = replace(mixture, general_novelty=0.7, novelty=rng.normal(size=2 * R).round(3))
    return FusedModel(KG, FusedConfig(novelty=novelty), experts, mixture=mixture)


@pytest.fixture(params=[False, True], ids=["", "novelty"])
def model(request):
    return fused(request.param, words=WordVectors(KG), plain=PlainScores(KG, 0.3), shy=Shy(KG, 0.2, dim=5))


def some_questions(count=60, seed=0):
    rng = np.random.default_rng(seed)
    return Questions(rng.integers(0, E, count).astype(np.int32), rng.integers(0, 2 * R, count).astype(np.int32))


def literal(model, entity, directed):
    """One question's scores as the module's text has them, entity by entity."""
    shares = []
    for name, scale in zip(model.names, model.mixture.scales, strict=True):
        expert = model.expert(name)
        question = Questions(np.array([entity], np.int32), np.array([directed], np.int32))
        if not expert.knows_questions(question)[0]:
            shares.append([None] * E)
            continue
        scores, known = expert.score(question)[0].double().numpy(), expert.knows_entities()
        total = math.log(sum(math.exp(scale * scores[e]) for e in range(E) if known[e]))
        shares.append([scale * scores[e] - total if known[e] else None for e in range(E)])
    sums = []
    for e in range(E):
        own = [share[e] for share in shares]
        said = [x for x in own if x is not None]
        mean = sum(said) / len(said) if said else -math.log(E)
        weights = model.mixture.weights[directed]
        silent = any(x is None and any(y is not None for y in share) for x, share in zip(own, shares, strict=True))
        bonus = model.mixture.novelty[directed] if silent and model.mixture.novelty is not None else 0.0
        sums.append(bonus + sum(w * (mean if x is None else x) for w, x in zip(weights, own, strict=True)))
    total = math.log(sum(map(math.exp, sums)))
    return [x - total for x in sums]


def test_scores_are_the_weighted_sum_of_log_softmaxes(model):
    questions = some_questions()
    assert (questions.entities < 10).any(), "some of which the shy one cannot answer"
    expected = [literal(model, e, r) for e, r in zip(questions.entities, questions.relations, strict=True)]
    np.testing.assert_allclose(model.score(questions).numpy(), expected, atol=2e-5)


def test_scores_of_candidates_are_columns_of_all_scores_in_blocks_of_any_size(model, monkeypatch):
    questions = some_questions()
    candidates = np.random.default_rng(1).integers(0, E, (60, 7)).astype(np.int32)
    scores = model.score(questions)
    assert scores.dtype == torch.float32
    columns = scores.gather(1, torch.from_numpy(candidates).long())
    assert torch.equal(model.score(questions, candidates), columns)
    monkeypatch.setattr("satkgc.models.fused.QUESTIONS", 7)
    assert torch.allclose(model.score(questions, candidates), columns, atol=1e-6)
    assert model.score(questions.select(slice(0)), candidates[:0]).shape == (0, 7)


def test_an_expert_with_nothing_to_say_leaves_its_weight_to_the_others():
    words, shy = WordVectors(KG), Shy(KG)
    model = fused(words=words, shy=shy)
    silent = Questions(np.arange(10, dtype=np.int32), np.arange(10, dtype=np.int32) % (2 * R))
    alone = FusedModel(KG, FusedConfig(), {"words": words}, mixture=_only(model, 0))
    assert torch.allclose(model.score(silent), alone.score(silent), atol=1e-5)
    spoken = Questions(silent.entities + 10, silent.relations)
    assert not torch.allclose(model.score(spoken), alone.score(spoken), atol=1e-2)


def _only(model, place):
    """The mixture of one expert with the weights of all."""
    mixture = model.mixture
    weights = mixture.weights.sum(1, keepdims=True)
    return Mixture((model.names[place],), mixture.scales[[place]], weights[0], weights)


def test_where_nobody_has_anything_to_say_all_entities_are_alike():
    model = fused(shy=Shy(KG), other=Shy(KG, dim=4))
    scores = model.score(Questions(np.array([3], np.int32), np.array([1], np.int32)))
    assert torch.allclose(scores, torch.full((1, E), -math.log(E)))
    assert not model.knows_questions(Questions(np.array([3], np.int32), np.array([1], np.int32)))[0]


def test_new_entities_are_left_to_those_that_read(model):
    texts = (NewEntityText("a new one", "of a"), NewEntityText("another"))
    entities = np.array([E, 20, E + 1, 5], np.int32)
    questions = Questions(entities, np.array([0, 1, 2, 3], np.int32), texts)
    scores = model.score(questions)
    assert torch.isfinite(scores).all()
    plain = Questions(entities[[1, 3]], questions.relations[[1, 3]])
    assert torch.allclose(scores[[1, 3]], model.score(plain), atol=1e-6), "whatever is asked beside it"
    # As a candidate a new entity has the log-share that the reading expert's softmax over the graph gives it.
    candidates = np.array([[E, 4]] * 4, np.int32)
    some = model.score(questions, candidates)
    assert torch.allclose(some[:, 1], scores[:, 4], atol=1e-6)
    words = model.expert("words")
    own = torch.from_numpy(words.encode_questions(questions)) * float(model.mixture.scales[0])
    everyone = own @ torch.from_numpy(words.encode_entities(np.arange(E, dtype=np.int32))).T
    late = own @ torch.from_numpy(words.encode_entities(np.array([E], np.int32), texts))[0]
    share = late - everyone.logsumexp(1)
    weight = torch.from_numpy(model.mixture.weights[questions.relations].sum(1)).float()
    bonus = torch.zeros(4)
    if model.mixture.novelty is not None:  # the second and the fourth question are those that others answer
        bonus[[1, 3]] = torch.from_numpy(model.mixture.novelty[[1, 3]]).float()
    total = _unnormalised(model, questions)
    assert torch.allclose(some[:, 0], weight * share + bonus - total.logsumexp(1), atol=1e-5)
    assert model.reads_text
    assert not fused(plain=PlainScores(KG)).reads_text


def _unnormalised(model, questions):
    return model.mixture.mix(model.log_shares(questions), questions.relations, E)


def test_embeddings_know_what_training_has_seen():
    kg = small_graph(triples=60)
    model = EmbeddingModel(kg, EmbeddingConfig(dim=4))
    seen = set(kg.train[:, [0, 2]].ravel().tolist())
    assert 0 < len(seen) < kg.num_entities
    assert model.knows_entities().tolist() == [e in seen for e in range(kg.num_entities)]
    entities = np.arange(kg.num_entities + 2, dtype=np.int32)
    known = model.knows_questions(Questions(entities, np.full(len(entities), 4, np.int32)))
    assert known.tolist() == [e in seen for e in entities.tolist()]
    rare = type(kg).from_arrays("rare", kg.entities, kg.relations, kg.train[kg.train[:, 1] != 1])
    model = EmbeddingModel(rare, EmbeddingConfig(dim=4))
    one = rare.train[:1, 0]
    assert [bool(model.knows_questions(Questions(one, np.array([r], np.int32)))[0]) for r in range(6)] == [
        r % 3 != 1 for r in range(6)
    ]


def test_saved_and_loaded_it_scores_the_same_and_the_weights_can_be_read(model, tmp_path):
    questions = some_questions()
    model.save(tmp_path)
    experts = {name: model.expert(name) for name in model.names}
    opened = FusedModel.load(tmp_path, KG, FusedConfig(), "cpu", experts)
    assert torch.equal(opened.score(questions), model.score(questions))
    content = json.loads((tmp_path / "fusion.json").read_text())
    assert content["relations"]["r1"]["head"]["shy"] == model.mixture.weights[1 + R, 2]
    assert ("novelty" in content) == ("novelty" in content["relations"]["r1"]["head"]) == model.config.novelty
    with pytest.raises(SatkgcError, match="cannot open the mixture") as refusal:
        FusedModel.load(tmp_path, KG, FusedConfig(), "cpu", {"words": experts["words"]})
    assert "\n" not in str(refusal.value)
    save_file({"words": torch.zeros(KG.num_entities, 200)}, tmp_path / "vectors.safetensors")
    with pytest.raises(SatkgcError, match=rf"\({KG.num_entities}, 200\), as earlier .*`satkgc fuse .*words .*NEW`"):
        FusedModel.load(tmp_path, KG, FusedConfig(), "cpu", experts)
    (tmp_path / "vectors.safetensors").write_bytes(b"half")
    with pytest.raises(SatkgcError, match="cannot open the mixture"):
        FusedModel.load(tmp_path, KG, FusedConfig(), "cpu", experts)


def test_it_is_not_trained(model):
    with pytest.raises(SatkgcError, match="not trained"):
        model.loss(None)
