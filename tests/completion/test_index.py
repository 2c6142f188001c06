"""Exact search against a full sort; faiss against exact search; both through the same interface."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.completion import exact
from satkgc.completion.approximate import FaissIndex
from satkgc.completion.exact import COPIED, ExactIndex
from satkgc.completion.vectors import Vectors


def brute_force(rows, queries, k, allowed=None, excluded=None):
    """Sort everything: by score, then by index."""
    scores, ids = np.full((len(queries), k), -np.inf, np.float32), np.full((len(queries), k), -1, np.int32)
    for q, query in enumerate(queries):
        usable = np.arange(len(rows)) if allowed is None else allowed
        if excluded is not None:
            usable = np.setdiff1d(usable, excluded[q])
        ranked = sorted((-float(rows[i] @ query), int(i)) for i in usable)[:k]
        for place, (score, entity) in enumerate(ranked):
            scores[q, place], ids[q, place] = -score, entity
    return scores, ids


def whole_numbers(rng, count, dim=4):
    # Small whole numbers: products are exact in any order of summation, and equal scores are common.
    return rng.integers(-2, 3, (count, dim)).astype(np.float32)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 60),
    added=st.integers(0, 9),
    k=st.integers(1, 70),
    filtered=st.booleans(),
    dropped=st.booleans(),
)
def test_exact_search_equals_sorting_everything(seed, count, added, k, filtered, dropped):
    rng = np.random.default_rng(seed)
    rows, queries = whole_numbers(rng, count + added), whole_numbers(rng, 5)
    index = ExactIndex(Vectors(rows[:count]))
    if added:
        index.add(rows[count:])
    allowed = np.flatnonzero(rng.random(len(rows)) < 0.5).astype(np.int32) if filtered else None
    excluded = (
        [np.flatnonzero(rng.random(len(rows)) < p).astype(np.int32) for p in (0, 0.2, 0.9, 1, 0.5)] if dropped else None
    )
    found = index.search(queries, k, allowed, excluded)
    expected = brute_force(rows, queries, k, allowed, excluded)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("restrict", [False, True])
def test_blocks_do_not_show(monkeypatch, restrict):
    rng = np.random.default_rng(1)
    rows, queries = whole_numbers(rng, 5000), whole_numbers(rng, 40)
    monkeypatch.setattr(exact, "BLOCK", 1)  # blocks of 1024 rows, the smallest
    allowed = np.arange(1, 5000, 2, dtype=np.int32) if restrict else None
    excluded = [np.sort(rng.choice(5000, q * 60, replace=False)).astype(np.int32) for q in range(40)]
    found = ExactIndex(Vectors(rows)).search(queries, 50, allowed, excluded)
    np.testing.assert_array_equal(found[1], brute_force(rows, queries, 50, allowed, excluded)[1])


def test_of_many_allowed_entities_few_rows_are_copied_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    rows, copied = rng.standard_normal((9000, 8)).astype(np.float32), []
    real = Vectors.rows
    monkeypatch.setattr(Vectors, "rows", lambda self, ids: copied.append(len(ids)) or real(self, ids))
    allowed = np.arange(0, 9000, 2, dtype=np.int32)
    found = ExactIndex(Vectors(rows)).search(rows[:1], 10, allowed)
    assert sum(copied) == 4500
    assert max(copied) <= COPIED
    np.testing.assert_array_equal(found[1], brute_force(rows, rows[:1], 10, allowed)[1])


def test_vectors_are_read_from_the_file_and_never_written(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    np.save(tmp_path / "v.npy", rows)
    vectors = Vectors.open(tmp_path / "v.npy")
    assert isinstance(vectors.parts[0], np.memmap)
    vectors.add(np.ones((2, 8)))
    vectors.add(np.zeros((1, 8)))
    assert len(vectors) == 33
    np.testing.assert_array_equal(vectors.rows(np.array([31, 4, 32])), [np.ones(8), rows[4], np.zeros(8)])
    np.testing.assert_array_equal(np.concatenate([r for _, r in vectors.blocks(7)])[:30], rows)
    assert [first for first, _ in vectors.blocks(16)] == [0, 16, 30]
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), rows)


@pytest.fixture(scope="module")
def clustered():
    pytest.importorskip("faiss")
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(40, 16))
    rows = centres[rng.integers(0, 40, 4000)] + 0.5 * rng.normal(size=(4000, 16))
    queries = rows[rng.integers(0, 4000, 200)] + 0.3 * rng.normal(size=(200, 16))
    return [(x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (rows, queries)]


@pytest.fixture
def lists(clustered):
    return FaissIndex.build(Vectors(clustered[0]), clustered[1][:100], wanted=0.9)


def recall(index, queries, **limits):
    _, found = index.search(queries, 10, **limits)
    _, truth = ExactIndex(index.vectors).search(queries, 10, **limits)
    return np.mean([len(np.intersect1d(a[a >= 0], b)) / (b >= 0).sum() for a, b in zip(found, truth, strict=True)])


def test_faiss_reads_few_lists_and_tells_its_recall(clustered, lists):
    assert lists.lists.nprobe < lists.lists.nlist / 2
    assert lists.recall == pytest.approx(recall(lists, clustered[1][:100]))
    assert recall(lists, clustered[1][100:]) > 0.85  # queries it was not tuned on
    lists.lists.nprobe = lists.lists.nlist
    assert recall(lists, clustered[1]) == 1


def test_faiss_reads_no_list_more_than_it_must(lists):
    far = np.random.default_rng(2).normal(size=(100, 16)).astype(np.float32)  # near no cluster: many lists are needed
    for wanted in (0.5, 0.7, 0.8, 0.9, 0.97, 1.0):
        lists._tune(far, wanted)
        assert lists.recall >= wanted
        lists.lists.nprobe -= 1
        assert lists.lists.nprobe == 0 or recall(lists, far) < wanted


@pytest.mark.parametrize("many", [5, 600])  # fetched on top and dropped, and refused inside faiss
def test_faiss_drops_what_is_excluded(clustered, lists, many):
    lists.lists.nprobe = lists.lists.nlist
    _, near = ExactIndex(lists.vectors).search(clustered[1][:20], many)
    excluded = [np.sort(row) for row in near[:19]] + [np.empty(0, np.int32)]
    assert recall(lists, clustered[1][:20], excluded=excluded) == 1
    assert not any(
        np.isin(*pair).any()
        for pair in zip(lists.search(clustered[1][:20], 10, None, excluded)[1], excluded, strict=True)
    )


@pytest.mark.parametrize("few", [0, 10**6])  # by faiss's own selector, and exactly
def test_faiss_keeps_to_what_is_allowed(monkeypatch, clustered, lists, few):
    monkeypatch.setattr("satkgc.completion.approximate.FEW", few)
    lists.lists.nprobe = lists.lists.nlist
    allowed = np.arange(0, 4000, 7, dtype=np.int32)
    excluded = [allowed[i : i + 300] for i in range(20)]
    assert recall(lists, clustered[1][:20], allowed=allowed, excluded=excluded) == 1
    assert np.isin(lists.search(clustered[1], 10, allowed)[1], allowed).all()


def test_faiss_keeps_what_is_added_and_saved(tmp_path, clustered, lists):
    new = -clustered[1][:1]
    lists.add(new)
    assert lists.search(new, 1)[1][0, 0] == 4000
    lists.save(tmp_path)
    again = FaissIndex.open(tmp_path, lists.vectors)
    assert again.recall == lists.recall
    np.testing.assert_array_equal(again.search(clustered[1], 10)[1], lists.search(clustered[1], 10)[1])
    assert not list(tmp_path.glob("*.part*"))
