"""Entities that the graph never had: asked about in words, with facts, and added."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import agree

from satkgc.completion import Completer, NewEntity, Role
from satkgc.errors import SatkgcError
from satkgc.models import NewEntityText, Questions
from satkgc.text import Texts

pytest_plugins = ["world"]


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
