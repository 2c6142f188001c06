"""A graph that takes in what is new: entities, triples, and texts where they were missing or are corrected."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.arrays import Bool, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.loading import check_options, load
from satkgc.kg.readers import ReadOptions
from satkgc.kg.vocabulary import Vocabulary, name_from_id

ORDER = ("train", "inference", "valid", "test")  # a new triple that several splits name goes to the first
LISTING = ("entities", "id", "label", "description", "duplicates")  # options of tables of entities
SHOWN = 3  # examples in a message


@dataclass(frozen=True, eq=False)
class Growth:
    """A grown graph, whose old entities and relations have their old numbers, and how much is new in it."""

    kg: KnowledgeGraph
    entities: int
    relations: int
    triples: int
    texts: int  # entities and relations with another name or description than before

    def __bool__(self) -> bool:
        return any((self.entities, self.relations, self.triples, self.texts))

    def __str__(self) -> str:
        counts = ((self.triples, "triple"), (self.entities, "entity"), (self.relations, "relation"))
        new = [f"{n:,} new {_plural(what, n)}" for n, what in counts if n]
        return ", ".join([*new, *([f"{self.texts:,} changed {_plural('text', self.texts)}"] if self.texts else [])])


def read_more(sources: Sequence[str | Path], options: dict[str, Any]) -> KnowledgeGraph:
    """What sources of any kind that `load` knows say, as they are: nothing is split off. Tables of entities may stand
    alone."""
    listed = check_options(options).entities
    texts = _texts(options) if listed else None
    if not sources:
        if texts is None:
            raise SatkgcError("there is nothing to take in", remedy="give triples, or texts with --entities")
        return texts
    # A table that lists what is new need not have all that triples name: it is read apart.
    of_triples = {name: value for name, value in options.items() if not (listed and name in LISTING)}
    more = load(list(sources), {"split": "none", **of_triples})
    return more if texts is None else grow(more, texts, correct=True).kg


def _texts(options: dict[str, Any]) -> KnowledgeGraph:
    """Tables of entities as a graph without triples."""
    from satkgc.kg.readers.table import read_entities

    none = Vocabulary.build("relation", *(pa.array([], pa.large_string()) for _ in range(3)))
    return KnowledgeGraph.from_arrays("texts", read_entities(ReadOptions(**{"textless": "allow", **options})), none, [])


def grow(
    kg: KnowledgeGraph,
    more: KnowledgeGraph,
    *,
    correct: bool = False,
    new_relations: bool = False,
    shown: str | None = None,
) -> Growth:
    """The graph with what another one says besides.

    A text that contradicts the graph's is refused, unless it is meant to `correct` it; so is a relation that the graph
    lacks, most often a mistyped one, unless `new_relations` are welcome. A triple that any split has is not new.
    """
    shown = shown or more.name
    if kg.split_entities:
        what = "an inductive graph takes in nothing: its splits are of entities"
        raise SatkgcError(what, where=kg.name, remedy="import its source again, and train anew")
    if not new_relations:
        _refuse_relations(kg, more, shown)
    entities, entity_place, texts = _join(kg.entities, more.entities, correct, shown)
    relations, relation_place, labels = _join(kg.relations, more.relations, correct, shown)
    sizes = len(relations), len(entities)
    known = _keys(np.concatenate([kg.split(split) for split in SPLITS]), *sizes)
    splits, count = {split: kg.split(split) for split in SPLITS}, 0
    for split in ORDER:
        head, relation, tail = more.split(split).T
        rows = np.stack([entity_place[head], relation_place[relation], entity_place[tail]], 1).astype(np.int32)
        keys, first = np.unique(_keys(rows, *sizes), return_index=True)
        new = np.sort(first[~np.isin(keys, known)])
        splits[split] = np.concatenate([splits[split], rows[new]])
        known, count = np.concatenate([known, keys]), count + len(new)
    train, valid, test, inference = (splits[split] for split in SPLITS)
    grown = KnowledgeGraph.from_arrays(kg.name, entities, relations, train, valid, test, inference=inference)
    return Growth(grown, len(entities) - kg.num_entities, len(relations) - kg.num_relations, count, texts + labels)


def _refuse_relations(kg: KnowledgeGraph, more: KnowledgeGraph, shown: str) -> None:
    places = pc.index_in(more.relations.ids, value_set=kg.relations.ids)
    for unknown in np.flatnonzero(pc.is_null(places).to_numpy(zero_copy_only=False)).tolist():
        id = more.relations.id(unknown)
        count = sum(int((more.split(split)[:, 1] == unknown).sum()) for split in SPLITS)
        near = difflib.get_close_matches(id, kg.relations.ids.to_pylist(), n=SHOWN, cutoff=0.6)
        hint = f"did you mean {' or '.join(map(repr, near))}? If not, " if near else "if it is meant, "
        if id.startswith("urn:satkgc:"):
            hint = "such ids stand for others in RDF; `satkgc accept FILE OUT.csv` keeps those of the graph. If meant, "
        what = f"the graph has no relation {id!r}, which {count:,} {_plural('triple', count)} {_have(count)}"
        raise SatkgcError(what, where=shown, remedy=f"{hint}say --new-relations; nothing was taken in")


def _join(ours: Vocabulary, theirs: Vocabulary, correct: bool, shown: str) -> tuple[Vocabulary, Int64, int]:
    """Our members and then theirs that are new; where each of theirs is among them; how many of ours have new texts."""
    places = pc.index_in(theirs.ids, value_set=ours.ids)
    new = pc.is_null(places).to_numpy(zero_copy_only=False)
    place = pc.fill_null(places, 0).to_numpy().astype(np.int64)
    place[new] = len(ours) + np.arange(new.sum())
    pairs = ((int(place[at]), int(at)) for at in np.flatnonzero(~new & _differ(ours, theirs, place * ~new)))
    changes = {own: text for own, at in pairs if (text := _text(ours, own, theirs, at))}
    contradictions = [at for at in changes if not _fills(ours, at, changes[at])]
    if contradictions and not correct:
        raise _contradiction(ours, contradictions, changes, shown)
    rest = pa.array(np.flatnonzero(new))
    columns = []
    for part, column in enumerate(("names", "descriptions")):
        own: Any = getattr(ours, column)
        if changes:
            mask = np.zeros(len(ours), bool)
            mask[list(changes)] = True
            own = pc.replace_with_mask(own, mask, pa.array([changes[at][part] for at in sorted(changes)], own.type))
        columns.append(pa.concat_arrays([own, getattr(theirs, column).take(rest)]))
    if not changes and not len(rest):
        return ours, place, 0
    ids = pa.concat_arrays([ours.ids, theirs.ids.take(rest)])
    return Vocabulary.build(ours.kind, ids, *columns), place, len(changes)


def _differ(ours: Vocabulary, theirs: Vocabulary, place: Int64) -> Bool:
    """Which of their texts are not letter by letter those at these places of ours."""
    if not len(ours):
        return np.zeros(len(theirs), bool)
    own = pa.array(place)
    same = (pc.equal(getattr(ours, part).take(own), getattr(theirs, part)) for part in ("names", "descriptions"))
    return ~pc.and_(*same).to_numpy(zero_copy_only=False)


def _text(ours: Vocabulary, at: int, theirs: Vocabulary, there: int) -> tuple[str, str] | None:
    """Name and description of a member as they will be; None where nothing else is said of it. A name that is made from
    the id, and an empty description, say nothing."""
    old, id = (ours.name(at), ours.description(at)), ours.id(at)
    name, description = theirs.name(there), theirs.description(there)
    text = old[0] if name in (id, name_from_id(id)) else name, description or old[1]
    return None if text == old else text


def _fills(ours: Vocabulary, at: int, text: tuple[str, str]) -> bool:
    """Whether a text only says what was not said before."""
    id = ours.id(at)
    made = ours.name(at) in (id, name_from_id(id))
    return (made or text[0] == ours.name(at)) and ours.description(at) in ("", text[1])


def _contradiction(ours: Vocabulary, at: list[int], changes: dict[int, tuple[str, str]], shown: str) -> SatkgcError:
    first = at[0]
    part = 0 if changes[first][0] != ours.name(first) else 1
    old, new = (ours.name(first), ours.description(first))[part], changes[first][part]
    others = f", and {len(at) - 1:,} more" if len(at) > 1 else ""
    what = f"{ours.kind} {ours.id(first)!r} is {_short(old)} in the graph and {_short(new)} here{others}"
    remedy = "say --correct if this is how it should be, or give it another id; nothing was taken in"
    return SatkgcError(what, where=shown, remedy=remedy)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _plural(what: str, count: int) -> str:
    return what if count == 1 else f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _keys(triples: Int32, relations: int, entities: int) -> Int64:
    wide = triples.astype(np.int64)
    return np.asarray((wide[:, 0] * relations + wide[:, 1]) * entities + wide[:, 2])
