"""How an entity or a query is put into words."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from satkgc.settings import Settings


class TextConfig(Settings):
    """Settings of the texts that the language model reads; defaults are those the paper's results were made with."""

    section: ClassVar[str] = "model.text"

    max_tokens: int = Field(default=50, ge=8)
    """Tokens of a query or an entity, special tokens included; a longer head text is cut, a relation never."""
    description_words: int = Field(default=50, ge=0)
    """Words of a description that are read; 0 reads them all."""
    neighbours: int = Field(default=10, ge=0)
    """Names of training-graph neighbours that follow a short description, by ascending entity index; 0 adds none."""
    neighbours_per_relation: int = Field(default=0, ge=0)
    """If not 0, neighbours are named by relation, so many of each: `; hypernym : dog , wolf ; inverse has part : pack`.
    This takes the place of `neighbours`."""
    neighbour_dropout: float = Field(default=0.0, ge=0, le=1)
    """Share of the training texts that name no neighbours though there are some, so that training also shows what a new
    entity, which has none, looks like. If it is not 0, texts without neighbours read the whole description."""
    short_words: int = Field(default=20, ge=0)
    """A description with fewer words than this is short."""
    exclude: Literal["answer", "edge"] = "answer"
    """What training keeps out of a text's neighbours. "answer": the answer's name. "edge": only the training triple
    itself, so that the name stays where another triple joins the two, as it does at evaluation."""
    relation_order: Literal["given", "leaf-first"] = "given"
    """"given": the relation's name. "leaf-first": an id like `/people/person/profession` reads from its leaf."""

    @property
    def max_neighbours(self) -> int:
        """How many neighbours a text names: of each relation, where they are named by relation, or else in all."""
        return self.neighbours_per_relation or self.neighbours

    @property
    def reads_whole(self) -> bool:
        """Whether a text that no neighbours follow reads the whole description."""
        return self.max_neighbours > 0 and self.neighbour_dropout > 0

    def names_neighbours(self, description: str) -> bool:
        """Whether a text with this description is followed by neighbours, where there are any."""
        return self.max_neighbours > 0 and len(description.split()) < self.short_words
