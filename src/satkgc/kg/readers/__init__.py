"""Readers: one file a form. `read` looks at the source and calls the one that fits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from satkgc.errors import SatkgcError

if TYPE_CHECKING:
    from satkgc.kg.graph import KnowledgeGraph


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read. Every field is a keyword of `KnowledgeGraph.load` and a flag of `satkgc kg import`."""

    name: str | None = None  # what the graph is called; the file's or folder's name unless given

    # What to make of gaps.
    unlisted: Literal["error", "add"] = "error"  # a triple's entity or relation that the listing lacks
    textless: Literal["allow", "error"] = "error"  # a listed entity with neither name nor description

    # Tables (CSV, TSV, Parquet): the column names, and where the texts are.
    head: str = "head"
    relation: str = "relation"
    tail: str = "tail"
    entities: Path | None = None  # a table of entities; without one, ids serve as names
    relations: Path | None = None
    id: str = "id"  # the columns of those two tables
    label: str = "name"
    description: str = "description"

    # RDF.
    languages: tuple[str, ...] = ("en",)  # of labels and descriptions, the best first; "" is a literal without a tag

    # Where the source holds no split of its own.
    split: Literal["transductive", "inductive", "none"] = "transductive"
    valid: float = 0.05  # the share of triples (inductive: of entities) held out
    test: float = 0.05
    seed: int = 0


def read(source: Path, options: ReadOptions) -> KnowledgeGraph:
    """Read a TSV folder or archive, a table of triples or an RDF file; refuse what is none of them."""
    raise SatkgcError("no reader knows this form", where=source)
