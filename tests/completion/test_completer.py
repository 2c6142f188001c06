"""Answers of a loaded run against scores computed the long way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from little_world import write_run
from satkgc.completion import Answer, Completer, NewEntity, Question, Role, UnknownNameError
from satkgc.completion.relations import RelationCalibration
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary
from satkgc.models import NewEntityText, Questions
from satkgc.text import Texts
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


def agree(answers, scores, usable, k):
    """The answers are the k best usable entities; models may round a batch differently, so scores are compared."""
    best = sorted((scores[i] for i in usable), reverse=True)[:k]
    np.testing.assert_allclose([a.score for a in answers], best, atol=1e-5)
    places = [int(a.id[1:]) for a in answers]
    assert len(set(places)) == len(places)
    assert set(places) <= set(usable)
    np.testing.assert_allclose([scores[i] for i in places], best, atol=1e-5)


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


def test_relations_of_a_pair_are_asked_from_both_ends_and_weighed(completer):
    answers = completer.relations("Q3", "Q41")
    assert {a.name for a in answers} == {"born in", "capital of", "knows", "near"}
    assert [a.probability for a in answers] == sorted((a.probability for a in answers), reverse=True)
    engine, logits = completer._engine, {}
    fit, frequency = engine.calibration.relations, engine.names.frequency
    assert fit.questions >= 20
    for answer in answers:
        forth = next(a for a in completer.tails("Q3", answer.id, k=90) if a.id == "Q41")
        back = next(a for a in completer.heads(answer.id, "Q41", k=90) if a.id == "Q3")
        assert answer.score == pytest.approx((forth.score + back.score) / 2, abs=1e-5)
        assert answer.known == forth.known == back.known
        share = (frequency[completer.kg.relations.find(answer.id)] + 1) / (frequency + 1).sum()
        logits[answer.id] = fit.by_tail * forth.score + fit.by_head * back.score + fit.by_frequency * math.log(share)
    assert not any(a.known for a in answers)
    total = sum(math.exp(logit) for logit in logits.values())
    joined = 1 / (1 + math.exp(fit.steep * (fit.none - math.log(total))))
    for answer in answers:
        assert answer.probability == pytest.approx(joined * math.exp(logits[answer.id]) / total, rel=1e-3)
    assert completer.relations("Q3", "Q41", among=("near",)) == [a for a in answers if a.id == "near"]
    assert len(completer.relations("Q3", "Q41", k=2)) == 2


def test_a_least_score_comes_before_the_count_of_relations(completer, monkeypatch):
    by_frequency = replace(completer._engine.calibration, relations=RelationCalibration(by_tail=0, by_head=0))
    monkeypatch.setattr(completer._engine, "calibration", by_frequency)
    pairs = [(f"Q{h}", f"Q{t}") for h in range(6) for t in range(40, 44)]
    for pair in pairs:
        first, *others = completer.relations(*pair)
        best = max(others, key=lambda a: a.score)
        if best.score > first.score:
            between = (best.score + first.score) / 2
            found = completer.relations(*pair, k=1, min_score=between)
            assert len(found) == 1
            assert found[0].score > between
            return
    pytest.fail("the most frequent relation has the highest score everywhere")


def test_a_known_relation_of_a_pair_competes_with_the_others(completer):
    h, r, t = completer.kg.valid[0].tolist()
    answers = completer.relations(f"Q{h}", f"Q{t}")
    known = {a.id for a in answers if a.known}
    assert completer.kg.relations.id(r) in known
    left = completer.relations(f"Q{h}", f"Q{t}", drop_known=True)
    assert {a.id for a in left} == {"born_in", "capital_of", "knows", "near"} - known
    assert left == [a for a in answers if not a.known]
    assert 0 < sum(a.probability for a in answers) < 1  # the rest is that there is none


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


def test_new_text_that_repeats_an_entity_is_answered_alike(completer):
    """An entity with a long description gets no neighbours' names, so its words alone are what the model reads."""
    model = completer._engine.model
    long = " ".join(["word"] * 25)
    a = completer.tails(NewEntity("bara", long), "knows", k=90)
    vector = model.encode_questions(Questions(np.array([90]), np.array([2]), [NewEntityText("bara", long)]))[0]
    entities = model.encode_entities(np.arange(90, dtype=np.int32))
    agree(a, entities @ vector, set(range(90)), 90)
    assert not any(answer.known for answer in a)


def facts_of(kg, entity):
    """The training triples that join an entity to others, as roles that it has."""
    triples = [(h, kg.relations.id(r), t) for h, r, t in kg.train.tolist() if h != t]
    out = [Role(r, "head", kg.entities.id(t)) for h, r, t in triples if h == entity]
    return out + [Role(r, "tail", kg.entities.id(h)) for h, r, t in triples if t == entity]


@pytest.mark.parametrize("by_relation", [False, True])
def test_a_new_entity_with_an_old_one_s_facts_is_answered_like_it(completer, by_relation, monkeypatch):
    model, kg = completer._engine.model, completer.kg
    if by_relation:
        config = model.config.text.replace(neighbours_per_relation=10, max_tokens=60)
        monkeypatch.setattr(model, "texts", Texts(kg, model.texts.tokenizer, config))
        monkeypatch.setattr(model, "config", model.config.replace(text=config))
    for entity in (1, 5, 33):
        assert len(kg.entities.description(entity).split()) < 20, "too long for neighbours: the test shows nothing"
        facts = facts_of(kg, entity)
        new = NewEntity(kg.entities.name(entity), kg.entities.description(entity), facts=tuple(facts[::-1]))
        bare = NewEntity(new.name, new.description)
        for relation in ("knows", "near"):
            old = {a.id: a.score for a in completer.tails(f"Q{entity}", relation, k=91)}
            like, unlike = ({a.id: a.score for a in completer.tails(e, relation, k=91)} for e in (new, bare))
            assert [like[id] for id in old] == pytest.approx(list(old.values()), abs=1e-5)
            assert [unlike[id] for id in old] != pytest.approx(list(old.values()), abs=1e-5)
            known = {fact.other for fact in facts if (fact.relation, fact.side) == (relation, "head")}
            assert {a.id for a in completer.tails(new, relation, k=91) if a.known} == known
            assert not known & {a.id for a in completer.tails(new, relation, k=91, drop_known=True)}


def test_facts_are_kept_by_an_added_entity_and_refused_where_they_are_wrong(prepared):
    completer = Completer.load(prepared)
    new = NewEntity("Zanzibar", "an island", facts=(Role("near", "tail", "Q4"),))
    asked = [a.score for a in completer.heads("near", new, k=5)]
    id = completer.add(new)
    assert [a.score for a in completer.heads("near", id, k=91) if a.id != id][:5] == pytest.approx(asked, abs=1e-5)
    assert [a.id for a in completer.heads("near", id, k=91) if a.known] == ["Q4"]
    before = Completer.load(prepared).entity("Q4", limit=1000)
    (seen,), (there,) = completer.entity(id).neighbours, completer.entity("Q4", limit=1000).neighbours[before.total :]
    assert (seen.relation, seen.direction, seen.id) == ("near", "in", "Q4")
    assert (there.relation, there.direction, there.id) == ("near", "out", id)
    assert completer.entity(id).degree == completer.entity(id).total == completer.entity("Q4").total - before.total == 1
    whole = completer.entity("Q4", limit=1000).neighbours  # a page at a time they are the same, the added one too
    assert sum((completer.entity("Q4", 2, at).neighbours for at in range(0, len(whole) + 4, 2)), ()) == whole
    some = (Role("near", "head", f"Q{i}") for i in (4, 5))  # any iterable will do
    assert {a.id for a in completer.tails(NewEntity("x", facts=some), "near", k=91) if a.known} == {"Q4", "Q5"}
    for wrong, message in ((Role("near", "head", "nobody"), "nobody"), (Role("nearr", "head", "Q4"), "nearr")):
        for call in (lambda e: completer.tails(e, "near"), completer.add):
            with pytest.raises(SatkgcError, match=message):
                call(NewEntity("x", facts=(wrong,)))
    for wrong in (Role("near", "head"), ("near", "Q4")):
        with pytest.raises(SatkgcError, match="is no fact"):
            NewEntity("x", facts=(wrong,))
    with pytest.raises(SatkgcError, match=r"the facts of 'x' are Role.*give a list"):
        NewEntity("x", facts=Role("near", "head", "Q4"))


def test_facts_are_known_from_both_sides(prepared):
    completer = Completer.load(prepared)
    born_there = Role("born in", "head", "Q4")
    before = {a.id for a in completer.tails("Q1", "near", k=91, role=born_there)}
    new = NewEntity("Zed", id="Z", facts=(Role("born in", "head", "Q4"), Role("knows", "tail", "Q5")))

    def known(answers):
        return {a.id for a in answers if a.known}

    for entity, id in ((new, None), (completer.add(new), "Z")):
        assert known(completer.tails(entity, "born in", k=91)) == {"Q4"}
        assert known(completer.heads("knows", entity, k=91)) == {"Q5"}
        assert known(completer.relations(entity, "Q4")) == {"born_in"}
        assert known(completer.relations("Q5", entity)) == {"knows"}
        assert "knows" not in {a.id for a in completer.relations("Q5", entity, drop_known=True)}
        assert completer.evidence(entity, "born in", "Q4").known
        assert completer.evidence("Q5", "knows", entity).known
        assert not completer.evidence("Q6", "knows", entity).known
        if id:
            assert id in known(completer.heads("born in", "Q4", k=91)) & known(completer.tails("Q5", "knows", k=91))
            assert id not in {a.id for a in completer.heads("born in", "Q4", k=91, drop_known=True)}
            assert {a.id for a in completer.tails("Q1", "near", k=91, role=born_there)} == before | {id}
            assert id not in {a.id for a in completer.tails("Q1", "near", k=91, role=Role("born in", "head", "Q7"))}
            assert "Q5" in {a.id for a in completer.tails("Q1", "near", k=91, role=Role("knows", "head", "Z"))}


def test_what_a_fact_names_does_not_change_when_names_are_added(prepared):
    completer = Completer.load(prepared)
    name = completer.kg.entities.name(33)
    assert completer.search(name)[0].id == "Q33"
    first = completer.add(NewEntity("Zed"))
    about = completer.add(NewEntity("W", facts=(Role("near", "head", "Zed"), Role("near", "head", name))))
    completer.add(NewEntity("Zed"))  # two of that name now
    completer.add(NewEntity("other", id=name))  # and an id that was a name
    assert {a.id for a in completer.tails(about, "near", k=95) if a.known} == {first, "Q33"}


def test_an_added_entity_can_be_asked_about_and_can_be_an_answer(prepared):
    completer = Completer.load(prepared)
    new = NewEntity("Zanzibar", "an island")
    asked = {a.id: pytest.approx(a.score, abs=1e-5) for a in completer.tails(new, "near", k=90)}
    id = completer.add(new)
    assert id == "new:1"
    after = {a.id: a.score for a in completer.tails(id, "near", k=91)}
    assert after.pop(id) <= 1  # near may lead back
    assert after == asked
    everything = completer.heads("near", "Q4", k=91)
    assert {a.id for a in everything} == {f"Q{i}" for i in range(90)} | {id}
    found = next(a for a in everything if a.id == id)
    assert (found.name, found.description, found.known) == ("Zanzibar", "an island", False)
    assert completer.search("zanz")[0].id == id
    assert completer.entity("Zanzibar").total == 0
    assert [a.id for a in completer.tails("Q4", "near", among=("Zanzibar", "Q1"), k=5, drop_known=True)].count(id) == 1
    assert id not in {a.id for a in completer.tails(id, "knows", k=91)}  # nobody knows themselves in this graph
    assert completer.add(NewEntity("Zanzibar", id="Z")) == "Z"
    with pytest.raises(SatkgcError, match=r"2 entities are called 'Zanzibar'.*new:1 .an island."):
        completer.tails("Zanzibar", "near")
    with pytest.raises(SatkgcError, match="there is an entity 'Q3' already"):
        completer.add(NewEntity("other", id="Q3"))
    with pytest.raises(SatkgcError, match="without a name"):
        completer.add(NewEntity(" "))


def test_names_are_looked_up_by_id_then_name_then_whatever_the_capitals(completer):
    by_id = completer.tails("Q12", "near")
    assert completer.tails("Leonardo da Mila", "near") == by_id
    assert completer.tails("leonardo DA mila", "near") == by_id
    with pytest.raises(SatkgcError, match=r"2 entities are called 'Mercury'; give the id of one: Q\d+") as error:
        completer.tails("Mercury", "near")
    assert {c.id for c in error.value.candidates} == {"Q7", "Q41"}
    with pytest.raises(
        SatkgcError, match=r"unknown entity 'Lenardo'; did you mean 'Leonardo da Mila' \(Q12\)"
    ) as error:
        completer.tails("Lenardo", "near")
    assert error.value.suggestions[0].id == "Q12"
    with pytest.raises(SatkgcError, match=r"unknown relation 'bron in'; did you mean 'born in' \(born_in\)"):
        completer.tails("Q1", "bron in")
    with pytest.raises(SatkgcError, match="without a name"):
        completer.tails(NewEntity(""), "near")


def test_half_a_character_is_refused_wherever_a_name_is_given(completer):
    half = "caf\udce9"  # what Python makes of Latin-1 on a UTF-8 terminal
    for ask in (
        lambda: completer.tails(half, "near"),
        lambda: completer.tails("Q1", half),
        lambda: completer.tails(NewEntity(half), "near"),
        lambda: completer.tails(NewEntity("a name", half), "near"),
        lambda: completer.add(NewEntity("a name", id=half)),
        lambda: completer.search(half),
    ):
        with pytest.raises(SatkgcError, match=r"'caf.udce9' is not valid Unicode"):
            ask()


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


def test_what_began_before_an_entity_was_added_is_not_found_afterwards(prepared):
    """Another thread's look at a relation's members, at the worst moment."""
    completer = Completer.load(prepared)
    names, size = completer._engine.names, len(completer.kg.entities)
    relation = names.relation("knows")

    class Late(dict):  # type: ignore[type-arg]
        def items(self):
            seen = list(super().items())
            completer.add(NewEntity("late", facts=(Role("knows", "head", "Q5"),)))  # after it was looked at
            return seen

    names.fact_answers = Late(names.fact_answers)
    assert size not in names.members(relation, "head", None)
    assert size in names.members(relation, "head", None)


def test_of_a_long_text_the_beginning_is_compared_with_relations(tmp_path, tiny_backbone):
    """Letters are compared one by one, so that a service must not be given thousands of them."""
    long = "r" * 200
    kg = KnowledgeGraph.from_arrays(
        "long",
        Vocabulary.build("entity", *[pa.array(["a", "b"])] * 3),
        Vocabulary.build("relation", *[pa.array([long, "other"])] * 3),
        [(0, 0, 1), (1, 1, 0)],
    )
    completer = Completer.load(write_run(tmp_path / "run", kg, tiny_backbone))
    with pytest.raises(UnknownNameError) as error:
        completer.tails("a", long + "x" * 1800)
    assert [near.id for near in error.value.suggestions] == [long]


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
