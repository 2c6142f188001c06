"""The language of texts, told by script and small words."""

from __future__ import annotations

import pytest

from satkgc import KnowledgeGraph
from satkgc.kg import Vocabulary, text_language
from satkgc.kg.language import guess_language
from satkgc.training import Config
from satkgc.training.language import language_note
from satkgc.training.recipes import make_config


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("English", "The capital of France, on the Seine, and the largest city in the country"),
        ("English", "a composer a town a musical instrument Lucca Salzburg"),
        ("German", "Die Hauptstadt von Frankreich an der Seine und die größte Stadt des Landes"),
        ("French", "La capitale de la France, sur la Seine, et la plus grande ville du pays"),
        ("Spanish", "La capital de Francia, a orillas del Sena, y la ciudad más grande del país"),
        ("Portuguese", "A capital da França, às margens do Sena, e a maior cidade do país"),
        ("Italian", "La capitale della Francia, sulla Senna, e la più grande città del paese"),
        ("Dutch", "De hoofdstad van Frankrijk aan de Seine en de grootste stad van het land"),
        ("Cyrillic", "Столица Франции на Сене и крупнейший город страны"),
        ("Greek", "Η πρωτεύουσα της Γαλλίας"),
        ("Chinese", "法国首都和最大城市"),
        (None, "GO_0001 Q42 xyzzy frobnicate kinase"),
        (None, ""),
    ],
)
def test_languages(language: str | None, text: str) -> None:
    assert guess_language([text]) == language


def graph(description: str) -> KnowledgeGraph:
    entities = Vocabulary.build("entity", ["a", "b"], ["A", "B"], [description, ""])
    relations = Vocabulary.build("relation", ["r"], ["r"], [""])
    return KnowledgeGraph.from_arrays("g", entities, relations, [(0, 0, 1)])


def test_texts_that_the_encoder_does_not_read_are_noted() -> None:
    german, english = graph("Die Hauptstadt des Landes und der Sitz der Regierung"), graph("the seat of the government")
    assert (text_language(german), text_language(english)) == ("German", "English")
    note = language_note(german, Config())
    assert note is not None
    assert "the texts look German, and the encoder minilm was trained on English" in note
    assert "\n" not in note
    assert language_note(german, make_config("quick")) == note  # before its experts begin
    assert language_note(english, Config()) is None


def test_the_sample_of_wordnet_is_english() -> None:
    assert text_language(KnowledgeGraph.load("wordnet-sample")) == "English"
