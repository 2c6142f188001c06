"""How alike the names of entities are, whatever their case, accents, punctuation and order of words."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Sequence

import numpy as np
from numba import njit

from satkgc.arrays import Float32, Int32, Int64
from satkgc.kg import KnowledgeGraph

LETTERS = 64  # of a name that are compared
ABBREVIATED, ACRONYM = 0.85, 0.7  # how alike "J. S. Bach" and "UN" are to what they stand for
BLOCK_GRAM = 4  # letters of the n-grams by which candidates are found
_WORD = re.compile(r"(?<!\w)[^\W\d_]{3,}(?!\w)")


def normalise(name: str) -> list[str]:
    """The words of a name without case, accents and punctuation, in their order: Ångström, A.-J. → angstrom a j."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", " ", plain)[: 4 * LETTERS].split()


def is_code(id: str, name: str) -> bool:
    """Whether a name is no more than the end of an id and has no word in it: Q42, or m 02mjmr of /m/02mjmr."""
    ends = re.sub(r"[\W_]+", "", id).endswith(re.sub(r"[\W_]+", "", name))
    return ends and any(c.isdigit() for c in name) and not _WORD.search(name)


class NameTable:
    """The names of a graph's entities as arrays, to compare many pairs at once."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        ids, names = kg.entities.ids.to_pylist(), kg.entities.names.to_pylist()
        self.words = [[] if is_code(id, name) else normalise(name) for id, name in zip(ids, names, strict=True)]
        self.sorted = [" ".join(sorted(words))[:LETTERS] for words in self.words]
        self.known = np.array([bool(name) for name in self.sorted], bool)  # (E,)
        self._letters = _rows([list(map(ord, name)) for name in self.sorted])
        self._grams = _rows([sorted({*_grams(name, 2), *_grams(name, 3)}) for name in self.sorted])
        self.numbers = np.array([_hash(" ".join(sorted(re.findall(r"\d+", name)))) for name in self.sorted], np.int64)
        self._initials = np.array(
            [_hash(" ".join(sorted(word[0] for word in words))) for words in self.words], np.int64
        )
        short = [_acronym(words) for words in self.words]
        self._acronyms = np.array([_hash(key) if key else -1 for key in short], np.int64)

    def similarity(self, pairs: Int32) -> Float32:
        """From 0 to 1; NaN where an entity has no name.  # (n, 2) → (n,)

        The larger of two: the share of common n-grams (Dice, 2 and 3 letters), and of letters that need no edit
        (insert, delete, replace, swap). Names with different numbers in them are not alike at all.
        """
        result = _compare(pairs, *self._letters, *self._grams)
        a, b = pairs[:, 0], pairs[:, 1]
        acronym = (self._acronyms[a] == self._acronyms[b]) & (self._acronyms[a] >= 0)
        for row in np.flatnonzero((result < ABBREVIATED) & (acronym | (self._initials[a] == self._initials[b]))):
            result[row] = max(result[row], self._abbreviation(int(a[row]), int(b[row])))
        result[self.numbers[a] != self.numbers[b]] = 0
        result[~(self.known[a] & self.known[b])] = np.nan
        return result

    def _abbreviation(self, a: int, b: int) -> float:
        one, other = self.words[a], self.words[b]
        if len(one) != len(other):
            return ACRONYM if 1 in (len(one), len(other)) else 0.0
        words = list(zip(sorted(one), sorted(other), strict=True))
        whole = any(x == y and len(x) > 2 for x, y in words)  # initials alone say too little
        return ABBREVIATED if whole and all(x.startswith(y) or y.startswith(x) for x, y in words) else 0.0

    def keys(self) -> tuple[Int64, Int32]:
        """Of every entity the n-grams of its name, to find those that share rare ones.  # (m,), (m,)"""
        grams = [sorted(set(_grams(name, BLOCK_GRAM))) for name in self.sorted]
        entities = np.repeat(np.arange(len(grams), dtype=np.int32), [len(g) for g in grams])
        return np.array([gram for row in grams for gram in row], np.int64), entities

    def acronyms(self) -> tuple[Int64, Int32]:
        """Names of one short word, and the first letters of those of as many words.  # (m,), (m,)"""
        entities = np.flatnonzero(self._acronyms >= 0).astype(np.int32)
        return self._acronyms[entities], entities


def _acronym(words: Sequence[str]) -> str:
    """What may be an acronym, or may have one: "un" is too short to tell."""
    if len(words) == 1:
        return words[0] if 3 <= len(words[0]) <= 6 else ""
    return "".join(word[0] for word in words) if 3 <= len(words) <= 6 else ""


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _grams(name: str, size: int) -> list[int]:
    return [_hash(padded[i : i + size]) for padded in [f" {name} "] * bool(name) for i in range(len(padded) - size + 1)]


def _rows(rows: list[list[int]]) -> tuple[Int64, Int64]:
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return ptr, np.array([x for row in rows for x in row], np.int64)


@njit(cache=True, nogil=True)
def _edits(a, b):  # type: ignore[no-untyped-def]
    """Edits from one text to the other: insert, delete, replace, swap two neighbours."""
    before, last, now = np.zeros(len(b) + 1, np.int64), np.arange(len(b) + 1), np.zeros(len(b) + 1, np.int64)
    for i in range(1, len(a) + 1):
        now[0] = i
        for j in range(1, len(b) + 1):
            now[j] = min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                now[j] = min(now[j], before[j - 2] + 1)
        before, last, now = last, now, before
    return last[len(b)]


@njit(cache=True, nogil=True)
def _compare(pairs, ptr, letters, gram_ptr, grams):  # type: ignore[no-untyped-def]
    result = np.zeros(len(pairs), np.float32)
    for row in range(len(pairs)):
        a, b = pairs[row, 0], pairs[row, 1]
        one, other = grams[gram_ptr[a] : gram_ptr[a + 1]], grams[gram_ptr[b] : gram_ptr[b + 1]]
        i, j, both = 0, 0, 0
        while i < len(one) and j < len(other):
            if one[i] == other[j]:
                both += 1
                i += 1
                j += 1
            elif one[i] < other[j]:
                i += 1
            else:
                j += 1
        x, y = letters[ptr[a] : ptr[a + 1]], letters[ptr[b] : ptr[b + 1]]
        longest = max(len(x), len(y))
        if longest:
            dice = 2.0 * both / (len(one) + len(other))
            result[row] = max(dice, 1.0 - _edits(x, y) / longest)
    return result
