"""Every architecture that users bring: it loads, a step trains all of it, it comes back from disk, it is exported."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from little_world import little_world, write_run
from satkgc.export import export
from satkgc.export.vectors import entity_strings
from satkgc.models import EncoderConfig, StepContext, TextModel, Towers
from satkgc.training import RunFolder
from tasks import Task
from tiny import FAMILIES, OTHERS, save_tiny

ALL = [*FAMILIES, *OTHERS]
PACKED = ("bert", "roberta", "mpnet")
ALL_ENTITIES = np.arange(90, dtype=np.int32)


@pytest.fixture(scope="module", params=ALL)
def backbone(request, tiny_backbone, tmp_path_factory):
    return save_tiny(request.param, tiny_backbone, tmp_path_factory.mktemp("architectures") / request.param)


def test_steps_train_all_of_it_and_it_comes_back_from_disk(backbone, tmp_path):
    task = Task(backbone, dropout=0.0)
    model, context = task.model, StepContext()
    assert model.towers.query.packed == (backbone.name in PACKED)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    losses, moved = [], {name: p.detach().clone() for name, p in model.named_parameters()}
    for _ in range(12):
        losses.append(model.backward(model.collate(task.batch), context)["loss"].item())
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.95 * losses[0]
    still = {name for name, p in model.named_parameters() if torch.equal(p, moved[name])}
    assert not {name for name in still if "token_type" not in name}
    everyone = np.arange(task.kg.num_entities, dtype=np.int32)
    vectors = model.eval().encode_entities(everyone)
    model.save(tmp_path / "model")
    opened = TextModel.load(tmp_path / "model", task.kg, model.config)
    np.testing.assert_array_equal(opened.encode_entities(everyone), vectors)
    assert vectors.std(0).max() > 1e-3


def test_dropout_is_set_whatever_the_architecture_calls_it(backbone):
    def spread(dropout):
        towers = Towers.create(EncoderConfig(backbone=str(backbone), dropout=dropout, tied=True)).train()
        batch = Task(backbone).texts.entities(np.arange(4))
        return (towers.query(batch) - towers.query(batch)).abs().max().item()

    assert spread(0.0) == 0
    assert spread(0.3) > 0.01


@pytest.fixture(scope="module")
def run(backbone, tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / backbone.name, little_world(), backbone)


def own(run):
    run = RunFolder.load(run)
    strings = list(entity_strings(run.kg, run.config.model.text))
    return strings, run.model("cpu").encode_entities(ALL_ENTITIES)


def test_sentence_transformers_gives_the_same_vectors(run, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    export(run, "sentence-transformers", tmp_path / "st", device="cpu")
    strings, vectors = own(run)
    opened = sentence_transformers.SentenceTransformer(str(tmp_path / "st" / "entity"), device="cpu")
    np.testing.assert_allclose(opened.encode(strings), vectors, atol=1e-5)


def test_onnx_gives_the_same_vectors(run, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export(run, "onnx", tmp_path / "onnx", device="cpu")
    strings, vectors = own(run)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "onnx" / "tokenizer")
    session = onnxruntime.InferenceSession(str(tmp_path / "onnx" / "entity.onnx"))
    for rows in (slice(0, 7), slice(20, 21)):  # any number of texts, any length
        tokens = tokenizer(strings[rows], truncation=True, max_length=50, padding=True, return_tensors="np")
        (found,) = session.run(None, dict(tokens))
        np.testing.assert_allclose(found, vectors[rows], atol=1e-5)
