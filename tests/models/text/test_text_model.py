"""The text model: what it reads for entities of the graph and for new ones, its copies, and what it saves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from satkgc.models import Fact, LossConfig, NewEntityText, Questions, TextModel
from satkgc.sampling import Needs
from satkgc.text import TextConfig, TokenBatch
from tasks import Task


def rows_of(tokens: TokenBatch) -> list[list[int]]:
    return [tokens.ids[a:b].tolist() for a, b in zip(tokens.ptr[:-1], tokens.ptr[1:], strict=True)]


@pytest.fixture(scope="module")
def task(tiny_backbone):
    return Task(tiny_backbone)


def with_text(task, **text):
    """The same towers over other texts."""
    config = task.model.config.replace(text=TextConfig(max_tokens=60, **text))
    return TextModel(task.kg, config, task.towers)


def test_new_entities_stand_among_those_of_the_graph_in_the_order_asked(task):
    model, count = task.model, task.kg.num_entities
    new = [NewEntityText("aaaa 91", "of a"), NewEntityText("oooo 92")]
    entities = np.array([count + 1, 5, count, 3, count + 1], np.int32)
    relations = np.array([0, 4, 2, 1, 3], np.int32)
    queries = rows_of(model.query_tokens(Questions(entities, relations, new)))
    answers = rows_of(model.entity_tokens(entities, new))
    for row, (entity, relation) in enumerate(zip(entities, relations, strict=True)):
        one = entities[row : row + 1], relations[row : row + 1]
        assert queries[row] == rows_of(model.query_tokens(Questions(*one, new)))[0]
        assert answers[row] == rows_of(model.entity_tokens(one[0], new))[0]
        if entity < count:
            assert queries[row] == rows_of(task.texts.queries([entity], [relation]))[0]
        else:
            text = new[entity - count]
            assert answers[row] == rows_of(task.texts.new_entity(text.name, text.description))[0]
    vectors = model.encode_entities(entities, new)
    assert np.allclose(vectors[0], vectors[4], atol=1e-6)
    assert not np.allclose(vectors[0], vectors[2], atol=1e-3)


def test_an_entity_of_the_graph_described_anew_reads_the_same(task):
    """Its text is that of a new entity with the same words and the same facts."""
    kg, entity = task.kg, 7
    facts = [Fact(int(r), int(t), kg.entities.name(t)) for h, r, t in kg.train if h == entity]
    facts += [Fact(int(r) + kg.num_relations, int(h), kg.entities.name(h)) for h, r, t in kg.train if t == entity]
    assert facts
    text = NewEntityText(kg.entities.name(entity), kg.entities.description(entity), tuple(facts))
    number = np.array([kg.num_entities], np.int32)
    for settings in ({}, {"neighbours": 0}, {"neighbours_per_relation": 5}):
        model = with_text(task, **settings)
        known = model.entity_tokens(np.array([entity], np.int32))
        assert rows_of(model.entity_tokens(number, [text])) == rows_of(known), settings


def test_bare_names_of_neighbours_come_once_and_by_entity(task):
    model = with_text(task, neighbours=5)
    number = np.array([task.kg.num_entities], np.int32)
    facts = [Fact(2, 9, "uuuu"), Fact(0, 4, "aaaa"), Fact(5, 9, "uuuu")]
    (tokens,) = rows_of(model.entity_tokens(number, [NewEntityText("the", "", tuple(facts))]))
    text = model.towers.tokenizer.decode(tokens)
    assert text.index("aaaa") < text.index("uuuu")
    assert text.count("uuuu") == 1


def test_hops_are_wanted_where_the_loss_reads_them(task, tiny_backbone):
    assert task.model.needs == Needs(hops=True)
    assert Task(tiny_backbone, loss=LossConfig()).model.needs == Needs()


def test_a_frozen_copy_shares_the_texts_and_not_the_weights(task):
    task.model.collate(task.batch)
    frozen = task.model.frozen()
    assert frozen.texts is task.texts
    assert frozen.kg is task.kg
    assert not frozen.training
    assert task.model.training
    pairs = zip(frozen.parameters(), task.model.parameters(), strict=True)
    assert all(torch.equal(one, other) and one.data_ptr() != other.data_ptr() for one, other in pairs)


def test_it_opens_without_the_weights_of_its_loss_and_over_texts_that_are_there(task, tmp_path):
    with torch.no_grad():
        task.model.contrastive.beta.fill_(0.25)
    task.model.save(tmp_path)
    opened = TextModel.load(tmp_path, task.kg, task.model.config, texts=task.texts)
    assert opened.texts is task.texts
    assert opened.contrastive.beta.item() == 0.25
    (tmp_path / "loss.safetensors").unlink()  # that of a loss of one's own, which has none
    again = TextModel.load(tmp_path, task.kg, task.model.config)
    assert again.contrastive.beta.item() == pytest.approx(task.model.config.loss.beta)
    questions = Questions(task.kg.train[:4, 0], task.kg.train[:4, 1])
    assert torch.equal(opened.score(questions), again.score(questions))
