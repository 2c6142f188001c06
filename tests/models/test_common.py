"""What every model keeps to, whatever its kind. A new one is added to MODELS, and at its smallest to model_kinds.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from safetensors.torch import load_file

import satkgc
from model_kinds import (
    BY_FOUR,
    KG,
    KINDS,
    SMALL,
    STEPS,
    TRAINED,
    draw,
    gradients_of,
    make,
    one_process,
    ranks_of,
    step_of,
    tokens_of,
)
from satkgc.completion import NewEntity
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.models import LEAST_COSINE, MODELS, NewEntityText, Questions, StepContext, VectorModel
from satkgc.processes import Processes
from satkgc.sampling import SamplingConfig
from satkgc.training import Config, TrainingConfig, train_or_stop
from satkgc.training.state import make_optimizer
from tasks import assert_same


@pytest.fixture(params=sorted(KINDS))
def kind(request):
    return request.param


@pytest.fixture(params=sorted(TRAINED))
def registered(request):
    return request.param


def questions_of(rows=slice(0, 7)):
    """Some questions for tails and some for heads."""
    head, relation, tail = KG.train[rows].T
    return Questions(np.concatenate([head, tail]), np.concatenate([relation, relation + KG.num_relations]))


def run_config(kind, backbone, **training):
    shared = {"steps": 6, "validations": 2, "learning_rate": 1e-3, "log_steps": 1, "device": "cpu"}
    return Config(
        model=MODELS[kind].Config(**SMALL[kind](backbone)),
        sampling=SamplingConfig(batch_size=16),
        training=TrainingConfig(**shared | training),
    )


def test_every_kind_is_here():
    assert set(SMALL) == set(KINDS)
    for name, kind in KINDS.items():
        assert kind.Config().kind == name.partition(",")[0]


def test_the_loss_falls(kind, tiny_backbone):
    model = make(kind, tiny_backbone).train()
    optimizer = make_optimizer(model, TrainingConfig(learning_rate=3e-3 if model.reads_text else 3e-2))
    context, losses = StepContext(), []
    model.prepare_training(context)
    for step in range(30):
        losses.append(model.backward(model.collate(draw(model, step)), context)["loss"].item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])


def test_backward_adds_the_gradients_of_the_loss(kind, tiny_backbone):
    model = make(kind, tiny_backbone).eval()  # without dropout
    batch = model.collate(draw(model))
    loss, _ = model.loss(batch)
    loss.backward()
    expected = {"loss": loss.detach(), **gradients_of(model)}
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert expected.keys() - {"loss"} == trained, "every parameter that is trained has a gradient"
    metrics = model.backward(batch, StepContext())
    assert_same({"loss": metrics["loss"], **gradients_of(model)}, expected)
    for _ in range(2):  # added to what is there, not put in its place
        model.backward(batch, StepContext())
    assert_same(gradients_of(model), {name: 2 * value for name, value in expected.items() if name != "loss"}, 1e-4)


def test_a_step_depends_on_seed_and_step_alone(kind, tiny_backbone):
    model = make(kind, tiny_backbone).train()
    batch, results = model.collate(draw(model)), []
    for _ in range(2):
        torch.rand(3)  # whatever was drawn before
        model.backward(batch, StepContext(seed=5))
        results.append(gradients_of(model))
    assert all(torch.equal(value, results[1][name]) for name, value in results[0].items())


def test_metrics_are_named_finite_numbers(kind, tiny_backbone):
    model = make(kind, tiny_backbone)
    metrics = model.backward(model.collate(draw(model)), StepContext())
    assert "loss" in metrics
    assert "gradient_norm" not in metrics, "the loop's own"
    for name, value in metrics.items():
        assert name.isidentifier()
        assert value.shape == ()
        assert not value.requires_grad
        assert torch.isfinite(value)


def test_scores_of_candidates_are_columns_of_all_scores(kind, tiny_backbone):
    model, questions = make(kind, tiny_backbone).eval(), questions_of()
    scores = model.score(questions)
    assert scores.shape == (len(questions), KG.num_entities)
    assert scores.dtype == torch.float32
    assert not scores.requires_grad
    assert scores.std(1).min() > 1e-4, "entities are told apart"
    rng = np.random.default_rng(0)
    candidates = rng.integers(0, KG.num_entities, (len(questions), 6)).astype(np.int32)  # some of them twice
    some = model.score(questions, candidates)
    assert some.dtype == torch.float32
    assert torch.allclose(some, scores.gather(1, torch.from_numpy(candidates).long()), atol=1e-5)
    shared = np.tile(candidates[:1], (len(questions), 1))
    assert torch.allclose(model.score(questions, shared), scores[:, candidates[0].tolist()], atol=1e-5)
    part = questions.select(slice(3, 5))
    assert torch.allclose(model.score(part), scores[3:5], atol=1e-5), "whatever is asked beside it"


def test_scores_do_not_depend_on_the_mode_and_leave_it(kind, tiny_backbone):
    model, questions = make(kind, tiny_backbone).eval(), questions_of()
    expected = model.score(questions)
    model.train()
    assert torch.equal(model.score(questions), expected)
    assert all(part.training for part in model.modules())


def test_saved_and_loaded_it_scores_the_same(kind, tiny_backbone, tmp_path):
    model, questions = make(kind, tiny_backbone).eval(), questions_of()
    model.save(tmp_path / "model")
    assert not [path for path in (tmp_path / "model").rglob("*") if path.suffix in (".pt", ".pth", ".bin", ".pkl")]
    opened = type(model).load(tmp_path / "model", KG, model.config, "cpu")
    assert not opened.training
    assert torch.equal(opened.score(questions), model.score(questions))
    weights = dict(opened.named_parameters())
    assert all(torch.equal(value, weights[name]) for name, value in model.named_parameters())


def test_a_model_that_is_not_whole_is_refused_in_one_line(kind, tiny_backbone, tmp_path):
    model = make(kind, tiny_backbone)
    model.save(tmp_path / "model")
    largest = max((tmp_path / "model").rglob("*.safetensors"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:100])
    with pytest.raises(SatkgcError) as refusal:
        type(model).load(tmp_path / "model", KG, model.config, "cpu")
    assert "\n" not in str(refusal.value)


def test_vectors_are_of_length_one_and_their_products_the_scores(kind, tiny_backbone):
    model, questions = make(kind, tiny_backbone).eval(), questions_of()
    if not isinstance(model, VectorModel):
        pytest.skip("it has no vectors")
    everyone = np.arange(KG.num_entities, dtype=np.int32)
    queries, entities = model.encode_questions(questions), model.encode_entities(everyone)
    for vectors, rows in ((queries, len(questions)), (entities, KG.num_entities)):
        assert vectors.shape == (rows, model.dim)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    products = queries @ entities.T
    rows = np.flatnonzero(model.bars_own(questions))
    products[rows, questions.entities[rows]] = LEAST_COSINE
    assert np.allclose(products, model.score(questions).numpy(), atol=1e-5)
    frozen = model.frozen()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.neg_().add_(0.1)
    assert np.array_equal(frozen.encode_entities(everyone), entities)
    assert np.array_equal(frozen.encode_questions(questions), queries)
    assert not np.allclose(model.encode_questions(questions), queries, atol=1e-3)


def test_weights_that_are_nan_are_refused_by_evaluation_in_one_line(kind, tiny_backbone):
    model = make(kind, tiny_backbone)
    evaluate(model, KG, "valid")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(SatkgcError, match="NaN") as refusal:
        evaluate(model, KG, "valid")
    assert "\n" not in str(refusal.value)


def test_a_new_text_is_scored_by_what_reads_texts(kind, tiny_backbone):
    model = make(kind, tiny_backbone).eval()
    if not model.reads_text:
        pytest.skip("it reads none; see the test of completing")
    texts = [NewEntityText("aaaa 99", "of a"), NewEntityText("oooo 98")]
    entities = np.array([KG.num_entities, 3, KG.num_entities + 1, KG.num_entities], np.int32)
    scores = model.score(Questions(entities, np.array([0, 0, 1, 4], np.int32), texts))
    assert torch.isfinite(scores).all()
    known = model.score(Questions(entities[1:2], np.array([0], np.int32)))
    assert torch.allclose(scores[1], known[0], atol=1e-5)


def test_a_new_text_is_scored_as_an_answer_by_what_reads_texts(kind, tiny_backbone):
    model = make(kind, tiny_backbone).eval()
    if not model.reads_text:
        pytest.skip("it reads none")
    size, texts = KG.num_entities, [NewEntityText("aaaa 99", "of a"), NewEntityText("oooo 98")]
    questions = Questions(np.array([3, size], np.int32), np.array([0, 1], np.int32), texts)
    everyone = np.tile(np.arange(size + len(texts), dtype=np.int32), (len(questions), 1))
    scores = model.score(questions, everyone)
    assert torch.allclose(scores[:, :size], model.score(questions), atol=1e-5)
    later = model.score(questions, np.array([[size + 1, 5], [7, size + 1]], np.int32))
    assert torch.allclose(later, scores[[[0, 0], [1, 1]], [[size + 1, 5], [7, size + 1]]], atol=1e-5)


WORLDS = (4, 2)  # the processes are started once: of the four, two go on


def test_several_processes_compute_what_one_computes(tiny_backbone, tmp_path):
    mp.spawn(one_process, (WORLDS, tmp_path, tiny_backbone), nprocs=max(WORLDS))
    for name in STEPS:
        expected = step_of(name, tiny_backbone, Processes())
        files = sorted(tmp_path.glob(f"[24]-{name}-[0123].safetensors"))
        assert len(files) == (6 if name in BY_FOUR else 2)
        for file in files:
            assert_same(load_file(file), expected)
    for name in KINDS:
        alone = ranks_of(name, tiny_backbone, None)
        files = sorted(tmp_path.glob(f"[24]-{name}-[0123]-ranks.safetensors"))
        assert len(files) == (6 if name in BY_FOUR else 2)
        for file in files:
            shared = load_file(file)
            assert shared.keys() == alone.keys()
            assert all(torch.equal(shared[part], alone[part]) for part in alone), file
    tokens = tokens_of(tiny_backbone, None)
    assert len(tokens["0"]) > 100
    for file in (f"{world}-tokens-{rank}.safetensors" for world in WORLDS for rank in range(world)):
        shared = load_file(tmp_path / file)
        assert all(torch.equal(shared[part], tokens[part]) for part in tokens), file


def test_a_resumed_run_equals_one_that_was_not_stopped(registered, tiny_backbone, tmp_path):
    whole, _ = train_or_stop(KG, out=tmp_path / "whole", config=run_config(registered, tiny_backbone))
    limited = run_config(registered, tiny_backbone, max_minutes=1e-9)
    stopped = "begun"
    runs = 0
    while stopped is not None:
        resumed, stopped = train_or_stop(KG, out=tmp_path / "parts", config=limited, resume=True)
        runs += 1
    assert runs == 6  # a step each
    assert resumed.finished
    for one, other in zip(whole.log(), resumed.log(), strict=True):
        for name in one.keys() - {"triples_per_second", "data_wait"}:
            assert one[name] == other[name]
    weights = dict(resumed.model("cpu").named_parameters())
    assert all(torch.equal(value, weights[name]) for name, value in whole.model("cpu").named_parameters())


def test_a_callback_sees_every_step(registered, tiny_backbone, tmp_path):
    steps = []

    def note(step, model, batch, metrics):
        steps.append(step)
        assert type(model) is MODELS[registered]
        assert (batch.step, len(batch)) == (step - 1, 16)
        assert {"loss", "gradient_norm"} <= metrics.keys()

    train_or_stop(KG, out=tmp_path / "run", config=run_config(registered, tiny_backbone), callbacks=[note])
    assert steps == [1, 2, 3, 4, 5, 6]


def test_a_run_completes_and_refuses_in_one_line_what_its_model_cannot_answer(registered, tiny_backbone, tmp_path):
    run = satkgc.train(KG, out=tmp_path / "run", config=run_config(registered, tiny_backbone, steps=2))
    completer = run.completer("cpu")
    assert len(completer.tails("e3", "r0", k=4)) == 4
    with pytest.raises(SatkgcError) as refusal:
        completer.tails("nobody here", "r0")
    assert "\n" not in str(refusal.value)
    new = NewEntity("aaaa 99", "of a")
    if MODELS[registered].reads_text:
        assert len(completer.tails(new, "r0", k=4)) == 4
        assert len(completer.relations("e3", new, k=2)) == 2
        return
    with pytest.raises(SatkgcError, match="does not read texts and knows nothing of the new entity") as refusal:
        completer.tails(new, "r0")
    assert "\n" not in str(refusal.value)
