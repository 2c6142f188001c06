"""One loss and one gradient, however the batch is cut up and however many processes share it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from tasks import Task, assert_same

from satkgc.training.ranks import Ranks
from satkgc.training.step import _seed, backward, plan


def plain(task, samples, seed=7, chunk_tokens=None):
    """The step as one would write it without caching: encode with the graph kept, one loss, one backward."""
    vectors = []
    (chunks,) = plan(samples, chunk_tokens, 1)
    for queries, side in ((True, samples.queries), (False, samples.tails)):
        out = torch.empty(len(side.texts), task.towers.dim)
        for chunk in chunks:
            if chunk.queries == queries:
                torch.manual_seed(_seed(seed, samples.step, chunk.number))
                tower = task.towers.queries if queries else task.towers.entities
                out = out.index_put((torch.from_numpy(chunk.rows),), tower(side.texts.select(chunk.rows)))
        vectors.append(out[side.of_sample])
    loss = task.objective(*vectors, samples.relations)
    loss.backward()
    return loss.item()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("chunk_tokens", [None, 64, 150])
def test_caching_changes_nothing(tiny_backbone, chunk_tokens, tied):
    task = Task(tiny_backbone, tied=tied)
    samples = task.samples()
    expected = plain(task, samples, chunk_tokens=chunk_tokens)
    wanted = task.gradients()
    loss = backward(task.towers, task.objective, samples, seed=7, chunk_tokens=chunk_tokens)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert_same(task.gradients(), wanted)


def test_chunks_change_nothing_but_dropout(tiny_backbone):
    task = Task(tiny_backbone, dropout=0.0)
    samples = task.samples()
    losses, gradients = [], []
    for chunk_tokens in (None, 64, 1000):
        losses.append(backward(task.towers, task.objective, samples, chunk_tokens=chunk_tokens).item())
        gradients.append(task.gradients())
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)
    assert_same(gradients[1], gradients[0])
    assert_same(gradients[2], gradients[0])


def test_dropout_depends_on_seed_and_step(tiny_backbone):
    task = Task(tiny_backbone)
    samples = task.samples()
    losses = [backward(task.towers, task.objective, samples, seed=seed).item() for seed in (1, 1, 2)]
    assert losses[0] == losses[1]
    assert abs(losses[0] - losses[2]) > 1e-5


@pytest.mark.parametrize(("chunk_tokens", "world"), [(None, 1), (None, 3), (40, 1), (40, 2), (10_000, 2)])
def test_a_plan_has_every_text_once_in_chunks_of_like_size(tiny_backbone, chunk_tokens, world):
    samples = Task(tiny_backbone).samples()
    ranks = plan(samples, chunk_tokens, world)
    assert len(ranks) == world
    assert {len(own) for own in ranks} == {len(ranks[0])}  # no rank waits for another
    chunks = [chunk for own in ranks for chunk in own]
    assert [chunk.start for chunk in chunks] == [0, *np.cumsum([len(c.rows) for c in chunks])[:-1].tolist()]
    for side, queries in ((samples.queries, True), (samples.tails, False)):
        rows = np.concatenate([chunk.rows for chunk in chunks if chunk.queries == queries])
        assert sorted(rows) == list(range(len(side.texts)))
    longest = max(samples.queries.texts.lengths)
    sizes = [(samples.queries if c.queries else samples.tails).texts.lengths[c.rows].sum() for c in chunks]
    if chunk_tokens:
        assert max(sizes) < chunk_tokens + longest
    assert max(sizes) - min(sizes) <= 0.5 * max(sizes) + longest


CASES = [(0.0, None), (0.1, 128)]  # dropout, chunk_tokens: with the same chunks, one rank and two draw the same dropout


def one_rank(rank, world, address, backbone, folder):
    """What each process of the test below does: the same batch, the shared step, its own view of the result."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{address}", rank=rank, world_size=world)
    for dropout, chunk_tokens in CASES:
        task = Task(backbone, dropout=dropout)
        shared = {"seed": 7, "chunk_tokens": chunk_tokens, "ranks": Ranks(rank, world)}
        loss = backward(task.towers, task.objective, task.samples(), **shared)
        save_file({"loss": loss, **task.gradients()}, f"{folder}/{rank}-{chunk_tokens}.safetensors")
    torch.distributed.destroy_process_group()


def test_two_ranks_compute_what_one_computes(tiny_backbone, tmp_path):
    mp.spawn(one_rank, (2, str(tmp_path / "store"), tiny_backbone, tmp_path), nprocs=2)
    for dropout, chunk_tokens in CASES:
        task = Task(tiny_backbone, dropout=dropout)
        samples = task.samples()
        if chunk_tokens:
            (one,), two = plan(samples, chunk_tokens, 1), plan(samples, chunk_tokens, 2)
            assert len(one) == len(two[0]) + len(two[1]) > 4
        loss = backward(task.towers, task.objective, samples, seed=7, chunk_tokens=chunk_tokens)
        wanted = {"loss": loss, **task.gradients()}
        for rank in range(2):
            assert_same(load_file(tmp_path / f"{rank}-{chunk_tokens}.safetensors"), wanted)


def test_bfloat16_is_close_and_reaches_every_weight(tiny_backbone):
    task = Task(tiny_backbone, dropout=0.0)
    samples = task.samples()
    exact = backward(task.towers, task.objective, samples).item()
    wanted = task.gradients()
    rough = backward(task.towers, task.objective, samples, precision=torch.bfloat16, chunk_tokens=64).item()
    assert rough == pytest.approx(exact, rel=0.05)
    found = task.gradients()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if value.norm() > 1e-3:
            assert torch.cosine_similarity(found[name].flatten(), value.flatten(), dim=0) > 0.9, name
