"""The frozen model: what its heads are trained on, and what its vectors do with the question's own entity."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode

from graphs import graph_of
from model_kinds import KG, SMALL, draw, make
from satkgc.errors import SatkgcError
from satkgc.models import FrozenConfig, FrozenModel, NewEntityText, Questions, StepContext, Towers
from satkgc.models.text.buckets import BUCKETS, deal
from satkgc.models.text.frozen import VECTORS
from satkgc.settings import build


@pytest.fixture(scope="module")
def model(tiny_backbone):
    return make("frozen", tiny_backbone).eval()


def with_loop(kg):
    """The graph with a triple of relation 0 that joins an entity to itself."""
    return dataclasses.replace(kg, train=np.concatenate([kg.train, [[2, 0, 2]]]).astype(np.int32))


def test_the_encoder_is_not_trained(model):
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained
    assert not [name for name in trained if name.startswith("towers")]


def test_the_loss_is_over_the_drawn_entities_without_known_answers_and_the_question_itself(model):
    batch = draw(model)
    collated = model.collate(batch)
    assert 12 <= len(collated.candidates) < KG.num_entities
    cosines = 2 * model.score(Questions(batch.heads, batch.relations)).double()  # the buckets aside
    losses = []
    for row, (head, relation, tail) in enumerate(zip(batch.heads, batch.relations, batch.tails, strict=True)):
        out = {int(head), *KG.known_train.answers(head, relation).tolist()} - {int(tail)}
        own = cosines[row] + torch.from_numpy(model.buckets == model.buckets[head])
        competing = [entity for entity in collated.candidates.tolist() if entity not in out]
        logits = own * model.log_scale.exp().double()
        losses.append(logits[competing].logsumexp(0) - logits[int(tail)])
    assert model.loss(collated)[0].item() == pytest.approx(torch.stack(losses).mean().item(), abs=1e-4)


def test_an_entity_does_not_answer_its_own_question_unless_training_says_so(tiny_backbone):
    config = FrozenConfig(**SMALL["frozen"](tiny_backbone))
    model = FrozenModel(with_loop(KG), config).eval()
    everyone = np.arange(KG.num_entities, dtype=np.int32)
    # Untrained, a question is its entity's own vector: nothing is nearer.
    for relation, itself in ((0, True), (KG.num_relations, True), (1, False)):
        best = model.score(Questions(everyone, np.full_like(everyone, relation))).argmax(1).numpy()
        assert (best == everyone).all() if itself else not (best == everyone).any()


def test_no_bucket_has_two_that_a_fact_joins():
    random = np.random.default_rng(0)
    pairs = np.stack([np.arange(2000), np.arange(2000) + 2 * BUCKETS], 1)  # in step: dealt in turn, all would share one
    hub = np.stack([np.full(1000, 2400), random.choice(2300, 1000, replace=False)], 1)
    ends = np.concatenate([pairs, hub, random.integers(0, 2400, (20_000, 2)), [[7, 7]]])
    ends = ends[np.arange(len(ends)) % 3 > 0]
    graph = graph_of(np.stack([ends[:, 0], np.zeros(len(ends), np.int64), ends[:, 1]], 1), 2500)
    buckets = deal(graph.adjacency)
    heads, _, tails = graph.train[graph.train[:, 0] != graph.train[:, 2]].T
    assert (buckets[heads] != buckets[tails]).all()
    counts = np.bincount(buckets, minlength=BUCKETS)
    assert len(counts) == BUCKETS
    assert counts.max() < 2 * counts.mean()
    unknown = np.arange(0, 2000, 3)  # pairs in step that the graph does not have
    assert (buckets[unknown] == buckets[unknown + 2 * BUCKETS]).mean() < 3 / BUCKETS


def test_where_neighbours_have_all_buckets_one_is_shared():
    everyone = np.argwhere(np.triu(np.ones((150, 150)), 1)).astype(np.int32)
    buckets = deal(graph_of(np.insert(everyone, 1, 0, axis=1), 150).adjacency)
    assert len(np.unique(buckets)) == BUCKETS


def test_buckets_stay_when_the_graph_grows_and_in_the_folder(model, tmp_path):
    random = np.random.default_rng(0)
    train = random.integers(0, [300, 1, 300], (3000, 3))
    more = np.concatenate([train, random.integers([0, 0, 300], [400, 1, 400], (3000, 3))])
    before = FrozenModel(graph_of(train, 300), model.config, model.towers).eval()
    kg = graph_of(more, 400)
    grown = before.grow(kg)
    assert (grown.buckets[:300] == before.buckets).all()
    heads, _, tails = kg.train[kg.train[:, 0] != kg.train[:, 2]].T
    assert (grown.buckets[heads] != grown.buckets[tails]).all()
    assert (grown.buckets != deal(kg.adjacency)).any()
    grown.save(tmp_path)
    assert (FrozenModel.load(tmp_path, kg, model.config).buckets == grown.buckets).all()


def test_runs_of_earlier_versions_dealt_in_turn(model, tmp_path):
    model.save(tmp_path)
    save_file({"vectors": model.vectors}, tmp_path / VECTORS)
    assert (FrozenModel.load(tmp_path, KG, model.config).buckets == np.arange(KG.num_entities) % BUCKETS).all()


def test_a_new_entity_is_read_as_one_of_the_graph_is(model):
    name, description = KG.entities.name(4), KG.entities.description(4)
    new = [NewEntityText("something else"), NewEntityText(name, description)]
    width, late = model.towers.dim, np.array([KG.num_entities + 1, 4], np.int32)
    for vectors in (
        model.encode_entities(late, new),
        model.encode_questions(Questions(late, np.array([1, 1], np.int32), new)),
    ):
        assert np.allclose(vectors[0, :width], vectors[1, :width], atol=1e-5)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    scores = (
        model.encode_questions(Questions(late[:1], np.array([1], np.int32), new)) @ model.encode_entities(late, new).T
    )
    assert scores[0, 0] == pytest.approx(scores[0, 1], abs=1e-5), "new and known answers are weighed alike"


def test_a_new_entity_makes_no_copy_of_all_vectors(model):
    """Of millions of entities that was gigabytes for each question, and memory that the service kept."""

    class Rows(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.ndim:
                self.most = max(self.most, len(out))
            return out

    kg = graph_of([[0, 0, 1]], 3000)
    large = FrozenModel(kg, model.config, model.towers, vectors=torch.zeros(3000, model.towers.dim)).eval()
    with Rows() as rows:
        vectors = large.encode_entities(np.array([7, 3000], np.int32), [NewEntityText("a thing")])
    assert vectors[1, : model.towers.dim].any()
    assert not vectors[0, : model.towers.dim].any()
    assert 0 < rows.most < 3000


def test_texts_are_read_once_in_a_run(tiny_backbone, tmp_path, monkeypatch):
    config, context = FrozenConfig(**SMALL["frozen"](tiny_backbone)), StepContext(cache=tmp_path / "cache")
    first = FrozenModel(KG, config)
    first.prepare_training(context)
    encode = Towers.encode
    monkeypatch.setattr(Towers, "encode", lambda *_: pytest.fail("read again"))
    again = FrozenModel(KG, config)
    again.prepare_training(context)
    assert torch.equal(first.vectors, again.vectors)
    monkeypatch.setattr(Towers, "encode", encode)
    file = tmp_path / "cache" / "entity-vectors" / VECTORS
    content = file.read_bytes()
    for damage in (content[:200], content[:-9] + b"\1" + content[-8:]):
        file.write_bytes(damage)
        damaged = FrozenModel(KG, config)
        damaged.prepare_training(context)
        assert torch.equal(first.vectors, damaged.vectors)
        assert file.read_bytes() == content


def test_texts_that_name_neighbours_are_refused():
    with pytest.raises(SatkgcError, match=r"texts are read once.*set model.text.neighbours"):
        build(FrozenConfig, {"text": {"neighbours": 3}}, aliases={})


def test_a_relation_without_training_triples_is_not_answered(tiny_backbone):
    kg = dataclasses.replace(KG, train=KG.train[KG.train[:, 1] != 1])
    model = FrozenModel(kg, FrozenConfig(**SMALL["frozen"](tiny_backbone)))
    model.check_question(0, 0)
    for relation in (1, 1 + KG.num_relations):
        with pytest.raises(SatkgcError, match="training saw no triples"):
            model.check_question(0, relation)
    known = model.knows_questions(Questions(np.zeros(3, np.int32), np.array([0, 1, 1 + KG.num_relations], np.int32)))
    assert known.tolist() == [True, False, False]
