"""Approximate search for millions of entities: faiss's inverted lists, with the recall measured when they are built."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from satkgc.arrays import Float32, Int32, Int64
from satkgc.completion.index.approximate import RECALL, fewest_probes, search_without, share_of
from satkgc.completion.index.exact import CPU, ExactIndex
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.progress import progress_bar

FEW = 100_000  # so many allowed entities are searched exactly: the lists would hold too few of them
ROWS = 1 << 16  # added to the lists at once, or compared once more


class FaissIndex:
    """Vectors in half precision, grouped around centroids; for a query the nearest few groups are read, and what they
    have is compared once more in full precision."""

    excludes: ClassVar[bool] = True

    def __init__(self, exact: ExactIndex, lists: Any, recall: float = 0.0) -> None:
        self.exact = exact  # all vectors, in memory-mapped form
        self.lists = lists  # faiss.IndexIVFScalarQuantizer; of earlier versions, IndexIVFFlat
        self.recall = recall  # recall@10 against exact search, on the sample it was built with
        self._busy = threading.Lock()  # faiss may not add while it searches; a search uses all cores anyway

    @classmethod
    def build(cls, folder: Path, vectors: Path, sample: Callable[[], Float32], device: torch.device) -> FaissIndex:
        """Group the vectors and keep both; the sample's queries say how many groups have to be read."""
        _faiss()  # where it is missing, the file stays where it is, and nothing is encoded again
        index = cls.train(ExactIndex.build(folder, vectors, sample, CPU), sample())
        index.save(folder)
        return index

    @classmethod
    def train(cls, exact: ExactIndex, queries: Float32, recall: float = RECALL) -> FaissIndex:
        """Group the vectors, then probe as few groups as give this recall@10 on the queries."""
        faiss = _faiss()
        count, dim = len(exact), queries.shape[1]
        groups = int(np.clip(4 * np.sqrt(count), 1, max(1, count // 39)))  # faiss asks for 39 points a centroid
        quantizer = faiss.IndexFlatIP(dim)
        half = faiss.ScalarQuantizer.QT_fp16
        lists = faiss.IndexIVFScalarQuantizer(quantizer, dim, groups, half, faiss.METRIC_INNER_PRODUCT, False)
        lists.cp.niter = 8
        lists.cp.spherical = True  # the vectors have length 1
        take = min(count, 64 * groups)
        rng = np.random.default_rng(0)
        with progress_bar() as progress:
            task = progress.add_task("building the index", total=lists.cp.niter * take + count)
            lists.train(exact.fetch(np.sort(rng.choice(count, take, replace=False)).astype(np.int32)))
            progress.advance(task, lists.cp.niter * take)
            for ids in _ranges(count):
                lists.add(np.ascontiguousarray(exact.fetch(ids)))
                progress.advance(task, len(ids))
        index = cls(exact, lists)
        index._tune(queries, recall)
        return index

    @classmethod
    def open(cls, folder: Path, device: torch.device) -> FaissIndex:
        """Open what `save` wrote."""
        faiss = _faiss()
        facts = json.loads((folder / "faiss.json").read_text())
        lists = faiss.read_index(str(folder / "faiss.index"))
        lists.nprobe = facts["probes"]
        return cls(ExactIndex.open(folder, CPU), lists, facts["recall@10"])

    def save(self, folder: Path) -> None:
        """Write the lists, and beside them the probes and the recall they give."""
        with atomic_write(folder / "faiss.index") as part:
            _faiss().write_index(self.lists, str(part))
        facts = {"lists": self.lists.nlist, "probes": self.lists.nprobe, "recall@10": self.recall}
        with atomic_write(folder / "faiss.json") as part:
            part.write_text(json.dumps(facts, indent=2) + "\n")

    @property
    def facts(self) -> dict[str, float]:
        """How much of the ten nearest it finds."""
        return {"recall@10": self.recall}

    def __len__(self) -> int:
        return len(self.exact)

    def add(self, ids: Int32, vectors: Float32) -> None:
        """Take in vectors under new ids."""
        with self._busy:
            self.exact.add(ids, vectors)
            self.lists.add_with_ids(np.ascontiguousarray(vectors, np.float32), np.asarray(ids, np.int64))

    def fetch(self, ids: Int32) -> Float32:
        """The vectors of some ids, in their order.  # (n, dim)"""
        return self.exact.fetch(ids)

    def search(
        self,
        queries: Float32,
        k: int,
        allow: Int32 | None = None,
        exclude: Sequence[Int32] | None = None,
    ) -> tuple[Float32, Int32]:
        """See `Index.search`; it may miss some of the nearest, as often as `recall` says."""
        if allow is not None and len(allow) <= FEW:
            return self.exact.search(queries, k, allow, exclude)

        def probe(rows: Int64, k: int, out: Int32 | None) -> tuple[Float32, Int32]:
            return self._probe(queries[rows], k, allow, out)

        return search_without(probe, len(queries), k, exclude)

    def _probe(self, queries: Float32, k: int, allow: Int32 | None, exclude: Int32 | None) -> tuple[Float32, Int32]:
        faiss = _faiss()
        selector = None
        if exclude is not None:
            selector = faiss.IDSelectorNot(faiss.IDSelectorBatch(exclude.astype(np.int64)))
        if allow is not None:
            bits = np.zeros(int(allow.max(initial=0)) + 1, bool)
            bits[allow] = True
            inside = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
            selector = inside if selector is None else faiss.IDSelectorAnd(inside, selector)
        parameters = faiss.SearchParametersIVF(nprobe=self.lists.nprobe, sel=selector)
        queries = np.ascontiguousarray(queries, np.float32)
        with self._busy:
            _, ids = self.lists.search(queries, k, params=parameters)
        return self._compare(queries, ids.astype(np.int32))

    def _compare(self, queries: Float32, ids: Int32) -> tuple[Float32, Int32]:
        """Exact scores, best first.  # (Q, k), -1 where there is none"""
        scores = np.full(ids.shape, -np.inf, np.float32)
        step = max(1, ROWS // max(1, ids.shape[1]))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            row, column = np.nonzero(ids[part] >= 0)
            vectors = self.exact.fetch(ids[part][row, column])
            scores[part][row, column] = np.einsum("nd,nd->n", vectors, queries[part][row])
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)

    def _tune(self, queries: Float32, recall: float) -> None:
        """The fewest probes that give this recall@10 on the queries."""
        _, truth = self.exact.search(queries, 10)
        tuned = fewest_probes(lambda probes: self._recall(queries, truth, probes), recall, self.lists.nlist)
        self.lists.nprobe, self.recall = tuned

    def _recall(self, queries: Float32, truth: Int32, probes: int) -> float:
        self.lists.nprobe = probes
        _, near = self._probe(queries, truth.shape[1], None, None)
        return share_of(truth, near)


def _ranges(count: int) -> Iterator[Int32]:
    for start in range(0, count, ROWS):
        yield np.arange(start, min(start + ROWS, count), dtype=np.int32)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as missing:
        raise SatkgcError(
            "faiss is not installed", remedy="pip install 'satkgc[faiss]', or use the exact index"
        ) from missing
    return faiss
