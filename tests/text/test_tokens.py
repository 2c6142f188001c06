"""Token batches: rows taken, joined and found equal; special tokens where each tokenizer itself puts them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.text import TokenBatch
from satkgc.text.tokens import Template

sys.path.insert(0, str(Path(__file__).parent))
from tokenizers_at_hand import NAMES, tokenizer_named

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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("texts", [("the tree of knowledge",), ("a genus", "has part"), ("", "part")])
def test_laid_out_as_the_tokenizer_does(name: str, texts: tuple[str, ...]) -> None:
    tokenizer = tokenizer_named(name)
    template = Template.learn(tokenizer, pair=len(texts) == 2)
    parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    if len(parts) == 1:
        parts.append([])
    pieces = [template.before, parts[0], template.between, parts[1], template.after]
    whole = tokenizer(*texts, return_token_type_ids=True)
    assert [int(token) for piece in pieces for token in piece] == whole["input_ids"]
    assert template.size == len(whole["input_ids"]) - len(parts[0]) - len(parts[1])
    if "token_type_ids" in tokenizer.model_input_names:
        laid = [int(kind) for piece, kind in zip(pieces, template.types, strict=True) for _ in piece]
        assert laid == whole["token_type_ids"]


def test_a_tokenizer_that_mixes_texts_up_is_refused() -> None:
    class Shuffling:
        model_input_names = ("input_ids",)

        def __call__(self, *texts: str, add_special_tokens: bool = True, **_: object) -> dict[str, list[int]]:
            ids = [ord(letter) for text in texts for letter in text]
            return {"input_ids": [0, *sorted(ids)] if add_special_tokens else ids}

    with pytest.raises(SatkgcError, match="Shuffling"):
        Template.learn(Shuffling(), pair=True)
