"""Answers of a loaded run against scores computed the long way."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import agree

from satkgc.completion import Answer, Completer, NewEntity, Question, Role
from satkgc.errors import SatkgcError
from satkgc.models import Questions
from satkgc.training import RunFolder

pytest_plugins = ["world"]


@pytest.fixture(scope="module")
def oracle(completer):
    """All scores of a query (entity, directed relation), each encoded alone."""
    model = completer._engine.model
    everything = model.encode_entities(np.arange(completer.kg.num_entities, dtype=np.int32))

    def scores(entity, directed):
        return everything @ model.encode_questions(Questions(np.array([entity]), np.array([directed])))[0]

    return scores


def known_of(kg, entity, directed):
    """Known answers by looking at every triple."""
    triples = np.concatenate([kg.train, kg.valid, kg.test]).tolist()
    if directed < 4:
        return {t for h, r, t in triples if (h, r) == (entity, directed)}
    return {h for h, r, t in triples if (t, r + 4) == (entity, directed)}


@pytest.mark.parametrize("directed", [0, 2, 3, 5, 7])
@pytest.mark.parametrize("drop", [False, True])
def test_answers_are_the_best_of_all_entities(completer, oracle, directed, drop):
    for entity in (0, 5, 33):
        name, relation = f"Q{entity}", completer.kg.relations.id(directed % 4)
        ask = completer.tails if directed < 4 else lambda e, r, **o: completer.heads(r, e, **o)
        answers = ask(name, relation, k=60, drop_known=drop)
        known = known_of(completer.kg, entity, directed)
        usable = set(range(90)) - (known if drop else set())
        if directed % 4 != 3 and entity not in known:
            usable.discard(entity)  # nothing is born in itself; but places may be near themselves
        agree(answers, oracle(entity, directed), usable, 60)
        assert {int(a.id[1:]) for a in answers if a.known} == known & {int(a.id[1:]) for a in answers}
        assert [a.score for a in answers] == sorted((a.score for a in answers), reverse=True)


def test_known_triples_come_from_every_split(completer):
    kg = completer.kg
    for split in ("train", "valid", "test"):
        h, r, t = kg.split(split)[7].tolist()
        answers = completer.tails(f"Q{h}", kg.relations.id(r), k=90)
        assert next(a for a in answers if a.id == f"Q{t}").known, split


def test_filters_narrow_the_answers_and_nothing_else(completer, oracle):
    full = {a.id: a for a in completer.tails("Q3", "knows", k=90)}
    some = tuple(f"Q{i}" for i in range(0, 90, 4))
    listed = completer.tails("Q3", "knows", k=90, among=some)
    assert {a.id for a in listed} == set(some) & set(full)
    for answer in listed:
        same = full[answer.id]
        assert (answer.known, answer.probability) == (same.known, pytest.approx(same.probability, rel=1e-3))
    kg = completer.kg
    triples = np.concatenate([kg.train, kg.valid, kg.test])
    heads = {f"Q{h}" for h, r, _ in triples.tolist() if r == 1}
    typed = completer.tails("Q3", "knows", k=90, role=Role("capital of", "head"))
    assert {a.id for a in typed} == heads & set(full)
    tail = int(triples[triples[:, 1] == 1][0, 2])
    narrow = {f"Q{h}" for h, r, t in triples.tolist() if (r, t) == (1, tail)}
    typed = completer.tails("Q3", "knows", k=90, role=Role("capital of", "head", f"Q{tail}"))
    assert {a.id for a in typed} == narrow & set(full)
    both = completer.tails("Q3", "knows", k=90, role=Role("capital of", "head"), among=some, drop_known=True)
    assert {a.id for a in both} == {i for i in heads & set(some) & set(full) if not full[i].known}


def test_thresholds(completer):
    answers = completer.tails("Q3", "knows", k=40)
    middle = answers[20]
    assert completer.tails("Q3", "knows", k=40, min_score=middle.score - 1e-7)[-1].score >= middle.score - 1e-6
    assert len(completer.tails("Q3", "knows", k=40, min_score=middle.score + 1e-6)) <= 20
    chance = sorted(a.probability for a in answers)[20]
    kept = completer.tails("Q3", "knows", k=40, min_probability=chance)
    assert {a.id for a in kept} == {a.id for a in answers if a.probability >= chance}
    assert completer.tails("Q3", "knows", min_score=1.5) == []


def test_a_batch_answers_as_each_question_alone(completer):
    questions = [
        Question(head="Q1", relation="knows", k=3),
        Question(head="Q1", relation="knows", k=30, drop_known=True),
        Question(relation="near", tail=NewEntity("bora", "a town"), k=5),
        Question(head="Q1", tail="Q2"),
        Question(head=NewEntity("bora", "a town"), tail=NewEntity("tamil")),
        Question(head="Q8", relation="born in", among=("Q1", "Q2")),
    ]
    together = completer.ask(questions)
    assert [len(a) for a in together] == [3, 30, 5, 4, 4, 2]
    for question, answers in zip(questions, together, strict=True):
        alone = completer.ask([question])[0]
        assert [a.score for a in alone] == pytest.approx([a.score for a in answers], abs=1e-5)
        assert [a.probability for a in alone] == pytest.approx([a.probability for a in answers], rel=1e-2)
    assert completer.ask([]) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"head": "Q1"}, "name two"),
        ({"head": "Q1", "relation": "near", "tail": "Q2"}, "leave one out"),
        ({"head": "Q1", "relation": "near", "k": 0}, "1 to 1000"),
        ({"head": "Q1", "relation": "near", "k": 1001}, "1 to 1000"),
        ({"head": "Q1", "tail": "Q2", "role": Role("near", "head")}, "a role restricts entities"),
        ({"head": 1, "relation": "near"}, "head is 1; give it as text"),
        ({"head": "Q1", "relation": ["near"]}, "relation is"),
        ({"head": "Q1", "relation": "near", "among": (3,)}, "among is 3"),
    ],
)
def test_what_is_no_question(wrong, message):
    with pytest.raises(SatkgcError, match=message):
        Question(**wrong)


def test_what_is_no_entity_and_no_role():
    with pytest.raises(SatkgcError, match="name is None"):
        NewEntity(None)
    with pytest.raises(SatkgcError, match="the side of a role is 'left'; say head or tail"):
        Role("near", "left")


def test_an_entity_with_its_neighbours(completer):
    kg = completer.kg
    detail = completer.entity("Q5", limit=1000)
    triples = [(h, r, t) for h, r, t in kg.train.tolist() if 5 in (h, t)]
    assert detail.total == len(triples) == len(detail.neighbours)
    seen = sorted((n.direction, n.relation, n.id) for n in detail.neighbours)
    expected = sorted(
        ("out", kg.relations.id(r), f"Q{t}") if h == 5 else ("in", kg.relations.id(r), f"Q{h}") for h, r, t in triples
    )
    assert seen == expected
    assert detail.degree == len({t if h == 5 else h for h, _, t in triples})
    assert len(completer.entity("Q5", limit=2).neighbours) == 2
    counts = [r.triples for r in completer.relation_list()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 450


def test_an_answer_is_plain_values(completer):
    answer = completer.tails("Q1", "near", k=1)[0]
    assert isinstance(answer, Answer)
    assert type(answer.score) is float
    assert type(answer.known) is bool
    assert answer.probability is None or type(answer.probability) is float


def test_each_question_has_its_answers_or_its_error(completer):
    good = [Question(head="Q1", relation="near"), Question(head="Q3", tail="Q4"), Question(relation="knows", tail="Q2")]
    bad = [Question(head="nobody", relation="near"), Question(head="Q1", relation="nearly")]
    first, unknown, second, misspelt, third = completer.ask_each([good[0], bad[0], good[1], bad[1], good[2]])
    assert [first, second, third] == completer.ask(good)
    assert str(unknown).startswith("unknown entity 'nobody'")
    assert misspelt.suggestions[0].id == "near"
    assert completer.ask_each(bad[:1])[0].what == unknown.what
    assert completer.ask_each([]) == []


def test_among_may_come_in_any_form_and_is_no_single_text(completer):
    wanted = completer.tails("Q1", "near", among=["Q3", "Q4"])
    assert len(wanted) == 2
    assert completer.tails("Q1", "near", among=(id for id in ("Q3", "Q4"))) == wanted
    assert completer.tails("Q1", "near", among=np.array(["Q3", "Q4"])) == wanted
    assert completer.tails("Q1", "near", among=()) == []
    with pytest.raises(SatkgcError, match="among is a text; give a list of ids or names"):
        completer.tails("Q1", "near", among="Q3")
    with pytest.raises(SatkgcError, match="relations are given as a text; give a list"):
        completer.propose("out.tsv", relations="near")


def test_a_run_does_where_its_folder_would(prepared, completer):
    assert Completer.load(RunFolder.load(prepared)).tails("Q1", "near") == completer.tails("Q1", "near")


def test_how_much_a_question_is(completer, monkeypatch):
    model, read = completer._engine.model, []
    encode = model.encode_questions
    monkeypatch.setattr(model, "encode_questions", lambda some, **how: read.append(len(some)) or encode(some, **how))
    for question in (
        Question(head="Q1", relation="near"),
        Question(relation="near", tail="Q2"),
        Question("Q1", tail="Q2"),
    ):
        completer.ask([question])
        assert completer.texts_read(question) == read[-1]
