"""Embedding models as models: every interaction and both losses learn a small graph; what they cannot is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import graph_of
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.models import INTERACTIONS, EmbeddingConfig, EmbeddingModel, NewEntityText, Questions, StepContext
from satkgc.sampling import SamplingConfig, make_sampler
from satkgc.training import TrainingConfig, make_config
from satkgc.training.state import make_optimizer
from tasks import small_graph


def trained(kg, steps=60, **settings):
    """A model after some steps of Adagrad."""
    torch.manual_seed(0)
    model = EmbeddingModel(kg, EmbeddingConfig(**{"dim": 16, "scale": 0.3, **settings}))
    sampler = make_sampler(kg, SamplingConfig(sampler="random", batch_size=64), 0, model.needs)
    optimizer = make_optimizer(model, TrainingConfig(optimizer="adagrad", learning_rate=0.2, weight_decay=0.0))
    for step in range(steps):
        model.backward(model.collate(sampler.draw(step)), StepContext())
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def test_questions_about_a_graph_that_it_was_not_trained_on_are_refused():
    kg = graph_of([(0, 0, 1), (1, 0, 2)], 6, valid=[(0, 0, 2)], test=[(3, 0, 5)], inference=[(3, 0, 4), (4, 0, 5)])
    model = EmbeddingModel(kg, EmbeddingConfig(dim=4))
    assert evaluate(model, kg, "valid").metrics()["both"]["count"] == 2
    with pytest.raises(
        SatkgcError, match=r"an embedding model learns nothing of entity 'e[35]', not in train"
    ) as error:
        evaluate(model, kg, "test")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("loss", ["softmax", "self-adversarial"])
@pytest.mark.parametrize("interaction", INTERACTIONS)
def test_every_interaction_learns_the_training_triples(interaction, loss):
    kg = small_graph()
    scale = {"scale": 0.05} if interaction == "tucker" else {}
    fresh = evaluate(trained(kg, 0, interaction=interaction, loss=loss, **scale), kg, "train").metrics()["both"]["mrr"]
    after = evaluate(trained(kg, interaction=interaction, loss=loss, negatives=16, margin=3.0, **scale), kg, "train")
    assert after.metrics()["both"]["mrr"] > 1.5 * fresh


def test_n3_is_the_cubes_of_the_moduli_a_mean_over_samples():
    kg = small_graph()
    model = EmbeddingModel(kg, EmbeddingConfig(dim=4, scale=1.0, n3=0.1))
    plain = EmbeddingModel(kg, EmbeddingConfig(dim=4, scale=1.0))
    plain.load_state_dict(model.state_dict())
    drawn = make_sampler(kg, SamplingConfig(sampler="random", batch_size=16), 0).draw(0)
    batch = model.collate(drawn)
    cubes = 0.0
    for table, ids in (
        (model.entities, drawn.heads),
        (model.relations, drawn.relations),
        (model.entities, drawn.tails),
    ):
        for row in table.weight.detach().numpy()[ids]:
            cubes += float((np.abs(row[:4] + 1j * row[4:]) ** 3).sum())
    assert model.loss(batch)[0].item() - plain.loss(batch)[0].item() == pytest.approx(0.1 * cubes / 16, rel=1e-4)


def test_a_new_entity_is_refused_in_one_line():
    kg = small_graph()
    model = EmbeddingModel(kg, EmbeddingConfig(dim=4))
    beyond = Questions(np.array([kg.num_entities], np.int32), np.array([0], np.int32), (NewEntityText("new"),))
    with pytest.raises(SatkgcError, match="knows the entities of its graph alone; ask about one of them"):
        model.score(beyond)


def test_one_list_of_candidates_is_not_gathered_for_each_question(monkeypatch):
    kg, rng = small_graph(), np.random.default_rng(0)
    model = trained(kg, steps=5)
    questions = Questions(rng.integers(0, kg.num_entities, 7).astype(np.int32), np.zeros(7, np.int32))
    some = np.arange(1, kg.num_entities, dtype=np.int32)
    wanted = model.score(questions)[:, 1:]

    def gathered(*_):
        raise AssertionError("questions × candidates × dimensions in memory")

    monkeypatch.setattr(type(model.interaction), "score_some", gathered)
    torch.testing.assert_close(model.score(questions, np.tile(some, (7, 1))), wanted)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(SatkgcError, match=r"model\.interaction is 'conve'; it takes one of transe, distmult, complex"):
        EmbeddingConfig(interaction="conve")
    with pytest.raises(SatkgcError, match=r"model\.relation_loss is for distmult and complex, not rotate; set it to 0"):
        EmbeddingConfig(interaction="rotate", relation_loss=0.1)


def test_the_recipe_and_its_settings_for_graphs():
    config = make_config("complex", benchmark="FB15k-237")
    assert (config.model.kind, config.model.interaction, config.model.dim) == ("embedding", "complex", 1000)
    assert (config.training.optimizer, config.sampling.sampler, config.applied) == ("adagrad", "random", "FB15k-237")
    assert make_config("complex", benchmark="WN18RR").model.n3 == 0.1


@pytest.mark.parametrize("graph", [None, "WN18RR", "FB15k-237", "UMLS", "wordnet-sample"])
@pytest.mark.parametrize("name", [*INTERACTIONS, "rotate-saam"])
def test_a_recipe_trains_its_interaction_on_any_graph(name, graph):
    config = make_config(name, benchmark=graph)
    assert (config.model.kind, config.model.interaction) == ("embedding", name.removesuffix("-saam"))
    assert config.sampling.sampler == ("brwr" if name == "rotate-saam" else "random")
    if name != "complex":
        assert config.model.relation_loss == 0


@pytest.mark.parametrize("graph", [None, "WN18RR", "FB15k-237", "UMLS", "wordnet-sample"])
def test_rotate_with_subgraphs_differs_from_rotate_in_its_batches_alone(graph):
    plain, subgraphs = (make_config(name, benchmark=graph) for name in ("rotate", "rotate-saam"))
    assert subgraphs.replace(recipe="rotate", sampling=plain.sampling) == plain
    assert subgraphs.sampling.replace(sampler="random") == plain.sampling
