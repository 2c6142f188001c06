"""Exact search: every vector is read, block by block, and only the k best of each query are ever kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numba import njit

from satkgc.arrays import Float32, Int32
from satkgc.completion.vectors import Vectors

BLOCK = 1 << 23  # scores held at once: 32 MiB
COPIED = 2048  # rows of allowed entities copied at once: they stay in the processor's cache until they are multiplied


class ExactIndex:
    """Blocked matrix products over memory-mapped vectors, each block offered to one heap per query."""

    def __init__(self, vectors: Vectors, device: str = "cpu") -> None:
        self.vectors = vectors
        self.device = device

    def __len__(self) -> int:
        return len(self.vectors)

    def add(self, rows: Float32) -> None:
        """Append entities; they get the next indices."""
        self.vectors.add(rows)

    def search(
        self,
        queries: Float32,
        k: int,
        allowed: Int32 | None = None,
        excluded: Sequence[Int32] | None = None,
    ) -> tuple[Float32, Int32]:
        """See `Index.search`; time and reading grow with E, memory does not."""
        count = len(queries)
        scores = np.full((count, k), -np.inf, np.float32)
        ids = np.full((count, k), -1, np.int32)
        if not count:
            return scores, ids
        out, out_ptr = _flat(excluded, count)
        at = out_ptr[:-1].copy()
        left = torch.from_numpy(np.ascontiguousarray(queries, np.float32)).to(self.device)
        for block_ids, rows in self._blocks(allowed, max(1024, BLOCK // count)):
            block = left @ torch.from_numpy(rows).to(self.device).T  # (q, block)
            _offer(block.cpu().numpy(), block_ids, out, out_ptr, at, scores, ids)
        order = np.lexsort((ids, -scores), axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)

    def _blocks(self, allowed: Int32 | None, size: int) -> Iterator[tuple[Int32, Float32]]:
        if allowed is None:
            for first, rows in self.vectors.blocks(size):
                yield np.arange(first, first + len(rows), dtype=np.int32), rows
        else:
            for start in range(0, len(allowed), COPIED):
                chunk = allowed[start : start + COPIED]
                yield np.ascontiguousarray(chunk, np.int32), self.vectors.rows(chunk)


def _flat(lists: Sequence[Int32] | None, count: int) -> tuple[Int32, np.ndarray]:
    """Several arrays as one, with the places where each begins."""
    ptr = np.zeros(count + 1, np.int64)
    if lists is None or not any(len(one) for one in lists):
        return np.empty(0, np.int32), ptr
    np.cumsum([len(one) for one in lists], out=ptr[1:])
    return np.concatenate(lists).astype(np.int32), ptr


@njit(cache=True, nogil=True)
def _worse(score_a, id_a, score_b, id_b):  # type: ignore[no-untyped-def]
    """Whether a loses to b: a lower score, or the same and a higher index. -1 marks an empty place."""
    return id_a < 0 <= id_b or score_a < score_b or (score_a == score_b and id_a > id_b >= 0)


@njit(cache=True, nogil=True)
def _offer(block, block_ids, out, out_ptr, at, scores, ids):  # type: ignore[no-untyped-def]
    """Offer a block's scores (q, n) to each query's heap, whose root is the worst of the k best so far.

    Indices come in ascending order, in a block and from block to block, so one pointer walks along the excluded ones
    and a later equal score never displaces an earlier.
    """
    k = scores.shape[1]
    for q in range(block.shape[0]):
        for j in range(block.shape[1]):
            score = block[q, j]
            if ids[q, 0] >= 0 and score <= scores[q, 0]:
                continue
            entity = block_ids[j]
            while at[q] < out_ptr[q + 1] and out[at[q]] < entity:
                at[q] += 1
            if at[q] < out_ptr[q + 1] and out[at[q]] == entity:
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
