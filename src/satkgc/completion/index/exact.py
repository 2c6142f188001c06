"""Exact search: every vector is compared with every query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numba import njit
from torch import Tensor

from satkgc.arrays import Bool, Float32, Int32, Int64
from satkgc.completion.index.results import empty_results
from satkgc.errors import SatkgcError

FILE = "entities.npy"
BLOCK = 1 << 23  # scores held at once on a CPU: 32 MiB
GPU_BLOCK = 1 << 28  # on a GPU: 1 GiB
COPIED = 2048  # rows of allowed entities copied at once: they stay in the processor's cache until they are multiplied
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class _Added:
    """Vectors that came after the file, by ascending id."""

    ids: Int32  # (m,)
    rows: Float32  # (m, dim)
    on_gpu: Tensor | None = None  # the rows


class ExactIndex:
    """On a CPU, blocked products over the memory-mapped file, of which only each query's k best are ever kept.

    On a GPU the vectors are resident, and a search is one product and one top-k.
    """

    excludes: ClassVar[bool] = True

    def __init__(self, vectors: Float32, device: torch.device = CPU) -> None:
        self._stored = vectors  # (E, dim), row i is id i; they stay on disk until they are read
        self._on_gpu = None if device.type == "cpu" else _resident(vectors, device)
        # Replaced as a whole by `add`: a search in another thread keeps the state it began with.
        self._added = self._with_gpu(np.empty(0, np.int32), np.empty((0, vectors.shape[1]), np.float32))

    @classmethod
    def build(cls, folder: Path, vectors: Path, sample: Callable[[], Float32], device: torch.device) -> ExactIndex:
        """The file is all there is to it."""
        os.replace(vectors, folder / FILE)
        return cls.open(folder, device)

    @classmethod
    def open(cls, folder: Path, device: torch.device) -> ExactIndex:
        """Map the file; copy-on-write, so that torch takes the rows without a copy and the file stays as it is."""
        return cls(np.load(folder / FILE, mmap_mode="c", allow_pickle=False), device)

    @property
    def facts(self) -> dict[str, float]:
        """Nothing: it misses none."""
        return {}

    def __len__(self) -> int:
        return len(self._stored) + len(self._added.ids)

    def add(self, ids: Int32, vectors: Float32) -> None:
        """Take in vectors under new ids, in memory."""
        all_ids = np.concatenate([self._added.ids, np.asarray(ids, np.int32)])
        rows = np.concatenate([self._added.rows, np.asarray(vectors, np.float32)])
        order = np.argsort(all_ids)
        self._added = self._with_gpu(all_ids[order], rows[order])

    def fetch(self, ids: Int32) -> Float32:
        """The vectors of some ids, in their order.  # (n, dim)"""
        rows, present = self._rows(ids, added := self._added)
        if not present.all():
            raise KeyError(int(np.asarray(ids)[~present][0]))
        return self._take(rows, added)

    def search(
        self,
        queries: Float32,
        k: int,
        allow: Int32 | None = None,
        exclude: Sequence[Int32] | None = None,
    ) -> tuple[Float32, Int32]:
        """See `Index.search`. On a CPU equal scores come by lower id; time and reading grow with E, memory does not."""
        queries = np.ascontiguousarray(queries, np.float32)
        if self._on_gpu is not None:
            return self._search_on_gpu(queries, k, allow, exclude)
        best = TopK(len(queries), k, exclude)
        if not len(queries):
            return best.result()
        left = torch.from_numpy(queries)
        for ids, rows in self._blocks(allow, max(1024, BLOCK // len(queries))):
            best.offer((left @ torch.from_numpy(rows).T).numpy(), ids)
        return best.result()

    def _blocks(self, allow: Int32 | None, size: int) -> Iterator[tuple[Int32, Float32]]:
        """Ids, ascending within a block and from block to block, with their vectors."""
        added = self._added
        if allow is None:
            for start in range(0, len(self._stored), size):
                rows = self._stored[start : start + size]
                yield np.arange(start, start + len(rows), dtype=np.int32), rows
            for start in range(0, len(added.ids), size):
                yield added.ids[start : start + size], added.rows[start : start + size]
        else:
            for start in range(0, len(allow), COPIED):
                ids = np.ascontiguousarray(allow[start : start + COPIED], np.int32)
                places, present = self._rows(ids, added)
                yield ids[present], self._take(places[present], added)

    def _search_on_gpu(
        self, queries: Float32, k: int, allow: Int32 | None, exclude: Sequence[Int32] | None
    ) -> tuple[Float32, Int32]:
        """A product with all vectors costs less than to gather some of them: what may not be an answer is masked."""
        stored, added = self._on_gpu, self._added
        assert stored is not None
        assert added.on_gpu is not None
        total = len(stored) + len(added.on_gpu)
        penalty = None
        if allow is not None:
            rows, present = self._rows(allow, added)
            penalty = torch.full((total,), -torch.inf, device=stored.device)
            penalty[torch.from_numpy(rows[present]).to(stored.device)] = 0
        scores, ids = empty_results(len(queries), k)
        step = max(1, GPU_BLOCK // total)
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            left = torch.from_numpy(queries[part]).to(stored.device)
            block = left @ stored.T  # (q, E)
            if len(added.on_gpu):
                block = torch.cat([block, left @ added.on_gpu.T], 1)
            if penalty is not None:
                block += penalty
            if exclude is not None and any(map(len, exclude[part])):
                rows, present = self._rows(np.concatenate(exclude[part]), added)
                owner = np.repeat(np.arange(len(left)), [len(one) for one in exclude[part]])
                block[torch.from_numpy(owner[present]), torch.from_numpy(rows[present])] = -torch.inf
            best, places = block.topk(min(k, total), dim=1)
            columns = places.cpu().numpy()
            scores[part, : columns.shape[1]] = best.cpu().numpy()
            late = columns >= len(stored)
            if late.any():
                columns[late] = added.ids[columns[late] - len(stored)]
            ids[part, : columns.shape[1]] = columns
        ids[scores == -np.inf] = -1
        return scores, ids

    def _rows(self, ids: Int32, added: _Added) -> tuple[Int64, Bool]:
        """The rows of ids, those added being counted after the file's, and which of the ids are there."""
        rows = np.asarray(ids, np.int64)
        present = (rows >= 0) & (rows < len(self._stored))
        if present.all():
            return rows, present
        late = ~present
        present[late] = np.isin(rows[late], added.ids)
        return np.where(late, np.searchsorted(added.ids, rows) + len(self._stored), rows), present

    def _take(self, rows: Int64, added: _Added) -> Float32:
        late = rows >= len(self._stored)
        if not late.any():
            return self._stored[rows]
        taken = np.empty((len(rows), self._stored.shape[1]), np.float32)
        taken[~late] = self._stored[rows[~late]]
        taken[late] = added.rows[rows[late] - len(self._stored)]
        return taken

    def _with_gpu(self, ids: Int32, rows: Float32) -> _Added:
        on_gpu = None if self._on_gpu is None else torch.from_numpy(rows).to(self._on_gpu.device)
        return _Added(ids, rows, on_gpu)


class TopK:
    """The k best of each query so far, while scores of more candidates come in: one heap for each query."""

    def __init__(self, count: int, k: int, exclude: Sequence[Int32] | None = None) -> None:
        self.scores, self.ids = empty_results(count, k)
        self._ptr = np.zeros(count + 1, np.int64)  # where a query's excluded ids begin
        self._exclude = np.empty(0, np.int32)
        if exclude is not None and any(len(one) for one in exclude):
            np.cumsum([len(one) for one in exclude], out=self._ptr[1:])
            self._exclude = np.concatenate(exclude).astype(np.int32)
        self._next = self._ptr[:-1].copy()

    def offer(self, scores: Float32, ids: Int32, first: int = 0) -> None:
        """Scores (q, n) of candidates (n,) for the queries from `first` on; ids ascend here and from call to call."""
        rows = slice(first, first + len(scores))
        ptr = self._ptr[first : first + len(scores) + 1]
        _offer(scores, ids, self._exclude, ptr, self._next[rows], self.scores[rows], self.ids[rows])

    def result(self) -> tuple[Float32, Int32]:
        """Scores and ids (q, k), best first, equal scores by lower id; -inf and -1 fill a short row."""
        order = np.lexsort((self.ids, -self.scores), axis=1)
        return np.take_along_axis(self.scores, order, 1), np.take_along_axis(self.ids, order, 1)


def _resident(vectors: Float32, device: torch.device) -> Tensor:
    try:
        return torch.from_numpy(vectors).to(device)
    except torch.OutOfMemoryError as error:
        what = f"{len(vectors):,} entity vectors of {vectors.nbytes / 2**30:.1f} GiB do not fit on {device}"
        raise SatkgcError(what, remedy="take --device cpu, or another index") from error


@njit(cache=True, nogil=True)
def _worse(score_a, id_a, score_b, id_b):  # type: ignore[no-untyped-def]
    """Whether a loses to b: a lower score, or the same and a higher id. -1 marks an empty place."""
    return id_a < 0 <= id_b or score_a < score_b or (score_a == score_b and id_a > id_b >= 0)


@njit(cache=True, nogil=True)
def _offer(block, block_ids, exclude, exclude_ptr, at, scores, ids):  # type: ignore[no-untyped-def]
    """Offer a block's scores (q, n) to each query's heap, whose root is the worst of the k best so far.

    Ids come in ascending order, in a block and from block to block, so one pointer walks along the excluded ones and a
    later equal score never displaces an earlier.
    """
    k = scores.shape[1]
    for q in range(block.shape[0]):
        for j in range(block.shape[1]):
            score = block[q, j]
            if ids[q, 0] >= 0 and score <= scores[q, 0]:
                continue
            entity = block_ids[j]
            while at[q] < exclude_ptr[q + 1] and exclude[at[q]] < entity:
                at[q] += 1
            if at[q] < exclude_ptr[q + 1] and exclude[at[q]] == entity:
                continue
            place = 0  # replace the root and let it sink
            while True:
                child = 2 * place + 1
                if child >= k:
                    break
                right = child + 1
                if right < k and _worse(scores[q, right], ids[q, right], scores[q, child], ids[q, child]):
                    child = right
                if not _worse(scores[q, child], ids[q, child], score, entity):
                    break
                scores[q, place] = scores[q, child]
                ids[q, place] = ids[q, child]
                place = child
            scores[q, place] = score
            ids[q, place] = entity
