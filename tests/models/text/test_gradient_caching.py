"""One loss and one gradient, however the batch is cut up and however many processes share it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file

from satkgc.models.text.towers import normalize
from satkgc.processes import Processes
from tasks import Task, assert_same


def plainly(task):
    """The step as one would write it first: every text of every sample, one loss, one backward."""
    kg = task.kg
    head, relation, tail = kg.train[task.batch.triples].T
    heads, tails = np.concatenate([head, tail]), np.concatenate([tail, head])
    directed = np.concatenate([relation, relation + kg.num_relations])
    queries = normalize(task.towers.query(task.texts.queries(heads, directed, exclude=tails)))
    answers = normalize(task.towers.entity(task.texts.entities(tails, exclude=heads)))
    loss, _ = task.model.contrastive(queries, answers, task.collate())
    loss.backward()
    return {"loss": loss.detach(), **task.gradients()}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("batch_size", [16, 80])  # 80: many texts more than once
def test_chunks_and_caching_change_nothing(tiny_backbone, tied, batch_size):
    task = Task(tiny_backbone, dropout=0.0, tied=tied, batch_size=batch_size)
    expected = plainly(task)
    for chunk_tokens in (None, 64, 300):
        assert_same(task.step(chunk_tokens=chunk_tokens), expected)


def test_equal_texts_are_encoded_once(tiny_backbone):
    (own,) = Task(tiny_backbone, batch_size=200).collate().chunks
    assert [chunk.queries for chunk in own] == [True, False]
    assert len(own[1].rows) < 0.9 * 200


def test_caching_draws_the_same_dropout_again(tiny_backbone):
    task = Task(tiny_backbone)
    kept = task.step(chunk_tokens=64, cache=False)
    assert_same(task.step(chunk_tokens=64), kept)
    other = task.step(chunk_tokens=64, seed=8)
    assert abs(other["loss"] - kept["loss"]) > 1e-5


CASES = [(0.0, None), (0.1, 128)]  # dropout, chunk_tokens: with the same chunks, one rank and two draw the same dropout


def one_rank(rank, world, address, backbone, folder):
    """What each process of the test below does: the same batch, the shared step, its own view of the result."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{address}", rank=rank, world_size=world)
    processes = Processes(rank, world)
    for dropout, chunk_tokens in CASES:
        result = Task(backbone, dropout=dropout).step(chunk_tokens=chunk_tokens, processes=processes)
        save_file(result, f"{folder}/{rank}-{chunk_tokens}.safetensors")
    assert processes.any(rank == 1)
    assert not processes.any(False)
    torch.distributed.destroy_process_group()


def test_two_processes_compute_what_one_computes(tiny_backbone, tmp_path):
    mp.spawn(one_rank, (2, str(tmp_path / "store"), tiny_backbone, tmp_path), nprocs=2)
    for dropout, chunk_tokens in CASES:
        task = Task(tiny_backbone, dropout=dropout)
        (one,), two = task.collate(chunk_tokens).chunks, task.collate(chunk_tokens, Processes(0, 2)).chunks
        assert chunk_tokens is None or len(one) == len(two[0]) + len(two[1]) > 4
        expected = task.step(chunk_tokens=chunk_tokens)
        for rank in range(2):
            assert_same(load_file(tmp_path / f"{rank}-{chunk_tokens}.safetensors"), expected)


def test_bfloat16_is_close_and_reaches_every_weight(tiny_backbone):
    task = Task(tiny_backbone, dropout=0.0)
    exact = task.step()
    rough = task.step(chunk_tokens=64, precision=torch.bfloat16)
    assert rough["loss"].item() == pytest.approx(exact["loss"].item(), rel=0.05)
    assert rough.keys() == exact.keys()
    for name, value in exact.items():
        if value.norm() > 1e-3:
            assert torch.cosine_similarity(rough[name].flatten(), value.flatten(), dim=0) > 0.9, name
