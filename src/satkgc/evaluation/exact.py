"""Cosine scores that are exact, so that no block size, device or thread count can change a rank."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import torch

from satkgc.arrays import Float32
from satkgc.errors import SatkgcError

# Entries are rounded to multiples of 2^-26 and kept as whole float64 numbers. A product of two is a whole number, and
# any partial sum of a dot product of two unit vectors is below 2^52 in size (Cauchy-Schwarz), so float64 holds every
# one of them without rounding: the order in which a matrix product adds cannot matter. The rounding of an entry, at
# most 2^-27, is finer than the error of a float32 dot product. What is left below 2^53 is for a bonus of `MOST_BONUS`.
UNIT = 2.0**26
ONE = UNIT * UNIT  # a cosine of 1 in score units
MOST_BONUS = 0.9
_NORM_LIMIT = 1.001

Vectors = Float32 | torch.Tensor


def to_grid(vectors: Vectors, device: torch.device | str = "cpu") -> torch.Tensor:
    """Unit vectors as whole numbers in float64, on a device.  # (n, d) -> (n, d)"""
    if isinstance(vectors, np.ndarray):
        vectors = torch.from_numpy(np.array(vectors, np.float32))
    grid = vectors.detach().to(device).double()  # widened there: half as much to send
    if not bool((torch.linalg.vector_norm(grid, dim=1) <= _NORM_LIMIT).all()):  # also false for NaN
        raise SatkgcError(
            "a vector is not finite or longer than 1, so its cosine cannot be taken",
            remedy="rank L2-normalised vectors, and look in the training log for a loss that went to NaN",
        )
    return (grid * UNIT).round_()


def exact_scores(queries: Vectors, entities: Vectors, device: torch.device | str = "cpu") -> torch.Tensor:
    """All cosines in score units (`ONE` is 1).  # (q, d), (e, d) -> (q, e)"""
    return to_grid(queries, device) @ to_grid(entities, device).T


def read_rows(vectors: Vectors, start: int, stop: int) -> Vectors:
    """Rows of a matrix; of a memory-mapped file through a map of their own, so that pages read do not stay resident."""
    owner: object = vectors.base if isinstance(vectors, np.memmap) else None  # a map, or an array this is a view of
    if isinstance(vectors, np.memmap) and vectors.filename and isinstance(owner, mmap.mmap):
        width = vectors.shape[1] * vectors.itemsize
        offset = vectors.offset + start * width
        shape = stop - start, vectors.shape[1]
        dtype: np.dtype[Any] = vectors.dtype
        return np.memmap(vectors.filename, dtype, "r", offset, shape)
    return vectors[start:stop]


def ranking_device(device: torch.device | str) -> torch.device:
    """Where to rank: as asked, or on the CPU where the device has no float64."""
    device = torch.device(device)
    return torch.device("cpu") if device.type == "mps" else device
