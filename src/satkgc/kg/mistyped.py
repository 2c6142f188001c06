"""New entities that look like a slip of the pen: one letter from an entity that the graph has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.growth import read_more
from satkgc.kg.vocabulary import Vocabulary, name_from_id

LETTERS = 5  # of a word, at least: those that differ in a letter of a shorter one are mostly two

MANY = 3000  # new entities: nobody has written more by hand


def refuse_mistyped(
    kg: KnowledgeGraph, more: KnowledgeGraph, sources: Sequence[str | Path], options: dict[str, Any]
) -> None:
    """Refuse a new entity of which nothing but its id is said where that is nearly the id or name of a known one.

    Numbers that differ are two things. A table of entities that lists it says that it is meant.
    """
    unknown = pc.is_null(pc.index_in(more.entities.ids, value_set=kg.entities.ids)).to_numpy(zero_copy_only=False)
    suspects = [more.entities.id(i) for i in np.flatnonzero(unknown).tolist() if _textless(more.entities, i)]
    near = dict(_near(suspects, kg.entities)) if 0 < len(suspects) <= MANY else {}
    if near and options.get("entities"):
        listed = read_more([], options).entities
        near = {id: known for id, known in near.items() if listed.find(id) is None}
    if not near:
        return
    id, known = next(iter(near.items()))
    like = kg.entities.id(known)
    named = "" if kg.entities.name(known) in (like, name_from_id(like)) else f" ({kg.entities.name(known)})"
    others = f", nor {len(near) - 1:,} more of this sort" if len(near) > 1 else ""
    what = f"the graph has no entity {id!r}, which looks like {like!r}{named}{others}"
    remedy = "correct it, or, if it is new, list it in a table of --entities; nothing was taken in"
    raise SatkgcError(what, where=_place(id, sources), remedy=remedy)


def _textless(entities: Vocabulary, at: int) -> bool:
    id = entities.id(at)
    return not entities.description(at) and entities.name(at) in (id, name_from_id(id))


def _near(ids: Sequence[str], entities: Vocabulary) -> Iterator[tuple[str, int]]:
    """Of these ids, those that are nearly a known entity, with that; an id with a prefix has to keep it."""
    texts = pa.chunked_array([entities.ids, entities.names])
    forms: list[tuple[str, str]] = []  # what would have been written, and the id that it was written as
    folded: list[tuple[str, str]] = []
    for id in ids:
        text = _plain(pa.array([unquote(id)]))[0].as_py()
        forms += [(form, id) for form in (text, *_edits(text))]
        folded.append((_fold(pa.array([text]))[0].as_py(), id))
    found: dict[str, int] = {}
    plain = _plain(texts)
    for keys, written in ((plain, forms), (_fold(plain), folded)):
        places = pc.index_in(pa.array([form for form, _ in written], keys.type), value_set=keys)
        for at in np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False)).tolist():
            found.setdefault(written[at][1], places[at].as_py() % len(entities))
    yield from ((id, found[id]) for id in ids if id in found)


def _plain(texts: Any) -> Any:
    """In small letters, words joined in one way."""
    return pc.replace_substring_regex(pc.utf8_lower(texts), r"[ _-]+", " ")


def _fold(texts: Any) -> Any:
    """Without what joins words; letters that look like digits are these."""
    for pattern, digit in ((" ", ""), ("o", "0"), ("[il]", "1")):
        texts = pc.replace_substring_regex(texts, pattern, digit)
    return texts


def _edits(text: str) -> Iterator[str]:
    """One letter of a long word dropped, put in, replaced, or swapped with the next; after a prefix."""
    letters = {*ascii_lowercase, *filter(str.isalpha, text)}
    start = 1 + max(text.rfind(mark) for mark in "/#:")
    while start < len(text):
        end = start
        while end < len(text) and text[end].isalpha():
            end += 1
        if end - start >= LETTERS:
            for i in range(start, end + 1):
                head, tail = text[:i], text[i:]
                yield from (head + letter + tail for letter in letters)
                if i < end:
                    yield head + tail[1:]
                    yield from (head + letter + tail[1:] for letter in letters - {tail[0]})
                if i + 1 < end:
                    yield head + tail[1] + tail[0] + tail[2:]
        start = end + 1


def _place(id: str, sources: Sequence[str | Path]) -> str:
    """The first line that has an id, of files that can be read so; else the sources."""
    for source in sources:
        if not os.path.isfile(source):
            continue
        with open(source, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if id in line:
                    return f"{source}:{number}"
    return ", ".join(map(str, sources))
