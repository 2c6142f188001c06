"""StAR: its loss and its scores against the formulas written out; negatives; what its settings refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model_kinds import KG, draw, make
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.export import FORMATS, export
from satkgc.models import Questions, StarModel, StepContext
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.training import make_config, train_or_stop

KNOWN = {tuple(triple) for triple in KG.train.tolist()}


@pytest.fixture
def model(tiny_backbone):
    return make("star", tiny_backbone).eval()


def is_known(head, relation, tail):
    inverse = relation >= KG.num_relations
    return ((tail, relation - KG.num_relations, head) if inverse else (head, relation, tail)) in KNOWN


def vectors(model, tokens):
    return model.towers.encode(model.towers.query, tokens, "", unit=False)


def logit(model, u, v):
    """The classifier of [u; u∘v; u−v; v]."""
    pair = torch.from_numpy(np.concatenate([u, u * v, u - v, v]))
    return model.judge(torch.tanh(model.mix(pair))).item()


def test_scores_are_those_of_the_classifier(model):
    head, relation, _ = KG.train[:3].T
    questions = Questions(head, relation)
    scores = model.score(questions)
    u = vectors(model, model.query_tokens(questions))
    v = vectors(model, model.entity_tokens(np.arange(KG.num_entities, dtype=np.int32)))
    expected = [[logit(model, one, other) for other in v] for one in u]
    np.testing.assert_allclose(scores.numpy(), expected, atol=1e-4)
    assert np.linalg.norm(v, axis=1).std() > 1e-3  # not of length one


@pytest.mark.parametrize("of", ["graph", "batch"])
def test_the_loss_is_both_objectives_over_what_is_false(tiny_backbone, of):
    config = make("star", tiny_backbone).config.replace(negatives_from=of, distance_weight=0.7, margin=0.5, negatives=6)
    torch.manual_seed(3)
    model = StarModel(KG, config).eval()
    batch = draw(model)
    collated = model.collate(batch)
    loss, _ = model.loss(collated)
    everyone = vectors(model, model.entity_tokens(np.arange(KG.num_entities, dtype=np.int32)))
    u = vectors(model, model.query_tokens(Questions(batch.heads, batch.relations)))
    negatives = batch.negatives if of == "graph" else model._from_batch(batch)
    total, masked = [], 0
    for i, (head, relation, tail) in enumerate(zip(batch.heads, batch.relations, batch.tails, strict=True)):
        wrong = [int(e) for e in negatives[i] if not is_known(int(head), int(relation), int(e))]
        masked += len(negatives[i]) - len(wrong)
        sigmoid = {e: 1 / (1 + np.exp(-logit(model, u[i], everyone[e]))) for e in [int(tail), *wrong]}
        classified = -np.log(sigmoid[int(tail)]) - sum(np.log(1 - sigmoid[e]) for e in wrong)
        near = np.linalg.norm(u[i] - everyone[tail])
        hinges = [max(0, 0.5 + near - np.linalg.norm(u[i] - everyone[e])) for e in wrong]
        total.append(classified / (1 + len(wrong)) + 0.7 * (np.mean(hinges) if wrong else 0))
    assert loss.item() == pytest.approx(np.mean(total), rel=1e-4)
    assert masked > 0


def test_negatives_of_the_batch_are_its_tails_by_seed_and_step(tiny_backbone):
    model = StarModel(KG, make("star", tiny_backbone).config.replace(negatives_from="batch"))
    assert model.needs.negatives == 0
    sampler = make_sampler(KG, SamplingConfig(batch_size=32), 0, model.needs)
    first, second = sampler.draw(0), sampler.draw(1)
    model.prepare_training(StepContext(seed=4))
    drawn = model._from_batch(first)
    assert set(drawn.ravel().tolist()) <= set(first.tails.tolist())
    assert np.array_equal(drawn, model._from_batch(first))
    assert not np.array_equal(drawn, model._from_batch(second))
    model.prepare_training(StepContext(seed=5))
    assert not np.array_equal(drawn, model._from_batch(first))


def test_entities_are_encoded_once_an_evaluation_and_anew_after_a_step(model, monkeypatch):
    encoded = []
    encode = model.towers.encode
    monkeypatch.setattr(
        model.towers, "encode", lambda t, b, title, **o: encoded.append(title) or encode(t, b, title, **o)
    )
    before = evaluate(model, KG, "train").ranks["tail"].greater
    assert encoded.count("encoding entities") == 1
    model.backward(model.collate(draw(model)), StepContext())
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)  # what an optimizer does: no new version
    after = evaluate(model, KG, "train").ranks["tail"].greater
    assert encoded.count("encoding entities") == 2
    assert not np.array_equal(before, after)


def test_texts_that_name_neighbours_and_two_towers_are_refused():
    with pytest.raises(SatkgcError, match=r"model\.text\.neighbours"):
        make_config("star", overrides={"model.text.neighbours": 5})
    with pytest.raises(SatkgcError, match=r"model\.encoder\.tied"):
        make_config("star", overrides={"model.encoder.tied": False})


def test_the_recipes_differ_in_batches_and_negatives_alone():
    star, saam = (make_config(name, benchmark="WN18RR", triples=86_835) for name in ("star", "star-saam"))
    changed = {"sampling": saam.sampling.replace(sampler="random"), "model": saam.model.replace(negatives_from="graph")}
    assert saam.replace(recipe="star", **changed) == star
    ensemble = make_config("star-ensemble", overrides={"model.encoder.backbone": "minilm"})
    assert {name: part.model.kind for name, part in ensemble.experts.items()} == {"text": "star", "rotate": "embedding"}
    assert ensemble.experts["text"].model.encoder.backbone == "minilm"


def test_the_ensemble_trains_both_and_ranks_by_their_mixture(tiny_backbone, tmp_path):
    short = {"sampling.batch_size": 16, "training.steps": 4, "training.validations": 1, "training.log_steps": 1}
    own = {"text": {"model.text.max_tokens": 30, "training.learning_rate": 1e-3}, "rotate": {"model.dim": 8}}
    named = {f"experts.{name}.{key}": value for name, more in own.items() for key, value in (short | more).items()}
    overrides = {"training.device": "cpu", "model.encoder.backbone": str(tiny_backbone), **named}
    run, stopped = train_or_stop(KG, "star-ensemble", tmp_path / "run", overrides=overrides)
    assert stopped is None
    assert type(run.experts["text"].model("cpu")) is StarModel
    mixed = run.evaluate("test", device="cpu").ranks["tail"]
    assert mixed.candidates.max() <= KG.num_entities
    assert torch.isfinite(run.model("cpu").score(Questions(KG.test[:, 0], KG.test[:, 1]))).all()
    for form in FORMATS:
        with pytest.raises(SatkgcError) as refusal:
            export(run.experts["text"].folder, form, tmp_path / "out", device="cpu")
        assert "\n" not in str(refusal.value)
        assert not (tmp_path / "out").exists()
