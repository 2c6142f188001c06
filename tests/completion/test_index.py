"""Every index against the contract; exact search against a full sort; faiss against exact search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.completion import INDEXES, Completer
from satkgc.completion.index import ExactIndex, FaissIndex, exact
from satkgc.completion.index.exact import COPIED, CPU
from satkgc.errors import SatkgcError

pytest_plugins = ["world"]

# ---- the contract, held by every registered index ----


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors():
    return unit(np.random.default_rng(3).normal(size=(400, 16)))


@pytest.fixture(scope="module")
def queries(vectors):
    return unit(vectors[:30] + 0.3 * np.random.default_rng(4).normal(size=(30, 16)))


@pytest.fixture(params=list(INDEXES))
def folder_and_index(request, tmp_path, vectors, queries):
    """An index made of a file, as `prepare` makes it."""
    pytest.importorskip({"exact": "numpy", "faiss": "faiss", "milvus": "milvus_lite"}[request.param])
    np.save(tmp_path / "encoded.part.npy", vectors)
    kind = INDEXES[request.param]
    return tmp_path, kind.build(tmp_path, tmp_path / "encoded.part.npy", lambda: queries, CPU)


@pytest.fixture
def index(folder_and_index):
    return folder_and_index[1]


def check(index, rows, queries, found, usable, share=0.9):
    """Scores are those of the ids, best first, none twice, only usable ones, and most of the truly best."""
    scores, ids = found
    assert (scores.dtype, ids.dtype) == (np.float32, np.int32)
    hits = total = 0
    for query, mine, places, allowed in zip(queries, scores, ids, usable, strict=True):
        real = places >= 0
        assert not (real[1:] & ~real[:-1]).any()
        assert (mine[~real] == -np.inf).all()
        places, mine = places[real], mine[real]
        assert len(set(places.tolist())) == len(places)
        assert set(places.tolist()) <= set(allowed)
        np.testing.assert_allclose(mine, [rows[i] @ query for i in places], atol=1e-5)
        assert (np.diff(mine) <= 0).all()
        best = sorted(allowed, key=lambda i: -float(rows[i] @ query))[: len(real)]
        hits, total = hits + len(set(best) & set(places.tolist())), total + len(best)
    assert hits >= share * total


def test_it_finds_the_nearest(index, vectors, queries):
    assert len(index) == 400
    rows = dict(enumerate(vectors))
    check(index, rows, queries, index.search(queries, 10), [range(400)] * 30)
    assert all(isinstance(value, float) for value in index.facts.values())


def test_ids_are_given_and_may_have_gaps(index, vectors, queries):
    new = -queries[:4]
    index.add(np.array([100_000, 507], np.int32), new[:2])
    index.add(np.array([1000, 99_999], np.int32), new[2:])
    assert len(index) == 404
    rows = dict(enumerate(vectors)) | dict(zip((100_000, 507, 1000, 99_999), new, strict=True))
    ids = index.search(new, 1)[1]
    assert ids[:, 0].tolist() == [100_000, 507, 1000, 99_999]
    check(index, rows, queries, index.search(queries, 10), [list(rows)] * 30)
    order = np.array([99_999, 3, 507, 3, 100_000], np.int32)
    np.testing.assert_array_equal(index.fetch(order), [rows[i] for i in order.tolist()])
    allow = np.array([5, 507, 99_999], np.int32)
    assert index.search(new[1:2], 5, allow=allow)[1][0].tolist()[:1] == [507]
    exclude = [np.array([507, 99_999], np.int32), np.array([1000, 100_000], np.int32)]
    if index.excludes:
        usable = [sorted(set(rows) - set(out.tolist())) for out in exclude]
        check(index, rows, new[[1, 0]], index.search(new[[1, 0]], 6, exclude=exclude), usable)


def test_it_keeps_to_what_is_allowed_and_excluded(index, vectors, queries):
    rows = dict(enumerate(vectors))
    allow = np.arange(0, 400, 3, dtype=np.int32)
    check(index, rows, queries, index.search(queries, 10, allow=allow), [allow.tolist()] * 30)
    unknown = np.array([5, 7, 70_000], np.int32)  # an id that is not there is no candidate
    check(index, rows, queries, index.search(queries, 3, allow=unknown), [[5, 7]] * 30)
    if not index.excludes:
        return  # the retriever does it, as test_retriever holds
    exclude = [np.sort(np.argsort(-vectors @ query)[:count]).astype(np.int32) for count, query in enumerate(queries)]
    usable = [sorted(set(range(400)) - set(out.tolist())) for out in exclude]
    check(index, rows, queries, index.search(queries, 10, exclude=exclude), usable)
    both = [sorted(set(allow.tolist()) & set(one)) for one in usable]
    check(index, rows, queries, index.search(queries, 10, allow, exclude), both)


def test_short_rows_are_filled_and_no_query_has_no_row(index, vectors, queries):
    scores, ids = index.search(queries[:2], 5, allow=np.array([8], np.int32))
    assert ids.tolist() == [[8, -1, -1, -1, -1]] * 2
    assert (scores[:, 1:] == -np.inf).all()
    assert index.search(queries[:1], 3, allow=np.empty(0, np.int32))[1].tolist() == [[-1, -1, -1]]
    assert index.search(queries[:0], 3)[1].shape == (0, 3)


def test_fetch_has_the_vectors_in_the_order_of_the_ids(index, vectors):
    order = np.array([7, 399, 0, 7], np.int32)
    np.testing.assert_array_equal(index.fetch(order), vectors[order])
    assert index.fetch(np.empty(0, np.int32)).shape == (0, 16)
    for missing in (400, -1):
        with pytest.raises(KeyError):
            index.fetch(np.array([3, missing], np.int32))


def test_what_is_built_opens_again(folder_and_index, queries):
    folder, index = folder_and_index
    again = type(index).open(folder, CPU)
    assert again.facts == index.facts
    for mine, theirs in zip(again.search(queries, 10), index.search(queries, 10), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# ---- exact search ----


def brute_force(rows, queries, k, allow=None, exclude=None):
    """Sort everything: by score, then by index."""
    scores, ids = np.full((len(queries), k), -np.inf, np.float32), np.full((len(queries), k), -1, np.int32)
    for q, query in enumerate(queries):
        usable = np.arange(len(rows)) if allow is None else allow
        if exclude is not None:
            usable = np.setdiff1d(usable, exclude[q])
        ranked = sorted((-float(rows[i] @ query), int(i)) for i in usable)[:k]
        for place, (score, entity) in enumerate(ranked):
            scores[q, place], ids[q, place] = -score, entity
    return scores, ids


def whole_numbers(rng, count, dim=4):
    # Small whole numbers: products are exact in any order of summation, and equal scores are common.
    return rng.integers(-2, 3, (count, dim)).astype(np.float32)


def resident(rows):
    """The search that a GPU has, on vectors that are resident in memory."""
    index = ExactIndex(rows)
    index._on_gpu = torch.from_numpy(rows)
    index._added = index._with_gpu(index._added.ids, index._added.rows)
    return index


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 60),
    added=st.integers(0, 9),
    k=st.integers(1, 70),
    filtered=st.booleans(),
    dropped=st.booleans(),
    on_gpu=st.booleans(),
)
def test_exact_search_equals_sorting_everything(seed, count, added, k, filtered, dropped, on_gpu):
    rng = np.random.default_rng(seed)
    rows, queries = whole_numbers(rng, count + added), whole_numbers(rng, 5)
    index = resident(rows[:count]) if on_gpu else ExactIndex(rows[:count])
    for i in rng.permutation(np.arange(count, count + added)):
        index.add(np.array([i], np.int32), rows[[i]])
    allow = np.flatnonzero(rng.random(len(rows)) < 0.5).astype(np.int32) if filtered else None
    exclude = (
        [np.flatnonzero(rng.random(len(rows)) < p).astype(np.int32) for p in (0, 0.2, 0.9, 1, 0.5)] if dropped else None
    )
    scores, ids = index.search(queries, k, allow, exclude)
    expected_scores, expected_ids = brute_force(rows, queries, k, allow, exclude)
    np.testing.assert_array_equal(scores, expected_scores)
    if not on_gpu:  # where equal scores come in any order
        np.testing.assert_array_equal(ids, expected_ids)
        return
    assert ((ids >= 0) == (expected_ids >= 0)).all()
    for q in range(5):
        mine = ids[q][ids[q] >= 0]
        assert len(set(mine.tolist())) == len(mine)
        np.testing.assert_array_equal(rows[mine] @ queries[q], scores[q][: len(mine)])
        assert allow is None or np.isin(mine, allow).all()
        assert exclude is None or not np.isin(mine, exclude[q]).any()


@pytest.mark.parametrize("restrict", [False, True])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_blocks_do_not_show(monkeypatch, restrict, on_gpu):
    rng = np.random.default_rng(1)
    rows, queries = unit(rng.normal(size=(5000, 8))), unit(rng.normal(size=(40, 8)))
    monkeypatch.setattr(exact, "BLOCK", 1)  # blocks of 1024 rows, the smallest
    monkeypatch.setattr(exact, "GPU_BLOCK", 3 * 5000)  # three queries at a time
    allow = np.arange(1, 5000, 2, dtype=np.int32) if restrict else None
    exclude = [np.sort(rng.choice(5000, q * 60, replace=False)).astype(np.int32) for q in range(40)]
    _, ids = (resident(rows) if on_gpu else ExactIndex(rows)).search(queries, 50, allow, exclude)
    np.testing.assert_array_equal(ids, brute_force(rows, queries, 50, allow, exclude)[1])


def test_of_many_allowed_entities_few_rows_are_copied_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    rows, copied = rng.standard_normal((9000, 8)).astype(np.float32), []
    real = ExactIndex._take
    monkeypatch.setattr(ExactIndex, "_take", lambda self, ids, added: copied.append(len(ids)) or real(self, ids, added))
    allow = np.arange(0, 9000, 2, dtype=np.int32)
    _, ids = ExactIndex(rows).search(rows[:1], 10, allow)
    assert sum(copied) == 4500
    assert max(copied) <= COPIED
    np.testing.assert_array_equal(ids, brute_force(rows, rows[:1], 10, allow)[1])


def test_vectors_are_read_from_the_file_and_never_written(tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    np.save(tmp_path / "entities.npy", rows)
    index = ExactIndex.open(tmp_path, CPU)
    assert isinstance(index._stored, np.memmap)
    index.add(np.array([30, 31]), np.ones((2, 8)))
    index.add(np.array([32]), np.zeros((1, 8)))
    assert len(index) == 33
    np.testing.assert_array_equal(index.fetch(np.array([31, 4, 32])), [np.ones(8), rows[4], np.zeros(8)])
    np.testing.assert_array_equal(np.load(tmp_path / "entities.npy"), rows)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_the_vectors_are_resident(tmp_path, vectors, queries):
    np.save(tmp_path / "entities.npy", vectors)
    index, plain = ExactIndex.open(tmp_path, torch.device("cuda")), ExactIndex(vectors)
    assert index._on_gpu.is_cuda
    exclude = [np.arange(q, dtype=np.int32) for q in range(30)]
    for limits in ({}, {"allow": np.arange(0, 400, 2, dtype=np.int32)}, {"exclude": exclude}):
        scores, ids = index.search(queries, 20, **limits)
        expected = plain.search(queries, 20, **limits)
        np.testing.assert_array_equal(ids, expected[1])
        np.testing.assert_allclose(scores, expected[0], atol=1e-5)


# ---- faiss ----


@pytest.fixture(scope="module")
def clustered():
    pytest.importorskip("faiss")
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(40, 16))
    rows = centres[rng.integers(0, 40, 4000)] + 0.5 * rng.normal(size=(4000, 16))
    queries = rows[rng.integers(0, 4000, 200)] + 0.3 * rng.normal(size=(200, 16))
    return unit(rows), unit(queries)


@pytest.fixture
def lists(clustered):
    return FaissIndex.train(ExactIndex(clustered[0]), clustered[1][:100], recall=0.9)


def recall(index, queries, **limits):
    _, near = index.search(queries, 10, **limits)
    _, truth = index.exact.search(queries, 10, **limits)
    return np.mean([len(np.intersect1d(a[a >= 0], b)) / (b >= 0).sum() for a, b in zip(near, truth, strict=True)])


def test_faiss_reads_few_lists_and_says_its_recall(clustered, lists):
    assert lists.lists.nprobe < lists.lists.nlist / 2
    assert lists.facts == {"recall@10": pytest.approx(recall(lists, clustered[1][:100]))}
    assert recall(lists, clustered[1][100:]) > 0.85  # queries it was not tuned on
    lists.lists.nprobe = lists.lists.nlist
    assert recall(lists, clustered[1]) > 0.99  # all but what half precision takes for another


def test_faiss_has_the_scores_of_exact_search_and_half_its_memory(clustered, lists):
    import faiss

    lists.lists.nprobe = lists.lists.nlist
    (scores, ids), (exact, places) = lists.search(clustered[1], 10), lists.exact.search(clustered[1], 10)
    same = ids == places
    assert same.mean() > 0.98
    np.testing.assert_allclose(scores[same], exact[same], rtol=1e-6)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert len(faiss.serialize_index(lists.lists)) < clustered[0].nbytes


def test_faiss_reads_no_list_more_than_it_must(lists):
    far = np.random.default_rng(2).normal(size=(100, 16)).astype(np.float32)  # near no cluster: many lists are needed
    for least in (0.5, 0.7, 0.8, 0.9, 0.97):
        lists._tune(far, least)
        assert lists.recall >= least
        lists.lists.nprobe -= 1
        assert lists.lists.nprobe == 0 or recall(lists, far) < least


@pytest.mark.parametrize("many", [5, 600])  # fetched on top and dropped, and refused inside faiss
def test_faiss_drops_what_is_excluded(clustered, lists, many):
    lists.lists.nprobe = lists.lists.nlist
    _, near = lists.exact.search(clustered[1][:20], many)
    exclude = [np.sort(row) for row in near[:19]] + [np.empty(0, np.int32)]
    assert recall(lists, clustered[1][:20], exclude=exclude) > 0.98
    assert not any(
        np.isin(*pair).any()
        for pair in zip(lists.search(clustered[1][:20], 10, None, exclude)[1], exclude, strict=True)
    )


@pytest.mark.parametrize("few", [0, 10**6])  # by faiss's own selector, and exactly
def test_faiss_keeps_to_what_is_allowed(monkeypatch, clustered, lists, few):
    monkeypatch.setattr("satkgc.completion.index.faiss.FEW", few)
    lists.lists.nprobe = lists.lists.nlist
    allow = np.arange(0, 4000, 7, dtype=np.int32)
    exclude = [allow[i : i + 300] for i in range(20)]
    assert recall(lists, clustered[1][:20], allow=allow, exclude=exclude) > 0.98
    assert np.isin(lists.search(clustered[1], 10, allow)[1], allow).all()


def test_faiss_keeps_what_is_added_and_saved(tmp_path, clustered, lists):
    new = -clustered[1][:1]
    lists.add(np.array([4000], np.int32), new)
    assert lists.search(new, 1)[1][0, 0] == 4000
    lists.save(tmp_path)
    np.save(tmp_path / "entities.npy", clustered[0])
    again = FaissIndex.open(tmp_path, CPU)
    assert again.recall == lists.recall
    np.testing.assert_array_equal(again.search(clustered[1], 10)[1], lists.search(clustered[1], 10)[1])
    assert not list(tmp_path.glob("*.part*"))


def test_an_unknown_index_is_refused_before_anything_is_done(run_copy):
    before = sorted(path.name for path in (run_copy / "index").iterdir())
    with pytest.raises(SatkgcError, match=f"^no index 'annoy'; choose one of {', '.join(INDEXES)}$"):
        Completer.prepare(run_copy, index="annoy")
    assert sorted(path.name for path in (run_copy / "index").iterdir()) == before
    Completer.load(run_copy)
