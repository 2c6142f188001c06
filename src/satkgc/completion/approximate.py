"""Approximate search for millions of entities: faiss's inverted lists, with the recall measured when they are built."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.arrays import Float32, Int32
from satkgc.completion.exact import ExactIndex
from satkgc.completion.vectors import Vectors
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

FEW = 100_000  # so many allowed entities are searched exactly: the lists would hold too few of them
SPARE = 256  # excluded entities up to which it is cheaper to fetch more and drop them
WANTED_RECALL = 0.97  # a little over 0.95, since it is tuned on a sample


class FaissIndex:
    """IVF-Flat: vectors grouped around centroids, of which the nearest few groups are read for a query."""

    def __init__(self, vectors: Vectors, lists: Any, recall: float) -> None:
        self.vectors = vectors
        self.lists = lists  # faiss.IndexIVFFlat
        self.recall = recall  # recall@10 against exact search, on the sample it was built with
        self._busy = threading.Lock()  # faiss may not add while it searches; a search uses all cores anyway

    @classmethod
    def build(cls, vectors: Vectors, sample: Float32, wanted: float = WANTED_RECALL) -> FaissIndex:
        """Group the vectors, then probe as few groups as give the wanted recall@10 on sample queries."""
        faiss = _faiss()
        count = len(vectors)
        groups = int(np.clip(4 * np.sqrt(count), 1, max(1, count // 39)))  # faiss asks for 39 points a centroid
        quantizer = faiss.IndexFlatIP(vectors.dim)
        lists = faiss.IndexIVFFlat(quantizer, vectors.dim, groups, faiss.METRIC_INNER_PRODUCT)
        lists.cp.niter = 8
        lists.cp.spherical = True  # the vectors have length 1
        take = min(count, 64 * groups)
        rng = np.random.default_rng(0)
        lists.train(vectors.rows(np.sort(rng.choice(count, take, replace=False)).astype(np.int32)))
        for _, rows in vectors.blocks(1 << 16):
            lists.add(np.ascontiguousarray(rows))
        index = cls(vectors, lists, 0.0)
        index._tune(sample, wanted)
        return index

    @classmethod
    def open(cls, folder: Path, vectors: Vectors) -> FaissIndex:
        """Open what `save` wrote."""
        faiss = _faiss()
        facts = json.loads((folder / "faiss.json").read_text())
        lists = faiss.read_index(str(folder / "faiss.index"))
        lists.nprobe = facts["probes"]
        return cls(vectors, lists, facts["recall@10"])

    def save(self, folder: Path) -> None:
        """Write the lists, and beside them the probes and the recall they give."""
        with atomic_write(folder / "faiss.index") as part:
            _faiss().write_index(self.lists, str(part))
        facts = {"lists": self.lists.nlist, "probes": self.lists.nprobe, "recall@10": self.recall}
        with atomic_write(folder / "faiss.json") as part:
            part.write_text(json.dumps(facts, indent=2) + "\n")

    def __len__(self) -> int:
        return len(self.vectors)

    def add(self, rows: Float32) -> None:
        """Append entities; they get the next indices."""
        with self._busy:
            self.vectors.add(rows)
            self.lists.add(np.ascontiguousarray(rows, np.float32))

    def search(
        self,
        queries: Float32,
        k: int,
        allowed: Int32 | None = None,
        excluded: Sequence[Int32] | None = None,
    ) -> tuple[Float32, Int32]:
        """See `Index.search`; it may miss some of the nearest, as often as `recall` says."""
        if allowed is not None and len(allowed) <= FEW:
            return ExactIndex(self.vectors).search(queries, k, allowed, excluded)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        ids = np.full((len(queries), k), -1, np.int32)
        sizes = np.array([len(one) for one in excluded] if excluded else [0] * len(queries), np.int64)
        usual = np.flatnonzero(sizes <= SPARE)
        spare = int(sizes[usual].max(initial=0))
        for rows, extra in [(usual, spare), *((np.array([q]), 0) for q in np.flatnonzero(sizes > SPARE))]:
            if not len(rows):
                continue
            drop = [excluded[q] for q in rows] if excluded else None
            found, places = self._probe(queries[rows], k + extra, allowed, None if extra or not drop else drop)
            if extra and drop:
                for i, out in enumerate(drop):
                    keep = ~np.isin(places[i], out)
                    size = min(k, int(keep.sum()))
                    scores[rows[i], :size], ids[rows[i], :size] = found[i, keep][:size], places[i, keep][:size]
            else:
                scores[rows], ids[rows] = found, places
        order = np.lexsort((ids, -scores), axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)

    def _probe(
        self, queries: Float32, k: int, allowed: Int32 | None, excluded: Sequence[Int32] | None
    ) -> tuple[Float32, Int32]:
        faiss = _faiss()
        selector = None
        if excluded is not None and len(excluded[0]):  # one query, many exclusions
            selector = faiss.IDSelectorNot(faiss.IDSelectorBatch(excluded[0].astype(np.int64)))
        if allowed is not None:
            bits = np.zeros(len(self), bool)
            bits[allowed] = True
            inside = faiss.IDSelectorBitmap(np.packbits(bits, bitorder="little"))
            selector = inside if selector is None else faiss.IDSelectorAnd(inside, selector)
        chosen = faiss.SearchParametersIVF(nprobe=self.lists.nprobe, sel=selector)
        with self._busy:
            scores, ids = self.lists.search(np.ascontiguousarray(queries, np.float32), k, params=chosen)
        return np.where(ids < 0, -np.inf, scores).astype(np.float32), ids.astype(np.int32)

    def _tune(self, sample: Float32, wanted: float) -> None:
        """The fewest probes whose recall@10 on the sample is what is wanted, by bisection."""
        _, truth = ExactIndex(self.vectors).search(sample, 10)
        low, high = 0, 1
        while (recall := self._recall(sample, truth, high)) < wanted and high < self.lists.nlist:
            low, high = high, min(2 * high, self.lists.nlist)
        while high - low > 1:
            middle = (low + high) // 2
            if (finer := self._recall(sample, truth, middle)) >= wanted:
                high, recall = middle, finer
            else:
                low = middle
        self.lists.nprobe, self.recall = high, recall

    def _recall(self, sample: Float32, truth: Int32, probes: int) -> float:
        self.lists.nprobe = probes
        _, found = self._probe(sample, truth.shape[1], None, None)
        hits = sum(len(np.intersect1d(a[a >= 0], b)) for a, b in zip(truth, found, strict=True))
        return hits / int((truth >= 0).sum())


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as missing:
        raise SatkgcError(
            "faiss is not installed", remedy="pip install 'satkgc[faiss]', or use the exact index"
        ) from missing
    return faiss
