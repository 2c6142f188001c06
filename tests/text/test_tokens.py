"""Token batches: rows taken, joined and found equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from satkgc.text import TokenBatch

ROWS = st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=4), max_size=12)


def batch_of(rows: list[list[tuple[int, int]]], types: bool) -> TokenBatch:
    """Rows of (token, segment) pairs."""
    flat = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
    ptr = np.cumsum([0] + [len(row) for row in rows])
    return TokenBatch(flat[:, 0].astype(np.int32), ptr, flat[:, 1].astype(np.uint8) if types else None)


def rows_of(batch: TokenBatch) -> list[tuple[object, ...]]:
    """Each sequence as something that can be compared."""
    spans = [slice(batch.ptr[i], batch.ptr[i + 1]) for i in range(len(batch))]
    segments = [None if batch.type_ids is None else tuple(batch.type_ids[span].tolist()) for span in spans]
    return [(tuple(batch.ids[span].tolist()), segment) for span, segment in zip(spans, segments, strict=True)]


@given(ROWS, st.booleans(), st.data())
def test_select(rows: list[list[tuple[int, int]]], types: bool, data: st.DataObject) -> None:
    batch = batch_of(rows, types)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20)) if rows else []
    assert rows_of(batch.select(chosen)) == [rows_of(batch)[row] for row in chosen]


@given(ROWS, st.booleans())
def test_unique_keeps_one_of_each_and_finds_all(rows: list[list[tuple[int, int]]], types: bool) -> None:
    batch = batch_of(rows, types)
    distinct, inverse = batch.unique()
    expected = list(dict.fromkeys(rows_of(batch)))  # by first appearance
    assert rows_of(distinct) == expected
    assert [expected[i] for i in inverse] == rows_of(batch)


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_concatenate(parts: list[list[list[tuple[int, int]]]], types: bool) -> None:
    batches = [batch_of(rows, types) for rows in parts]
    joined = TokenBatch.concatenate(batches)
    assert rows_of(joined) == [row for batch in batches for row in rows_of(batch)]
