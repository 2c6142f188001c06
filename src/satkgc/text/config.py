"""How an entity or a query is put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from satkgc.errors import SatkgcError

EntityFormat = Literal["colon", "sep"]
RelationOrder = Literal["given", "leaf-first"]
Hide = Literal["answer", "edge"]


@dataclass(frozen=True)
class TextConfig:
    """Settings of the texts that the language model reads; defaults are those the paper's results were made with."""

    max_tokens: int = 50
    """Tokens of a query or an entity, special tokens included; a longer head text is cut, a relation never."""
    entity_format: EntityFormat = "colon"
    """"colon": `name: description`, the name cut off the description's front. "sep": `name [SEP] description`."""
    description_words: int = 50
    """Words of a description that are read; 0 reads them all."""
    neighbours: int = 10
    """Names of training-graph neighbours that follow a short description, by ascending entity index; 0 adds none."""
    neighbour_relations: bool = False
    """Name neighbours by relation, so many for each: `; hypernym : dog , wolf ; inverse has part : pack`."""
    bare_share: float = 0.0
    """Share of the training texts that name no neighbours though there are some, so that training also shows what a new
    entity, which has none, looks like. If any do, texts without neighbours read the whole description."""
    short_words: int = 20
    """A description with fewer words than this is short."""
    hide: Hide = "answer"
    """What training keeps out of the listed neighbours. "answer": the answer's name. "edge": only the triple asked
    about, so that the name stays where another triple joins the two, as it does at evaluation."""
    relation_order: RelationOrder = "given"
    """"given": the relation's name. "leaf-first": an id like `/people/person/profession` reads from its leaf."""

    @property
    def reads_whole(self) -> bool:
        """Whether a text that no neighbours follow reads the whole description."""
        return self.neighbours > 0 and self.bare_share > 0

    def names_neighbours(self, description: str) -> bool:
        """Whether a text with this description is followed by neighbours, where there are any."""
        return self.neighbours > 0 and len(description.split()) < self.short_words

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 8), ("description_words", 0), ("neighbours", 0), ("short_words", 0)):
            if getattr(self, name) < least:
                raise SatkgcError(f"text.{name} is {getattr(self, name)}", remedy=f"set it to {least} or more")
        if not 0 <= self.bare_share <= 1:
            raise SatkgcError(f"text.bare_share is {self.bare_share}", remedy="set it to a number from 0 to 1")
        for name, kind in (("entity_format", EntityFormat), ("relation_order", RelationOrder), ("hide", Hide)):
            allowed = get_args(kind)
            if getattr(self, name) not in allowed:
                raise SatkgcError(f"text.{name} is {getattr(self, name)!r}", remedy=f"choose one of {allowed}")
