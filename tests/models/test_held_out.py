"""A held-out triple is scored as by the same model over a graph that does not have it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from little_world import little_world
from satkgc.kg import KnowledgeGraph
from satkgc.models import (
    EncoderConfig,
    FusedConfig,
    FusedModel,
    PathConfig,
    PathModel,
    Questions,
    TextModel,
    TextModelConfig,
)
from satkgc.models.paths.graph import MessageGraph
from satkgc.text import TextConfig

KG = little_world()


def without(gone) -> KnowledgeGraph:
    """The little world less the training triples for which it is true."""
    kept = [triple for triple in KG.train.tolist() if not gone(*triple)]
    return KnowledgeGraph.from_arrays("less", KG.entities, KG.relations, kept, KG.valid, KG.test)


def asked(triple, direction):
    h, r, t = triple
    entity, relation, answer = (h, r, t) if direction == "tail" else (t, r + KG.num_relations, h)
    return Questions(np.array([entity], np.int32), np.array([relation], np.int32)), np.array([answer], np.int32)


def parallel(count) -> list[list[int]]:
    """Triples whose ends another triple joins too, and some others."""
    rows = KG.train[KG.train[:, 0] != KG.train[:, 2]]
    _, place, times = np.unique(np.sort(rows[:, ::2], 1), axis=0, return_inverse=True, return_counts=True)
    several = times[place.ravel()] > 1
    return [*rows[several][:count].tolist(), *rows[~several][:count].tolist()]


@pytest.mark.parametrize("nearby", [0, 30])
@pytest.mark.parametrize("exclude", ["edge", "pair"])
def test_of_a_path_model(exclude, nearby) -> None:
    torch.manual_seed(0)
    model = PathModel(KG, PathConfig(dim=4, layers=3, exclude=exclude, neighbourhood=nearby)).eval()
    for direction, (h, r, t) in zip(["tail", "head"] * 3, parallel(3), strict=True):
        questions, answers = asked((h, r, t), direction)
        scores = model.score_held_out(questions, answers)
        if nearby:  # its nodes are those of the graph as it is
            nodes, _ = model.graph_near(int(questions.entities[0]))
            assert torch.equal(scores[0].topk(len(nodes)).indices.sort().values.int(), torch.from_numpy(nodes))
            if answers[0] in nodes:
                assert not torch.equal(scores, model.score(questions))
            continue
        same = {(h, r, t)} if exclude == "edge" else {(h, s, t) for s in range(4)} | {(t, s, h) for s in range(4)}
        less = without(lambda *triple, same=same: triple in same)
        other = PathModel(less, model.config).eval()
        other.load_state_dict(model.state_dict())
        typical = model.training_graph.typical  # of the whole graph, as in training
        other._graphs["train"] = MessageGraph.build(less.train, 90, 4, typical=typical)
        torch.testing.assert_close(scores, other.score(questions))
        assert not torch.allclose(scores, model.score(questions))


def text_config(**text):
    return TextConfig(max_tokens=48, short_words=50, **text)


@pytest.mark.parametrize(
    "text",
    [
        {"neighbours": 20, "exclude": "answer"},
        {"neighbours": 20, "exclude": "edge"},
        {"neighbours_per_relation": 20, "exclude": "edge"},
    ],
)
def test_of_a_text_model(text, tiny_backbone) -> None:
    config = TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone)), text=text_config(**text))
    model = TextModel(KG, config).eval()
    by_name = text["exclude"] == "answer"
    seen = 0
    for direction, (h, r, t) in zip(["tail", "head"] * 2, parallel(2), strict=True):
        questions, answers = asked((h, r, t), direction)
        queries, own = model.encode_held_out(questions, answers)
        ends = {h, t}
        less = without(lambda *x, h=h, r=r, t=t, ends=ends: {x[0], x[2]} == ends if by_name else x == (h, r, t))
        other = TextModel(less, config, model.towers).eval()
        np.testing.assert_allclose(queries, other.encode_questions(questions), atol=1e-5)
        np.testing.assert_allclose(own, other.encode_entities(answers), atol=1e-5)
        scores = model.score_held_out(questions, answers)[0].numpy()
        expected = queries[0] @ model.encode_entities(np.arange(90, dtype=np.int32)).T
        expected[answers[0]] = queries[0] @ own[0]
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        seen += not np.allclose(queries, model.encode_questions(questions), atol=1e-4)
    assert seen  # the texts did name some


def test_of_a_mixture_each_expert_holds_it_out(tiny_backbone) -> None:
    torch.manual_seed(0)
    text = text_config(neighbours_per_relation=20, exclude="edge")
    experts = {
        "text": TextModel(KG, TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone)), text=text)).eval(),
        "paths": PathModel(KG, PathConfig(dim=4, layers=3)).eval(),
    }
    model = FusedModel(KG, FusedConfig(), experts).eval()
    questions, answers = asked(parallel(1)[0], "tail")
    parts = [expert.score_held_out(questions, answers).log_softmax(1) for expert in experts.values()]
    expected = (0.5 * parts[0] + 0.5 * parts[1]).log_softmax(1)
    torch.testing.assert_close(model.score_held_out(questions, answers), expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(model.score(questions), expected, atol=1e-3)
