"""The frozen model: what its heads are trained on, and what its vectors do with the question's own entity."""

from __future__ import annotations

import dataclasses
import functools
import sys

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphs import graph_of
from model_kinds import KG, SMALL, draw, make
from satkgc.completion.candidates import CandidateRetriever
from satkgc.completion.index import ExactIndex
from satkgc.completion.retriever import make_retriever
from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, evaluate
from satkgc.evaluation.evaluate import score_blocks
from satkgc.evaluation.questions import RankingTask
from satkgc.evaluation.ranking import ONE
from satkgc.models import (
    LEAST_COSINE,
    FrozenConfig,
    FrozenModel,
    FusedConfig,
    FusedModel,
    NewEntityText,
    Questions,
    StepContext,
    Towers,
)
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
    cosines = model.score(Questions(batch.heads, batch.relations)).double()
    losses = []
    for row, (head, relation, tail) in enumerate(zip(batch.heads, batch.relations, batch.tails, strict=True)):
        out = {int(head), *KG.known_train.answers(head, relation).tolist()} - {int(tail)}
        competing = [entity for entity in collated.candidates.tolist() if entity not in out]
        logits = cosines[row] * model.log_scale.exp().double()
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


def test_whoever_asks_its_own_entity_comes_last(tiny_backbone, monkeypatch):
    """Against scores of one matrix product, in which the own entities of relation 1 are lowered by hand."""
    kg = dataclasses.replace(with_loop(KG), test=np.concatenate([KG.test, [[3, 1, 3], [2, 0, 2]]]).astype(np.int32))
    torch.manual_seed(0)
    model = FrozenModel(kg, FrozenConfig(**SMALL["frozen"](tiny_backbone))).eval()
    torch.nn.init.normal_(model.change.weight, std=0.02)
    size, everyone = kg.num_entities, np.arange(kg.num_entities, dtype=np.int32)
    entities = np.tile(everyone, 3)
    relations = np.repeat([0, 1, kg.num_relations + 1], size).astype(np.int32)
    questions, rows = Questions(entities, relations), np.arange(len(entities))
    barred = relations % kg.num_relations == 1
    scores = model.encode_questions(questions) @ model.encode_entities(everyone).T
    scores[rows[barred], entities[barred]] = LEAST_COSINE

    candidates = np.random.default_rng(0).permuted(np.tile(everyone, (len(rows), 1)), axis=1)[:, : size - 2]
    assert_near = functools.partial(np.testing.assert_allclose, atol=1e-5)
    assert_near(model.score(questions), scores)
    assert_near(model.score(questions, candidates), np.take_along_axis(scores, candidates, 1))
    assert_near(model.score_held_out(questions, np.zeros(len(rows), np.int32)), scores)

    fused = FusedModel(kg, FusedConfig(), {"text": model})
    assert_near(fused.score(questions), torch.from_numpy(scores).log_softmax(1))
    assert_near(fused.score_held_out(questions, entities), torch.from_numpy(scores).log_softmax(1))

    retriever = make_retriever(model, ExactIndex(model.encode_entities(everyone)))
    encoded = retriever.encode(questions)
    found, ids = retriever.search(encoded, size)
    assert_near(np.sort(np.where(ids < 0, LEAST_COSINE, found), 1), np.sort(scores, 1))
    assert (ids[barred] != entities[barred, None]).all()
    assert (ids[~barred] == entities[~barred, None]).any(1).all()
    assert_near(retriever.score(encoded, entities), scores[rows, entities])
    assert_near(retriever.score_one(encoded, 4), scores[:, 4])
    for answers in (entities, np.full(len(rows), 5, np.int32)):
        ranked = retriever.rank(questions, answers, list(answers[:, None]), 3)
        own = scores[rows, answers][:, None]
        assert_near(ranked.scores, own[:, 0])
        assert (ranked.ranks == 1 + (scores > own + 1e-6).sum(1)).mean() > 0.98  # but for ties in the last digit

    for row, one in enumerate(CandidateRetriever(fused, listed=7).shortlists(questions)):
        assert_near(one.raw(everyone)[0], scores[row])
        assert (entities[row] in one.ids) <= (not barred[row])

    config = EvaluationConfig()
    by_vectors = evaluate(model, kg, "test", config)
    by_scores = evaluate(ScoreAlone(model), kg, "test", config)
    for direction, ranks in by_vectors.ranks.items():
        assert (ranks.greater == by_scores.ranks[direction].greater).mean() > 0.98
        assert ranks.greater[-2] + ranks.equal[-2] == ranks.candidates[-2] - 1, "3 is no answer to (3, 1, ?)"
        assert ranks.greater[-1] < ranks.candidates[-1] - 1
    task = RankingTask.of(kg, kg.test, "tail", everyone)
    for _, some, cosines in score_blocks(model, kg, [task]):
        asked = Questions(task.entities, task.relations).select(some)
        assert_near(cosines / ONE, model.score(asked))
    monkeypatch.setattr(sys.modules[evaluate.__module__], "MANY_ENTITIES", 5)
    pool = evaluate(model, kg, "test", config.replace(sampled=6))
    for ranks in pool.ranks.values():
        assert ranks.greater[-2] == ranks.candidates[-2] - 1


class ScoreAlone:
    """A model that evaluation has to ask for its scores."""

    def __init__(self, model):
        self.model = model

    def score(self, questions):
        return self.model.score(questions)


def test_a_new_entity_is_read_as_one_of_the_graph_is(model):
    name, description = KG.entities.name(4), KG.entities.description(4)
    new = [NewEntityText("something else"), NewEntityText(name, description)]
    late = np.array([KG.num_entities + 1, 4], np.int32)
    for vectors in (
        model.encode_entities(late, new),
        model.encode_questions(Questions(late, np.array([1, 1], np.int32), new)),
    ):
        assert np.allclose(vectors[0], vectors[1], atol=1e-5)
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
    assert vectors[1].any()
    assert not vectors[0].any()
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
