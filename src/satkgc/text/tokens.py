"""Token sequences of different lengths, laid end to end, and how they are put together from stored tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from satkgc.arrays import Int32, Int64, UInt8
from satkgc.errors import SatkgcError


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """n token sequences, special tokens included; sequence i is `ids[ptr[i]:ptr[i + 1]]`. No padding anywhere."""

    ids: Int32  # (T,)
    ptr: Int64  # (n + 1,)
    type_ids: UInt8 | None = None  # (T,) segment of each token, for the tokenizers that have segments

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> Int64:
        """Tokens of each sequence.  # (n,)"""
        return np.diff(self.ptr)

    def select(self, rows: Int32 | Int64 | Sequence[int]) -> TokenBatch:
        """The sequences at these rows, in this order, repeats allowed."""
        at = np.asarray(rows, np.int64)
        ptr, ids = _gather(at, self.ptr, self.ids)
        types = None if self.type_ids is None else _gather(at, self.ptr, self.type_ids)[1]
        return TokenBatch(ids, ptr, types)

    def unique(self) -> tuple[TokenBatch, Int64]:
        """The distinct sequences, by first appearance, and for each row which of them it is."""
        none = np.zeros(0, np.uint8)
        first, inverse = _distinct(self.ptr, self.ids, none if self.type_ids is None else self.type_ids)
        return (self if len(first) == len(self) else self.select(first)), inverse

    @staticmethod
    def concatenate(batches: Sequence[TokenBatch]) -> TokenBatch:
        """One batch after another."""
        ends = np.cumsum([0] + [len(batch.ids) for batch in batches])
        ptr = [batch.ptr[1:] + start for batch, start in zip(batches, ends, strict=False)]
        types = [batch.type_ids for batch in batches if batch.type_ids is not None]
        return TokenBatch(
            np.concatenate([batch.ids for batch in batches]),
            np.concatenate([np.zeros(1, np.int64), *ptr]),
            np.concatenate(types) if len(types) == len(batches) else None,
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """The distinct texts of some rows, known by their lengths: tokens are laid out for those alone that are wanted."""

    lengths: Int64  # (m,) tokens of each text
    text_of: Int64  # (n,) which of them is a row's
    lay_out: Callable[[Int64], TokenBatch]  # the texts at these places


def distinct_rows(table: Int32) -> tuple[Int64, Int64]:
    """The first row of each kind, and for each row which of those it equals.  # (n, c) → (m,), (n,)"""
    rows, columns = table.shape
    first, which = _distinct(columns * np.arange(rows + 1), np.ascontiguousarray(table).ravel(), np.zeros(0, np.uint8))
    return first, which


class Template(NamedTuple):
    """Special tokens around one text, `before A after`, or two, `before A between B after`, with segment numbers."""

    before: Int32
    between: Int32  # empty where there is one text
    after: Int32
    types: UInt8  # (5,) segment of before, A, between, B, after
    size: int  # special tokens in all

    @classmethod
    def learn(cls, tokenizer: Any, pair: bool) -> Template:
        """Encode a known text or pair and see what stands around it."""
        texts = ("first", "second") if pair else ("first",)
        has_types = "token_type_ids" in tokenizer.model_input_names
        whole = tokenizer(*texts, return_token_type_ids=has_types)
        ids, types = whole["input_ids"], whole.get("token_type_ids") or [0] * len(whole["input_ids"])
        spans, start = [], 0
        for text in texts:
            start = _find(tokenizer(text, add_special_tokens=False)["input_ids"], ids, start, tokenizer)
            spans.append((start, start + len(tokenizer(text, add_special_tokens=False)["input_ids"])))
            start = spans[-1][1]
        (a, a_end), (b, b_end) = spans[0], spans[-1]
        parts = [ids[:a], ids[a_end:b] if pair else [], ids[b_end:]]
        segments = [types[0], types[a], types[a_end] if pair and b > a_end else types[a], types[b], types[-1]]
        before, between, after = (np.array(part, np.int32) for part in parts)
        return cls(before, between, after, np.array(segments, np.uint8), sum(map(len, parts)))


def _find(part: list[int], whole: list[int], start: int, tokenizer: Any) -> int:
    for at in range(start, len(whole) - len(part) + 1):
        if whole[at : at + len(part)] == part:
            return at
    raise SatkgcError(
        f"cannot find a text in its own encoding by {type(tokenizer).__name__}",
        remedy="use a tokenizer that keeps texts whole between its special tokens, as BERT's, MPNet's and RoBERTa's do",
    )


class Ragged(NamedTuple):
    """Rows of tokens without special tokens: row i is `ids[ptr[i]:ptr[i + 1]]`."""

    ids: Int32
    ptr: Int64


class Neighbours(NamedTuple):
    """Who may be named after an entity's text: those of entity e are `entities[ptr[e]:ptr[e + 1]]`."""

    ptr: Int64
    entities: Int32
    relations: Int32  # directed, ascending for an entity, to be named too; empty where names stand alone


@njit(cache=True, nogil=True)
def assemble(  # type: ignore[no-untyped-def]
    entities,  # (n,) int32
    directed,  # (n,) int32 directed relations, or (0,) for entity texts
    rows,  # (n,) int32 which of `texts` is theirs
    lists,  # (n,) bool: whether neighbours are named
    exclude,  # (n,) int32 entity that is not named, or (0,)
    exclude_relation,  # (n,) int32 directed relation under which alone it is not named, or (0,) for all
    neighbours,  # Neighbours
    texts,  # this and the next four are Ragged
    names,
    labels,  # of directed relations, where neighbours are named by them
    separators,  # " ;", " :" and " ,"
    relations,  # directed ones, as a query has them
    template,
    max_tokens,
    max_neighbours,
    write,  # bool: whether to write the tokens, or to say how long the texts are alone
):
    """Entity text, neighbour names, then the relation where there is one; the entity's side is what gets cut.

    Returns tokens, where each text begins, segments, and whether a text lacks a neighbour because it was excluded.
    """
    n = len(entities)
    ids = np.empty(n * max_tokens if write else 0, np.int32)
    types = np.empty(n * max_tokens if write else 0, np.uint8)
    ptr = np.zeros(n + 1, np.int64)
    lacking = np.zeros(n, np.bool_)
    by_relation = len(neighbours.relations) > 0
    at = 0
    for i in range(n):
        e = entities[i]
        free = max_tokens - template.size
        if len(directed) > 0:
            free -= relations.ptr[directed[i] + 1] - relations.ptr[directed[i]]
        at += _copy(template.before, 0, len(template.before), ids, types, template.types[0], at, max_tokens)
        count = _copy_row(texts, rows[i], ids, types, template.types[1], at, free)
        at += count
        free -= count
        if lists[i]:
            number = 0  # of those named so far, by this relation if by relation
            first = neighbours.ptr[e]
            for j in range(first, neighbours.ptr[e + 1]):
                if free == 0 or (number == max_neighbours and not by_relation):
                    break
                if by_relation and j > first and neighbours.relations[j] != neighbours.relations[j - 1]:
                    number = 0
                v = neighbours.entities[j]
                excluded = len(exclude) > 0 and v == exclude[i]
                if excluded and len(exclude_relation) > 0:
                    excluded = neighbours.relations[j] == exclude_relation[i]
                if number == max_neighbours or v == e:
                    continue
                if excluded:
                    lacking[i] = True
                    continue
                segment = template.types[1]
                count = 0
                if by_relation:
                    count += _copy_row(separators, 0 if number == 0 else 2, ids, types, segment, at, free)
                    if number == 0:
                        label = neighbours.relations[j]
                        count += _copy_row(labels, label, ids, types, segment, at + count, free - count)
                        count += _copy_row(separators, 1, ids, types, segment, at + count, free - count)
                count += _copy_row(names, v, ids, types, segment, at + count, free - count)
                at += count
                free -= count
                number += 1
        if len(directed) > 0:
            at += _copy(template.between, 0, len(template.between), ids, types, template.types[2], at, max_tokens)
            at += _copy_row(relations, directed[i], ids, types, template.types[3], at, max_tokens)
        at += _copy(template.after, 0, len(template.after), ids, types, template.types[4], at, max_tokens)
        ptr[i + 1] = at
    return ids[:at].copy(), ptr, types[:at].copy(), lacking


@njit(cache=True, nogil=True)
def _copy(source, start, stop, ids, types, segment, at, limit):  # type: ignore[no-untyped-def]
    """Copy up to `limit` tokens of source[start:stop] to ids[at:], unless there is nothing to copy to; how many."""
    count = min(stop - start, limit)
    for i in range(count if len(ids) > 0 else 0):
        ids[at + i] = source[start + i]
        types[at + i] = segment
    return count


@njit(cache=True, nogil=True)
def _copy_row(ragged, row, ids, types, segment, at, limit):  # type: ignore[no-untyped-def]
    return _copy(ragged.ids, ragged.ptr[row], ragged.ptr[row + 1], ids, types, segment, at, limit)


@njit(cache=True, nogil=True)
def _gather(rows, ptr, values):  # type: ignore[no-untyped-def]
    new_ptr = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        new_ptr[i + 1] = new_ptr[i] + ptr[rows[i] + 1] - ptr[rows[i]]
    out = np.empty(new_ptr[-1], values.dtype)
    for i in range(len(rows)):
        start = ptr[rows[i]]
        for j in range(new_ptr[i + 1] - new_ptr[i]):
            out[new_ptr[i] + j] = values[start + j]
    return new_ptr, out


@njit(cache=True, nogil=True)
def _distinct(ptr, ids, types):  # type: ignore[no-untyped-def]
    """Rows that are the first of their kind, and for each row which of those it equals: an open hash table."""
    n = len(ptr) - 1
    size = 1
    while size < 2 * n + 1:
        size *= 2
    table = np.full(size, -1, np.int64)  # numbers of distinct rows
    first = np.empty(n, np.int64)
    inverse = np.empty(n, np.int64)
    count = 0
    for row in range(n):
        start, length = ptr[row], ptr[row + 1] - ptr[row]
        key = np.uint64(length)
        for j in range(length):
            key = (key ^ np.uint64(ids[start + j])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(size - 1))
        while table[slot] >= 0:
            other = ptr[first[table[slot]]]
            same = ptr[first[table[slot]] + 1] - other == length
            j = 0
            while same and j < length:
                same = ids[other + j] == ids[start + j] and (len(types) == 0 or types[other + j] == types[start + j])
                j += 1
            if same:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            first[count] = row
            count += 1
        inverse[row] = table[slot]
    return first[:count].copy(), inverse
