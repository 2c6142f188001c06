"""Names of entities and relations, looked up as people write them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from little_world import write_run
from satkgc.completion import Completer, NewEntity, UnknownNameError
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, Vocabulary

pytest_plugins = ["world"]


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
