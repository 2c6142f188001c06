"""Find entities by what a person types: the beginning of a name or id, or something that looks like it."""

from __future__ import annotations

import difflib
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from satkgc.arrays import Int32
from satkgc.files import atomic_write
from satkgc.kg import Vocabulary

SHORTLIST = 200  # names compared letter by letter, picked by their trigrams
MIN_SIMILARITY = 0.6  # of a fuzzy match, at least
MAX_LETTERS = 200  # letters of a query that are read


class EntitySearch:
    """Prefixes by binary search in the sorted names, the rest by 256-bit sets of trigrams: no tables in memory.

    Both arrays are made once and memory-mapped from the index folder, so that millions of names open at once.
    """

    def __init__(self, entities: Vocabulary, degree: Int32, order: Int32, trigrams: Any) -> None:
        self.entities, self.degree = entities, degree
        self.order = order  # (E,) entities by lower-case name
        self.trigrams = trigrams  # (E, 4) uint64

    @classmethod
    def build(cls, entities: Vocabulary, degree: Int32) -> EntitySearch:
        """Sort the names and sign each by its trigrams."""
        lower = pc.utf8_lower(entities.names)
        order = pc.sort_indices(lower).to_numpy().astype(np.int32)
        _, offsets, data = lower.buffers()
        starts = np.frombuffer(offsets, np.int64)[lower.offset : lower.offset + len(lower) + 1]
        letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return cls(entities, degree, order, _sign(letters, starts))

    def save(self, folder: Path) -> None:
        """Write both arrays."""
        for name, array in (("names", self.order), ("trigrams", self.trigrams)):
            with atomic_write(folder / f"{name}.npy") as part, part.open("wb") as file:
                np.save(file, array)

    @classmethod
    def open(cls, folder: Path, entities: Vocabulary, degree: Int32) -> EntitySearch:
        """Map what `save` wrote."""
        arrays = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("names", "trigrams"))
        return cls(entities, degree, *arrays)

    def search(self, text: str, limit: int) -> list[int]:
        """Entities, best first: that id or its last part, names, then ids that begin so, and what looks like it."""
        text = text.strip()[:MAX_LETTERS]
        if not text:
            return []
        exact = self.entities.find(text)
        matches = [] if exact is None else [exact]
        for find in (self._last_parts, self._names, self._ids, self._similar_ids, self._similar_names):
            if len(matches) < limit:
                matches = list(dict.fromkeys(matches + find(text, limit)))
        return matches[:limit]

    def by_name(self, name: str) -> list[int]:
        """All entities of this name, whatever its capitals."""
        query = _lower(name).encode()
        low = bisect_left(self.order, query, key=self._lower)
        return sorted(int(i) for i in self.order[low : bisect_right(self.order, query, lo=low, key=self._lower)])

    def last_part(self, text: str) -> Int32:
        """All entities whose id is an IRI that ends so, after a / # or :."""
        if not text:
            return np.empty(0, np.int32)
        places = np.flatnonzero(pc.ends_with(self.entities.ids, text))
        ids = self.entities.ids.take(places)
        marked = [np.asarray(pc.ends_with(ids, mark + text)) for mark in "/#:"]
        return places[np.logical_or.reduce(marked)].astype(np.int32)

    def _lower(self, index: int) -> bytes:
        return _lower(self.entities.name(index)).encode()

    def _last_parts(self, text: str, limit: int) -> list[int]:
        return self._most_linked(self.last_part(text), limit)

    def _names(self, text: str, limit: int) -> list[int]:
        """Names that begin so, whole ones first, then by degree: what one means is mostly what is much linked."""
        query = _lower(text).encode()
        low = bisect_left(self.order, query, key=self._lower)
        high = bisect_right(self.order, query, lo=low, key=lambda i: self._lower(i)[: len(query)])
        whole = bisect_right(self.order, query, lo=low, hi=high, key=self._lower)
        return self._most_linked(self.order[low:whole], limit) + self._most_linked(self.order[whole:high], limit)

    def _ids(self, text: str, limit: int) -> list[int]:
        order, ids = self.entities.id_order, self.entities
        low = bisect_left(order, text.encode(), key=lambda i: ids.id(i).encode())
        size = len(text.encode())
        high = bisect_right(order, text.encode(), lo=low, key=lambda i: ids.id(i).encode()[:size])
        return [int(i) for i in order[low : min(high, low + limit)]]

    def _similar_ids(self, text: str, limit: int) -> list[int]:
        """A mistyped IRI: ids that begin alike and end in something that looks like the text's end, escaped or not."""
        cut = max(text.rfind(mark) for mark in "/#:") + 1
        if not cut:
            return []
        order, ids = self.entities.id_order, self.entities
        query = _lower(unquote(text[cut:]))
        ratios: dict[int, float] = {}
        for form in (text, text[:cut] + quote(text[cut:]), text[:cut] + unquote(text[cut:])):
            place = bisect_left(order, form.encode(), key=lambda i: ids.id(i).encode())
            for i in map(int, order[max(0, place - SHORTLIST) : place + SHORTLIST]):
                if i not in ratios and ids.id(i).startswith(text[:cut]):
                    ratios[i] = similarity(query, _lower(unquote(ids.id(i)[cut:])))
        ranked = sorted(ratios, key=lambda i: (-ratios[i], -int(self.degree[i]), i))
        return [i for i in ranked[:limit] if ratios[i] >= MIN_SIMILARITY]

    def _most_linked(self, entities: Int32, limit: int) -> list[int]:
        """The most linked of some entities, without sorting a million of them."""
        degree = self.degree[entities]
        if len(entities) > limit:
            best = np.argpartition(-degree, limit - 1)[:limit]
            entities, degree = entities[best], degree[best]
        return [int(i) for i in entities[np.lexsort((entities, -degree))]]

    def _similar_names(self, text: str, limit: int) -> list[int]:
        """Names that share trigrams with the text, then those whose letters are similar."""
        query = _lower(text)
        letters = np.frombuffer(query.encode(), np.uint8)
        sign = _sign(letters, np.array([0, len(letters)], np.int64))[0]
        overlap = _overlap(self.trigrams, sign)  # (E,)
        size = min(SHORTLIST, len(overlap))
        near = np.argpartition(-overlap, size - 1)[:size] if size else np.empty(0, int)
        ratios = {int(i): similarity(query, _lower(self.entities.name(i))) for i in near[overlap[near] > 0]}
        ranked = sorted(ratios, key=lambda i: (-ratios[i], -int(self.degree[i]), i))
        return [i for i in ranked[:limit] if ratios[i] >= MIN_SIMILARITY]


def name_match(text: str, name: str) -> float:
    """How well a name answers to a text, 0 to 1: for the few entities that are in no index."""
    query, name = _lower(text.strip()[:MAX_LETTERS]), _lower(name)
    ratio = 1.0 if name.startswith(query) else similarity(query, name)
    return ratio if ratio >= MIN_SIMILARITY else 0.0


def _lower(text: str) -> str:
    return pc.utf8_lower(pa.scalar(text)).as_py()  # the rule that sorted the names


def similarity(query: str, name: str) -> float:
    """difflib's ratio with the name, or, weighing a little less, with a run of its words as long as the text."""
    words, size = name.split(), max(1, len(query.split()))
    runs = [" ".join(words[i : i + size]) for i in range(min(20, len(words) - size + 1))]
    matcher = difflib.SequenceMatcher(None, b=query, autojunk=False)  # it keeps what it knows of b
    best = 0.0
    for text, weight in [(name[:MAX_LETTERS], 1.0), *((run, 0.95) for run in runs)]:
        matcher.set_seq1(text)
        if weight * matcher.real_quick_ratio() > best and weight * matcher.quick_ratio() > best:
            best = max(best, weight * matcher.ratio())
    return best


@njit(cache=True, nogil=True)
def _sign(letters, starts):  # type: ignore[no-untyped-def]
    """A set of hashed byte trigrams for each text; whatever is no letter or digit is a space around a word."""
    signs = np.zeros((len(starts) - 1, 4), np.uint64)
    for i in range(len(starts) - 1):
        a = b = np.uint32(32)
        for j in range(starts[i], starts[i + 1] + 1):
            c = np.uint32(letters[j]) if j < starts[i + 1] else np.uint32(32)
            if not (48 <= c <= 57 or 97 <= c <= 122 or c >= 128):
                c = np.uint32(32)
            if b != 32 or c != 32:
                mixed = np.uint32(((a << np.uint32(16)) | (b << np.uint32(8)) | c) * np.uint32(2654435761))
                bit = mixed >> np.uint32(24)
                signs[i, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            a, b = b, c
    return signs


@njit(cache=True, nogil=True)
def _bits(x):  # type: ignore[no-untyped-def]
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(cache=True, nogil=True)
def _overlap(signs, sign):  # type: ignore[no-untyped-def]
    """For each name, the share of the text's trigrams it has, and a little for having few others."""
    size = np.float32(max(1, _bits(sign[0]) + _bits(sign[1]) + _bits(sign[2]) + _bits(sign[3])))
    result = np.empty(len(signs), np.float32)
    for i in range(len(signs)):
        both, own = np.uint64(0), np.uint64(0)
        for j in range(4):
            both += _bits(signs[i, j] & sign[j])
            own += _bits(signs[i, j])
        result[i] = np.float32(both) / size + np.float32(0.5) * np.float32(both) / (np.float32(own) + size)
    return result
