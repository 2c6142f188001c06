"""The rules that put names, descriptions and relations into words."""

from __future__ import annotations

import pytest

from satkgc.errors import SatkgcError
from satkgc.text import TextConfig
from satkgc.text.wording import entity_text, full_text, relation_label, relation_text


@pytest.mark.parametrize(
    ("name", "description", "text"),
    [
        ("Ska", "Ska is a music genre", "Ska: is a music genre"),
        ("Ska", "A music genre", "Ska: A music genre"),
        ("cat", "category of things", "cat: category of things"),  # a name in front of a longer word stays
        ("U2", "U2, an Irish band", "U2: , an Irish band"),
        ("dog", "", "dog:"),
        ("dog", "dog", "dog:"),
        (" dog ", "  a   pet ", "dog: a pet"),
    ],
)
def test_name_then_description(name: str, description: str, text: str) -> None:
    assert entity_text(name, description, TextConfig()) == text


def test_a_description_is_cut_unless_the_whole_is_asked_for() -> None:
    config = TextConfig(description_words=2)
    assert entity_text("Ska", "a music genre", config) == "Ska: a music"
    assert entity_text("Ska", "a music genre", config, whole=True) == "Ska: a music genre"
    assert entity_text("Ska", "a music genre", TextConfig(description_words=0)) == "Ska: a music genre"


@pytest.mark.parametrize(("words", "short"), [(0, True), (19, True), (20, False), (60, False)])
def test_short_counts_the_words_of_the_whole_description(words: int, short: bool) -> None:
    config = TextConfig(description_words=5)
    assert config.names_neighbours(" ".join(["b"] * words)) is short


def test_no_text_is_followed_by_neighbours_where_none_are_to_be_named() -> None:
    assert TextConfig(short_words=3).names_neighbours("two words")
    assert not TextConfig(short_words=2).names_neighbours("two words")
    assert not TextConfig(neighbours=0).names_neighbours("")
    assert TextConfig(neighbours=0, neighbours_per_relation=1).names_neighbours("")


def test_neighbours_are_named_alone_or_by_relation() -> None:
    near = [(0, "dog "), (0, " wolf"), (0, "fox"), (3, "pack")]

    def read(**settings: int) -> str:
        return full_text("canid", "a carnivore", near, TextConfig(**settings), ["is", "has", "in", "of"].__getitem__)

    assert read(neighbours=3) == "canid: a carnivore dog wolf fox"
    assert read(neighbours=1, neighbours_per_relation=2) == "canid: a carnivore ; is : dog , wolf ; of : pack"
    assert read(neighbours=0) == read(short_words=2) == "canid: a carnivore"


@pytest.mark.parametrize(
    ("id", "name", "order", "text"),
    [
        ("/people/person/profession", "people person profession", "leaf-first", "profession person people"),
        ("/film/film/genre", "film film genre", "leaf-first", "genre film"),  # each word group once
        (
            "/a/team/current_roster./sports/team/position",
            "…",
            "leaf-first",
            "position team sports current roster a",
        ),
        ("_hypernym", "hypernym", "leaf-first", "hypernym"),
        ("/people/person/profession", "people person profession", "given", "people person profession"),
    ],
)
def test_relation_order(id: str, name: str, order: str, text: str) -> None:
    config = TextConfig(relation_order=order)  # type: ignore[arg-type]
    assert relation_text(id, name, config) == text
    assert relation_text(id, name, config, inverse=True) == f"inverse {text}"


@pytest.mark.parametrize(
    ("id", "name", "label"),
    [
        ("/people/person/place_of_birth", "people person place of birth", "place of birth"),  # a name made of the id
        ("/people/person/place_of_birth", "/people/person/place_of_birth", "place of birth"),
        ("/people/person/place_of_birth", "born in", "born in"),
        ("_hypernym", "hypernym", "hypernym"),
        ("P31", "instance of ", "instance of"),
    ],
)
def test_neighbours_are_labelled_by_a_relations_own_name_or_else_the_leaf(id: str, name: str, label: str) -> None:
    assert relation_label(id, name) == label
    assert relation_label(id, name, inverse=True) == f"inverse {label}"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("max_tokens", 4, "model.text.max_tokens is 4; set it to 8 or more"),
        ("neighbours", -1, "model.text.neighbours is -1; set it to 0 or more"),
        ("neighbours_per_relation", True, "model.text.neighbours_per_relation is True; it takes a whole number"),
        ("neighbour_dropout", 1.5, "model.text.neighbour_dropout is 1.5; set it to 0 or more and at most 1"),
        ("exclude", "tail", "model.text.exclude is 'tail'; it takes one of answer, edge"),
        (
            "relation_order",
            "root-first",
            "model.text.relation_order is 'root-first'; it takes one of given, leaf-first",
        ),
        ("entity_format", "colon", "unknown setting model.text.entity_format"),
    ],
)
def test_nonsense_is_refused_by_name(setting: str, value: object, message: str) -> None:
    with pytest.raises(SatkgcError, match=message):
        TextConfig(**{setting: value})
