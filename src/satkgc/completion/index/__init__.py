"""Where entity vectors are searched. A new backend is one file here, and one line in `INDEXES`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, Self

import torch

from satkgc.arrays import Float32, Int32
from satkgc.completion.index.exact import ExactIndex, TopK
from satkgc.completion.index.faiss import FaissIndex
from satkgc.completion.index.milvus import MilvusIndex, check_server
from satkgc.completion.index.results import empty_results
from satkgc.errors import SatkgcError


class Index(Protocol):
    """Entity vectors by id, and the nearest of them to a query by inner product. They may live in another process.

    Ids are given, not counted, and need not be consecutive. All methods may be called from several threads, but only
    one thread adds at a time.
    """

    excludes: ClassVar[bool]
    """Whether `search` keeps to `exclude`. For one that cannot, the engine fetches that many more and drops them."""

    @classmethod
    def build(cls, folder: Path, vectors: Path, sample: Callable[[], Float32], device: torch.device) -> Self:
        """Make it of a .npy file (E, dim) of float32 rows of length one: row i is entity i.

        The file may be moved; it is removed afterwards if it was not. What has to be there to `open` it goes into the
        folder, which gets its name only when it is whole. `sample` encodes typical questions, to tune by.
        """
        ...

    @classmethod
    def open(cls, folder: Path, device: torch.device) -> Self:
        """Open what `build` made, without what was added since.

        OSError, ValueError, KeyError or RuntimeError say that it is damaged.
        """
        ...

    @property
    def facts(self) -> dict[str, float]:
        """What was measured when it was built."""
        ...

    def search(
        self,
        queries: Float32,  # (q, dim)
        k: int,
        allow: Int32 | None = None,  # only these ids, ascending; for all queries
        exclude: Sequence[Int32] | None = None,  # not these ids, ascending; one array for each query
    ) -> tuple[Float32, Int32]:
        """Scores and ids (q, k), best first; equal scores in any order; -inf and -1 fill a short row."""
        ...

    def fetch(self, ids: Int32) -> Float32:
        """The vectors of some ids, in their order; KeyError for one that is not there.  # (n, dim)"""
        ...

    def add(self, ids: Int32, vectors: Float32) -> None:
        """Take in vectors under ids that are not there yet, for this process only."""
        ...

    def __len__(self) -> int: ...


INDEXES: dict[str, type[Index]] = {"exact": ExactIndex, "faiss": FaissIndex, "milvus": MilvusIndex}
"""Every kind of index, by the name that `satkgc prepare --index` takes."""


def find_index(name: str) -> type[Index]:
    """The index of this name."""
    if name not in INDEXES:
        raise SatkgcError(f"no index {name!r}", remedy=f"choose one of {', '.join(INDEXES)}")
    return INDEXES[name]


def check_index(name: str, uri: str | None = None) -> None:
    """Refuse, before anything is encoded, an index that there is not, or that cannot be where it is asked for."""
    if issubclass(find_index(name), MilvusIndex):
        check_server(uri)
    elif uri is not None:
        raise SatkgcError(f"the index {name!r} is no server's", remedy="--uri goes with --index milvus")


def build_index(
    name: str, folder: Path, vectors: Path, sample: Callable[[], Float32], device: torch.device, uri: str | None = None
) -> Index:
    """As `Index.build`; with `uri`, on a server."""
    kind = find_index(name)
    if issubclass(kind, MilvusIndex):
        return kind.build(folder, vectors, sample, device, uri)
    return kind.build(folder, vectors, sample, device)


__all__ = [
    "INDEXES",
    "ExactIndex",
    "FaissIndex",
    "Index",
    "MilvusIndex",
    "TopK",
    "build_index",
    "check_index",
    "empty_results",
    "find_index",
]
