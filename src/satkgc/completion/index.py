"""The one interface behind which entity vectors are searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from satkgc.arrays import Float32, Int32


class Index(Protocol):
    """The k nearest entities of each query by inner product. A vector database can stand behind this."""

    def search(
        self,
        queries: Float32,  # (q, dim)
        k: int,
        allowed: Int32 | None = None,  # only these entities, ascending; for all queries
        excluded: Sequence[Int32] | None = None,  # not these, ascending; one array for each query
    ) -> tuple[Float32, Int32]:
        """Scores and entity indices (q, k), best first, equal scores by lower index; -inf and -1 fill a short row."""
        ...

    def add(self, rows: Float32) -> None:
        """Append entities; they get the next indices."""
        ...

    def __len__(self) -> int: ...
