"""Every text is in one chunk of one rank, and the chunks are of like size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.training.plan import places, plan

LENGTHS = st.lists(st.integers(1, 50), min_size=4, max_size=60).map(np.array)


@settings(max_examples=60)
@given(LENGTHS, LENGTHS, st.none() | st.integers(64, 400), st.integers(1, 4))
def test_every_text_has_one_place(queries, tails, chunk_tokens, world):
    ranks = plan(queries, tails, chunk_tokens, world)
    assert len(ranks) == world
    assert {len(own) for own in ranks} == {len(ranks[0])}  # no rank waits for another
    chunks = [chunk for own in ranks for chunk in own]
    assert sorted(chunk.number for chunk in chunks) == list(range(len(chunks)))
    together = np.concatenate([places(ranks, True, len(queries)), places(ranks, False, len(tails))])
    assert sorted(together) == list(range(len(queries) + len(tails)))
    for chunk in chunks:
        lengths = (queries if chunk.queries else tails)[chunk.rows]
        assert (np.diff(lengths) >= 0).all()
        if chunk_tokens:
            assert lengths.sum() < chunk_tokens + 50


@settings(max_examples=60)
@given(LENGTHS, st.integers(1, 64), st.integers(1, 4))
def test_no_chunk_is_empty_where_texts_are_longer_than_one(lengths, chunk_tokens, world):
    chunks = [chunk for own in plan(lengths, lengths, chunk_tokens, world) for chunk in own]
    assert all(len(chunk.rows) for chunk in chunks)
    assert sorted(np.concatenate([c.rows for c in chunks if c.queries])) == list(range(len(lengths)))


@pytest.mark.parametrize("chunk_tokens", [None, 1_000])
def test_the_cut_depends_on_ranks_only_by_their_number(chunk_tokens):
    lengths = np.arange(1, 41)
    one, two = (plan(lengths, lengths, chunk_tokens, 2) for _ in range(2))
    assert [c.rows.tolist() for own in one for c in own] == [c.rows.tolist() for own in two for c in own]
    assert sum(len(own) for own in plan(lengths, lengths, 10**6, 1)) == 2  # one chunk a side where all fits


@pytest.mark.parametrize("chunk_tokens", [None, 3])
def test_a_batch_with_too_few_texts_for_the_ranks_is_refused(chunk_tokens):
    assert all(plan(np.array([5, 5]), np.array([4, 4]), chunk_tokens, 4))  # one chunk each
    with pytest.raises(SatkgcError, match=r"4 texts for 5 processes; raise sampling\.batch_size"):
        plan(np.array([5, 5]), np.array([4, 4]), chunk_tokens, 5)
