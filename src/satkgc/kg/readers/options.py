"""How a source is to be read: every choice a reader offers, with its default and the reason for it."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from satkgc.errors import SatkgcError

log = logging.getLogger("satkgc.kg")

SplitKind = Literal["transductive", "inductive", "none"]
Unlisted = Literal["error", "add"]
Textless = Literal["error", "allow"]
Duplicates = Literal["error", "first", "last", "merge"]

SHARE, MOST = 0.05, 10_000  # to hold out for validation, and for testing, where no share is given

# What the cells of a split column may say.
SPLIT_VALUES = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
    "inference": ("inference",),
}

# For sources that declare none: `rdf:type` is what people call it, whatever the form.
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "schemas": "https://schema.org/",
    "dbo": "http://dbpedia.org/ontology/",
    "obo": "http://purl.obolibrary.org/obo/",
    "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#",
}


def expand(text: str, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """An IRI that is written with a prefix, in full; any other text as it is."""
    prefix, _, end = text.partition(":")
    return prefixes[prefix] + end if prefix in prefixes and not end.startswith("//") else text


def shorten(iri: str) -> str:
    """An IRI with its usual prefix, which `expand` undoes; any other text as it is."""
    for prefix, start in PREFIXES.items():
        if iri.startswith(start):
            return f"{prefix}:{iri.removeprefix(start)}"
    return iri


# The options that may be given more than once; one alone need be no list.
_SEVERAL = (
    "exclude", "head", "relation", "tail", "relation_name", "entities", "id", "label", "alt_label", "description",
    "literals", "graphs",
)  # fmt: skip

# As RDF has them, and with a language of two or three letters, for no other is in use: "english" is none.
_TAG = re.compile(r"(?:[A-Za-z]{2,3}|[ixIX](?=-))(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read. Every field is a keyword of `KnowledgeGraph.load` and a flag of `satkgc kg import`.

    A field that does not concern the kind of source at hand is refused (APPLIES).
    """

    # What the graph is called. None: the file's or folder's name without its ending.
    name: str | None = None

    # A triple's entity or relation that the listing lacks: an error, because it is most often a damaged file; "add"
    # takes it in, with a name made from its id.
    unlisted: Unlisted = "error"
    # A listed entity with neither name nor description: an error, because a language model has nothing to read;
    # "allow" makes a name from its id.
    textless: Textless = "error"

    # An id that is listed more than once, with different texts: an error, because one of them is wrong, or two things
    # have one id; "first" and "last" keep one row, "merge" the first name and all descriptions.
    duplicates: Duplicates = "error"

    # Relations whose triples are left out, by id or name: those that say nothing worth learning (rdf:type, owl:sameAs).
    exclude: Sequence[str] = ()

    # Folders: the file that lists the entities, for folders that carry more than one set of texts.
    entities_file: str = "entities.tsv"

    # Tables (CSV, TSV, Parquet): the columns of the triples, by name, or by position from 0 where no column has that
    # name; of several, each table takes the first that it has. None: guessed from the usual names (head, subject,
    # source …; see header.py), or columns 0, 1, 2 of a table of three columns without a header.
    head: Sequence[str] = ()
    relation: Sequence[str] = ()
    tail: Sequence[str] = ()
    # What every row says of tables without a column of relations: one for all of them, or one for each in order.
    relation_name: Sequence[str] = ()
    # The column that says train, valid, test or inference. None: the one called "split", if there is one.
    split_column: str | None = None
    # Tables of entities and of relations. None: names are made from the ids.
    entities: Sequence[Path] = ()
    relations: Path | None = None
    # The columns of those tables, the first that each has; that of relations need have none. None: guessed from the
    # usual names (id; name, label, title; description, text).
    id: Sequence[str] = ()
    label: Sequence[str] = ()
    description: Sequence[str] = ()

    # Bolt: id, label and description are properties of nodes, and so are literals.
    # RDF: label and description are predicates, by IRI or with a prefix, that give names and descriptions, the best
    # first; and other names, which stand in the description. The usual ones come after them (see rdf_texts.py).
    alt_label: Sequence[str] = ()
    # RDF: predicates whose numbers, dates and texts stand behind the description, by IRI or with a prefix; "all": every
    # one that gives no name or description. None named: literals are left out.
    literals: Sequence[str] = ()
    # RDF: languages of labels and descriptions, the best first; then those without a language, then any. In one text
    # they stand between commas; an empty one is a label without a language.
    languages: Sequence[str] = ("en",)
    # RDF: the named graphs to read, by IRI. None named: all statements, whichever graph they are in; of an endpoint,
    # those of its default graph.
    graphs: Sequence[str] = ()

    # Endpoints: a CONSTRUCT query, or the file that has it, instead of all statements. Bolt: one in Cypher that returns
    # nodes and relationships, or paths.
    query: str | Path | None = None
    # Endpoints: rows asked for at once. Public ones give 10,000 at most, and a page should take seconds, not minutes.
    page_size: int = 10_000
    # Endpoints: seconds between two pages, so that others get their turn.
    pause: float = 0.5

    # A source without valid and test triples gets a split of its own (see split.py), because training needs one to
    # measure itself by; "none" keeps all triples for training. A split in the source is never touched.
    split: SplitKind = "transductive"
    # Shares to hold out: of the triples (transductive) or of the entities (inductive). None: 0.05, at most 10,000.
    valid: float | None = None
    test: float | None = None
    # Seed of the split: the same seed and source give the same split.
    seed: int = 0

    # GiB to read a source in that is larger than memory; what does not fit goes to a temporary folder on the disk, in
    # `spill`, or where TMPDIR says. None: a large source gets half of the memory that is free, 4 GiB at most.
    memory: float | None = None
    spill: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", _tags(self.languages))
        if isinstance(relations := getattr(self, "relations"), str):  # noqa: B009
            object.__setattr__(self, "relations", Path(relations))
        if isinstance(split_column := getattr(self, "split_column"), int):  # noqa: B009
            object.__setattr__(self, "split_column", str(split_column))
        for name in _SEVERAL:
            value = getattr(self, name)
            many = (value,) if isinstance(value, str | int | Path) else tuple(value or ())  # a number is a position
            object.__setattr__(self, name, tuple(Path(one) if name == "entities" else str(one) for one in many))
        if self.relation and self.relation_name:
            remedy = "give --relation for a column, or --relation-name for what every row says"
            raise SatkgcError("the relation is named twice", remedy=remedy)
        for name, kind in (
            ("unlisted", Unlisted),
            ("textless", Textless),
            ("duplicates", Duplicates),
            ("split", SplitKind),
        ):
            if (value := getattr(self, name)) not in get_args(kind):
                raise SatkgcError(f"{name} cannot be {value!r}", remedy=f"use one of {', '.join(get_args(kind))}")
        if self.spill is not None:
            object.__setattr__(self, "spill", Path(self.spill))
        if self.memory is not None and not self.memory > 0:
            raise SatkgcError(f"no graph is read in {self.memory:g} GiB", remedy="give more memory")
        if self.page_size < 1 or not 0 <= self.pause < 3600:
            remedy = "choose a size of 1 or more and less than an hour"
            raise SatkgcError(f"pages of {self.page_size}, {self.pause:g} s apart", remedy=remedy)
        valid, test = (SHARE if share is None else share for share in (self.valid, self.test))
        if not (min(valid, test) >= 0 and 0 < valid + test < 1):
            raise SatkgcError(
                f"cannot hold out {valid:g} + {test:g} of the graph",
                remedy="choose shares valid and test of at least 0 whose sum is above 0 and below 1",
            )


# The forms of a source that an option speaks of, where it does not of all.
APPLIES = {
    "entities_file": ("folder",),
    **dict.fromkeys(("unlisted", "textless", "duplicates"), ("folder", "table")),
    **dict.fromkeys(("head", "relation", "tail", "relation_name", "split_column"), ("table",)),
    **dict.fromkeys(("entities", "relations"), ("table",)),
    "id": ("table", "bolt"),
    **dict.fromkeys(("label", "description"), ("table", "rdf", "sparql", "bolt")),
    **dict.fromkeys(("alt_label", "languages", "graphs"), ("rdf", "sparql")),
    "literals": ("rdf", "sparql", "bolt"),
    **dict.fromkeys(("query", "page_size"), ("sparql", "bolt")),
    "pause": ("sparql",),
    "memory": ("table", "rdf"),
}
FLAGS = {"graphs": "graph", "literals": "literal"}  # each takes one
_FORMS = {
    "folder": "a folder of train.tsv",
    "table": "tables",
    "rdf": "RDF",
    "sparql": "endpoints",
    "bolt": "Bolt servers",
}


def refuse_options(form: str, options: ReadOptions, shown: str) -> None:
    """Refuse an option that is set and has no meaning for a source of this form."""
    plain = ReadOptions()
    for name, forms in APPLIES.items():
        if form not in forms and getattr(options, name) != getattr(plain, name):
            flag = f"--{FLAGS.get(name, name.replace('_', '-'))}"
            *others, last = (_FORMS[form] for form in forms)
            spoken = f"{', '.join(others)} and {last}" if others else last
            raise SatkgcError(
                f"{flag} says nothing of {_FORMS[form]}", where=shown, remedy=f"leave it out; it is for {spoken}"
            )


def _tags(languages: Sequence[str]) -> tuple[str, ...]:
    """The languages one by one; a text alone is not a sequence of letters."""
    texts = [languages] if isinstance(languages, str) else languages
    tags = tuple(tag.strip() for text in texts for tag in text.split(","))
    for tag in tags:
        if tag and not _TAG.fullmatch(tag):
            raise SatkgcError(f"{tag!r} is no language", remedy="write it as a label's tag: en, de, pt-BR")
    return tags


def excluded_relations(
    exclude: Sequence[str],
    ids: Sequence[str],
    names: Sequence[str],
    counts: Sequence[int],
    shown: str,
    prefixes: Mapping[str, str] = PREFIXES,
) -> list[int]:
    """The places of the relations to exclude, by id, by prefix and the end of an IRI, or by name; logs their triples.

    Every relation that has a triple is in `ids`, with its name and its number of triples.
    """
    by_id = {id: place for place, id in enumerate(ids)}
    places: dict[int, None] = {}
    for text in exclude:
        prefix, _, end = text.partition(":")
        iri = prefixes[prefix] + end if prefix in prefixes else text
        matches = [by_id[id] for id in (text, iri) if id in by_id][:1]
        matches = matches or [place for place, name in enumerate(names) if name == text]
        if len(matches) > 1:
            several = " or ".join(repr(ids[place]) for place in matches[:3])
            raise SatkgcError(
                f"{len(matches)} relations are called {text!r}", where=shown, remedy=f"give the id of one: {several}"
            )
        if not matches:
            known = {known.lower(): known for known in [*names, *ids]}
            near = [known[match] for match in difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.5)]
            raise SatkgcError(
                f"no triple has the relation {text!r}",
                where=shown,
                remedy=f"did you mean {', '.join(map(repr, near))}?" if near else "`satkgc kg inspect` lists them",
            )
        places[matches[0]] = None
    if sum(counts[place] for place in places) == sum(counts):
        raise SatkgcError("no triple is left", where=shown, remedy="exclude fewer relations")
    log.warning("%s: triples left out: %s", shown, ", ".join(f"{counts[i]:,} of {ids[i]!r}" for i in places))
    return list(places)
