"""Ranks against a plain Python ranking, for all block sizes, with many ties, from memory-mapped files, and sampled."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from by_hand import counts_of, plain_counts, slices_of, tied_vectors, unit_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.evaluation import Ranks, measure, rank_queries, ranking
from satkgc.evaluation.ranking import (
    ONE,
    Bonus,
    exact_scores,
    rank_scores,
    ranking_device,
    read_rows,
    sample_candidates,
    to_grid,
)

# Ten times the entities in a memory-mapped file: in a process of its own, to measure its memory.
PROGRAM = """
import json, resource, sys
import numpy as np
from by_hand import slices_of, unit_vectors
from satkgc.evaluation import rank_queries

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rng = np.random.default_rng(0)
queries = unit_vectors(rng, 50, 64)
block = unit_vectors(rng, 10_000, 64)
peaks = []
for copies in (4, 40):
    with open(sys.argv[1], "wb") as stream:
        for _ in range(copies):
            block.tofile(stream)
    entities = np.memmap(sys.argv[1], np.float32, "r", shape=(copies * 10_000, 64))
    ranks = rank_queries(queries, entities, np.arange(50, dtype=np.int32), slices_of([[]] * 50), memory_mib=8)
    assert (ranks.equal >= copies - 1).all()
    peaks.append(peak())
print(json.dumps({"peaks": peaks, "file": copies * block.nbytes / 2**20}))
"""


def problem(rng, make, queries=7, entities=30, dim=8, near=False):
    """Random queries with answers, known answers (not always the asked one) and, if asked for, neighbours."""
    known = [rng.integers(0, entities, rng.integers(0, 6)) for _ in range(queries)]
    members = [rng.integers(0, entities, rng.integers(0, 9)) for _ in range(queries)] if near else None
    return (
        make(rng, queries, dim),
        make(rng, entities, dim),
        rng.integers(0, entities, queries).astype(np.int32),
        known,
        members,
    )


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([unit_vectors, tied_vectors]), st.booleans(), st.integers(1, 31))
def test_counts_are_those_of_a_plain_ranking(seed, make, near, width):
    queries, entities, answers, known, members = problem(np.random.default_rng(seed), make, near=near)
    scores = exact_scores(queries, entities).numpy()
    bonus = None
    if near:
        weight = 3 / 1024
        bonus = Bonus(slices_of(members), weight)
        for row, nearby in zip(scores, members, strict=True):
            row[np.unique(nearby)] += weight * ONE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_columns", lambda *_: width)
        patch.setattr(ranking, "_ROWS", 3)
        ranks = rank_queries(queries, entities, answers, slices_of(known), bonus=bonus)
    np.testing.assert_array_equal(counts_of(ranks), plain_counts(scores, answers, known))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_scores_in_blocks_of_any_size_rank_as_plain_ones(seed, block):
    rng = np.random.default_rng(seed)
    _, _, answers, known, _ = problem(rng, unit_vectors)
    scores = rng.choice([-np.inf, -1.0, 0.0, 2.0, np.inf], (7, 30))  # infinite scores have an order, and tie
    rows = [slice(start, min(start + block, 7)) for start in range(0, 7, block)]
    ranks = rank_scores(((part, torch.from_numpy(scores[part])) for part in rows), answers, slices_of(known), 30)
    np.testing.assert_array_equal(counts_of(ranks), plain_counts(scores, answers, known))


def test_ranks_do_not_depend_on_the_memory_setting_or_on_how_a_product_adds():
    rng = np.random.default_rng(1)
    queries, entities = unit_vectors(rng, 300, 96), unit_vectors(rng, 9_000, 96)
    entities[4_000:] = entities[1_000:6_000]  # the same vector in different places of a block must tie exactly
    answers = rng.integers(0, 9_000, 300).astype(np.int32)
    known = slices_of([rng.integers(0, 9_000, 40) for _ in range(300)])
    results = [counts_of(rank_queries(queries, entities, answers, known, memory_mib=mib)) for mib in (1, 2, 5, 64)]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    assert results[0][:, 1].sum() > 100  # ties there are
    backwards = torch.from_numpy(np.ascontiguousarray(entities[:, ::-1]))
    reversed_sum = rank_queries(np.ascontiguousarray(queries[:, ::-1]), backwards, answers, known)
    np.testing.assert_array_equal(counts_of(reversed_sum), results[0])


def test_exact_scores_are_cosines_to_float32_accuracy():
    rng = np.random.default_rng(2)
    queries, entities = unit_vectors(rng, 5, 768), unit_vectors(rng, 50, 768)
    wanted = queries.astype(np.float64) @ entities.astype(np.float64).T
    np.testing.assert_allclose(exact_scores(queries, entities).numpy() / ONE, wanted, atol=2e-8)


def test_exact_scores_have_no_rounding_at_all():
    rng = np.random.default_rng(3)
    a, b = to_grid(unit_vectors(rng, 4, 333)), to_grid(unit_vectors(rng, 4, 333))
    for i in range(4):
        for j in range(4):
            whole = sum(int(x) * int(y) for x, y in zip(a[i].tolist(), b[j].tolist(), strict=True))
            assert int((a @ b.T)[i, j]) == whole


def test_a_constant_scorer_gets_the_mrr_of_chance_only_by_the_realistic_rule():
    size = 101
    vectors = np.tile(unit_vectors(np.random.default_rng(4), 1, 64), (size, 1))
    answers = np.arange(20, dtype=np.int32)
    ranks = rank_queries(vectors[:20], vectors, answers, slices_of([[a] for a in answers]))
    assert measure(ranks, "optimistic")["mrr"] == 1
    assert measure(ranks, "pessimistic")["mrr"] == pytest.approx(1 / size)
    realistic = measure(ranks)
    assert realistic["mrr"] == pytest.approx(1 / ((size + 1) / 2))  # the mean rank of chance, every time
    assert realistic["mrr"] < sum(1 / rank for rank in range(1, size + 1)) / size  # never above a random order's
    assert realistic["amr"] == pytest.approx(1)
    assert realistic["amri"] == pytest.approx(0)
    assert realistic["hits@10"] == 0


def test_memory_mapped_vectors_rank_alike_and_blocks_get_maps_of_their_own(tmp_path):
    rng = np.random.default_rng(5)
    queries, entities, answers, known, _ = problem(rng, unit_vectors, entities=500)
    np.save(tmp_path / "entities.npy", entities)
    mapped = np.load(tmp_path / "entities.npy", mmap_mode="r")
    block = read_rows(mapped, 100, 200)
    assert block.base is not mapped.base
    np.testing.assert_array_equal(block, entities[100:200])
    np.testing.assert_array_equal(read_rows(mapped[50:], 10, 20), entities[60:70])  # a view has no offset of its own
    expected = counts_of(rank_queries(queries, entities, answers, slices_of(known)))
    for vectors in (mapped, mapped[:], torch.from_numpy(entities)):
        ranks = rank_queries(queries, vectors, answers, slices_of(known), memory_mib=1)
        np.testing.assert_array_equal(counts_of(ranks), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_mapped_file_is_read_as_the_numbers_it_holds(tmp_path, dtype):
    vectors = unit_vectors(np.random.default_rng(5), 50, 8).astype(dtype)
    np.save(tmp_path / "entities.npy", vectors)
    block = read_rows(np.load(tmp_path / "entities.npy", mmap_mode="r"), 30, 50)
    assert block.dtype == dtype
    np.testing.assert_array_equal(block, vectors[30:])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.2])
def test_vectors_that_have_no_cosine_are_refused(bad):
    vectors = unit_vectors(np.random.default_rng(6), 4, 8)
    vectors[2] = bad
    with pytest.raises(SatkgcError, match="not finite or longer than 1"):
        rank_queries(vectors[:1], vectors, np.zeros(1, np.int32), slices_of([[0]]))


def test_lengths_that_differ_are_refused():
    vectors = unit_vectors(np.random.default_rng(7), 4, 8)
    with pytest.raises(SatkgcError, match="3 queries, 2 answers and 4 filters"):
        rank_queries(vectors[:3], vectors, np.zeros(2, np.int32), slices_of([[0]] * 4))


def test_devices_without_float64_rank_on_the_cpu():
    assert ranking_device("mps").type == "cpu"
    assert ranking_device("cuda:1") == torch.device("cuda:1")


def test_ranks_select_and_concatenate():
    ranks = Ranks(np.array([0, 4, 2]), np.array([0, 1, 3]), np.array([9, 9, 9]))
    np.testing.assert_array_equal(ranks.rank("optimistic"), [1, 5, 3])
    np.testing.assert_array_equal(ranks.rank("realistic"), [1, 5.5, 4.5])
    np.testing.assert_array_equal(ranks.rank("pessimistic"), [1, 6, 6])
    again = Ranks.concatenate([ranks.select(np.array([2])), ranks.select(np.array([True, True, False]))])
    np.testing.assert_array_equal(again.greater, [2, 0, 4])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_gives_the_ranks_of_the_cpu():
    rng = np.random.default_rng(8)
    queries, entities = unit_vectors(rng, 400, 768), unit_vectors(rng, 20_000, 768)
    answers = rng.integers(0, 20_000, 400).astype(np.int32)
    known = slices_of([rng.integers(0, 20_000, 40) for _ in range(400)])
    here, there = (counts_of(rank_queries(queries, entities, answers, known, device=d)) for d in ("cpu", "cuda"))
    np.testing.assert_array_equal(here, there)


def full_ranks(repeats):
    """A query with 3 better, 4 equal and 12 worse rivals, many times."""
    return Ranks(*(np.full(repeats, n, np.int64) for n in (3, 4, 20)))


def test_sampled_ranks_have_the_distribution_of_an_explicit_draw():
    repeats, sampled = 20_000, 7
    ranks = sample_candidates(full_ranks(repeats), sampled, seed=3, purpose="head")
    rng = np.random.default_rng(4)
    rivals = np.array([1] * 3 + [0] * 4 + [-1] * 12)
    drawn = rivals[rng.permuted(np.tile(np.arange(19), (repeats, 1)), axis=1)[:, :sampled]]
    for ours, theirs in ((ranks.greater, (drawn == 1).sum(1)), (ranks.equal, (drawn == 0).sum(1))):
        np.testing.assert_allclose(np.bincount(ours, minlength=5), np.bincount(theirs, minlength=5), atol=400)
    together = np.mean(ranks.greater * ranks.equal)
    assert together == pytest.approx(np.mean((drawn == 1).sum(1) * (drawn == 0).sum(1)), abs=0.05)
    assert (ranks.candidates == sampled + 1).all()


def test_sampling_is_seeded_and_stops_at_all_others():
    once, again = (sample_candidates(full_ranks(50), 7, 5, "head").greater for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert (once != sample_candidates(full_ranks(50), 7, 6, "head").greater).any()
    assert (once != sample_candidates(full_ranks(50), 7, 5, "tail").greater).any()
    everyone = sample_candidates(full_ranks(50), 1_000, 5, "head")
    np.testing.assert_array_equal(everyone.rank(), full_ranks(50).rank())
    assert (everyone.candidates == 20).all()


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages as Linux does")
def test_memory_does_not_grow_with_the_number_of_entities(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "entities.f32")]
    here = __file__.rsplit("/", 2)
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": f"{here[0]}:{here[0]}/{here[1]}", "PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    small, large = measured["peaks"]
    assert measured["file"] > 90
    assert large - small < 20
