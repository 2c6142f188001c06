"""What a search gives: scores and ids of each query, a row of k."""

from __future__ import annotations

import numpy as np

from satkgc.arrays import Float32, Int32


def empty_results(count: int, k: int) -> tuple[Float32, Int32]:
    """Scores and ids (count, k) where nothing was found: -inf and -1, which also fill what stays short of k."""
    return np.full((count, k), -np.inf, np.float32), np.full((count, k), -1, np.int32)
