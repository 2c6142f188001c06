"""What models that read texts by a language model have in common: the encoders, and entities as tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from satkgc.arrays import Int32
from satkgc.kg import KnowledgeGraph
from satkgc.models.model import Model, NewEntityText, Questions
from satkgc.models.text.towers import Towers
from satkgc.models.vector_model import VectorModel
from satkgc.settings import Settings
from satkgc.text import Texts, TokenBatch

ROWS = 16_384  # texts compared at a time


class TextReader(Model):
    """Reads words, so that it can be asked about entities that the graph never had."""

    reads_text = True

    def __init__(
        self, kg: KnowledgeGraph, config: Settings, towers: Towers | None = None, texts: Texts | None = None
    ) -> None:
        super().__init__(kg, config)
        self.towers = towers or Towers.create(self.config.encoder)
        self.texts = texts or Texts(kg, self.towers.tokenizer, self.config.text)

    @abstractmethod
    def query_tokens(self, questions: Questions) -> TokenBatch:
        """What is read of each question."""

    def entity_tokens(self, entities: Int32, new: Sequence[NewEntityText] = ()) -> TokenBatch:
        """What is read of each entity."""
        return self.tokens(entities, new, None)

    def tokens(self, entities: Int32, new: Sequence[NewEntityText], relations: Int32 | None) -> TokenBatch:
        """Of entities of the graph from its stored tokens, of new ones from their words, in the order of the rows.

        With relations, as questions.
        """
        entities = np.asarray(entities, np.int32)
        is_new = entities >= self.kg.num_entities
        if not is_new.any():
            return self._stored(entities, relations)
        late = [new[entity] for entity in entities[is_new] - self.kg.num_entities]
        words = self.texts.new_entities(
            [(text.name, text.description) for text in late],
            None if relations is None else relations[is_new],
            [self._neighbours(text) for text in late],
        )
        if is_new.all():
            return words
        stored = self._stored(entities[~is_new], None if relations is None else relations[~is_new])
        order = np.concatenate([np.flatnonzero(~is_new), np.flatnonzero(is_new)])
        return TokenBatch.concatenate([stored, words]).select(np.argsort(order))

    def _over(self, kg: KnowledgeGraph) -> Self:
        return type(self)(kg, self.config, self.towers)

    def _stored(self, entities: Int32, relations: Int32 | None) -> TokenBatch:
        return self.texts.entities(entities) if relations is None else self.texts.queries(entities, relations)

    def _neighbours(self, text: NewEntityText) -> list[tuple[int, str]]:
        """The neighbours that a new entity's text names: by relation, or bare names, each once, whatever joins them."""
        if self.config.text.neighbours_per_relation:
            return [(fact.relation, fact.name) for fact in text.facts]
        names = {fact.entity: fact.name for fact in text.facts}
        return [(0, names[entity]) for entity in sorted(names)]


class EncoderModel(TextReader, VectorModel):
    """One whose scores are the cosines of the encoders' vectors."""

    def changed_entities(self, before: Self) -> Int32:
        """New ones, and those of whose text the encoder reads other tokens: a neighbour's name may have come in."""
        size, parts = before.kg.num_entities, []
        for start in range(0, size, ROWS):
            entities = np.arange(start, min(start + ROWS, size), dtype=np.int32)
            own, old = self.entity_tokens(entities), before.entity_tokens(entities)
            other = np.diff(own.ptr) != np.diff(old.ptr)
            same = np.flatnonzero(~other)
            own, old = own.select(same), old.select(same)
            other[same[np.repeat(np.arange(len(same)), np.diff(own.ptr))[own.ids != old.ids]]] = True
            parts.append(entities[other])
        return np.concatenate([*parts, np.arange(size, self.kg.num_entities, dtype=np.int32)])
