"""Filtered ranks of answers by exact cosines or by any scores, in blocks: memory does not grow with the entities.

Cosines are exact, so that no block size, device or thread count can change a rank. Entries of vectors are rounded to
multiples of 2^-26 and kept as whole float64 numbers. A product of two is a whole number, and any partial sum of a dot
product of two unit vectors is below 2^52 in size (Cauchy-Schwarz), so float64 holds every one of them without rounding:
the order in which a matrix product adds cannot matter. The rounding of an entry, at most 2^-27, is finer than the error
of a float32 dot product. What is left below 2^53 is for a bonus of `MOST_BONUS`.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from satkgc.arrays import Bool, Float32, Float64, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation.questions import Slices
from satkgc.processes import Processes
from satkgc.progress import progress_bar

UNIT = 2.0**26
ONE = UNIT * UNIT  # a cosine of 1 in score units
MOST_BONUS = 0.9
TIES = ("optimistic", "realistic", "pessimistic")
_NORM_LIMIT = 1.001
_ROWS = 256  # queries in a tile: enough for the full speed of a matrix product, few enough for a core's cache

VectorArray = Float32 | Tensor


@dataclass(frozen=True, eq=False)
class Ranks:
    """For every query, how many candidates beat the answer and how many tie with it: all three tie rules in one."""

    greater: Int64  # (Q,) candidates that score higher than the answer
    equal: Int64  # (Q,) other candidates that score the same
    candidates: Int64  # (Q,) candidates left by the filter, the answer among them

    def __len__(self) -> int:
        return len(self.greater)

    def rank(self, ties: str = "realistic") -> Float64:
        """1-based ranks: ties all behind the answer (optimistic), all before it (pessimistic), or half and half."""
        share = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[ties]
        return 1.0 + self.greater + share * self.equal

    def select(self, queries: Int64 | Bool) -> Ranks:
        """The ranks of some of the queries."""
        return Ranks(self.greater[queries], self.equal[queries], self.candidates[queries])

    @staticmethod
    def concatenate(parts: list[Ranks]) -> Ranks:
        """One after the other."""
        columns = zip(*((part.greater, part.equal, part.candidates) for part in parts), strict=True)
        return Ranks(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class Bonus:
    """A constant added to the cosine of some entities of each query: neighbourhood re-ranking."""

    members: Slices
    weight: float

    def among(self, candidates: Int32) -> Bonus:
        """The same for ascending `candidates`, renumbered to their places."""
        return Bonus(self.members.among(candidates), self.weight)


@dataclass(frozen=True, eq=False)
class Barred:
    """An entity of each query that is no answer: its cosine is -1 whatever its vector."""

    places: Int32  # (Q,) among the candidates; -1: there is none
    are_answers: Bool  # (Q,) where it is the answer that is ranked


def rank_queries(
    queries: Float32,
    entities: VectorArray,
    answers: Int32,
    known: Slices,
    *,
    bonus: Bonus | None = None,
    barred: Barred | None = None,
    device: torch.device | str = "cpu",
    memory_mib: int = 64,
    progress: bool = False,
    processes: Processes | None = None,
    num_entities: int | None = None,
    outside: Float32 | None = None,
) -> Ranks:
    """Rank answers[i] by cosine among all entities but the other known answers of query i.

    queries (Q, d) and entities (E, d) are L2-normalised float32, the entities in memory, on a device or memory-mapped.
    A tile of scores and the vectors it needs take at most about `memory_mib`. The ranks do not depend on it.

    With several `processes` each has all queries and its share of `num_entities` entities. Counts of rivals add up over
    the shares, so the ranks are those of one process that has all of them.

    Answers of -1 are none of the entities; `outside` has their vectors, one after the other.
    """
    processes = processes or Processes()
    total = len(entities) if num_entities is None else num_entities
    share = processes.share(total)
    if not len(queries) == len(answers) == len(known):
        raise SatkgcError(f"{len(queries)} queries, {len(answers)} answers and {len(known)} filters do not match")
    device = ranking_device(device)
    added = 0.0 if bonus is None else round(bonus.weight * UNIT) * UNIT  # on the same exact grid as the scores
    own = np.flatnonzero((answers >= share.start) & (answers < share.stop))
    target = torch.zeros(len(queries), dtype=torch.float64, device=device)
    target[torch.from_numpy(own).to(device)] = _answer_scores(
        queries[own], entities, answers[own] - share.start, device
    )
    target = processes.sum(target)  # (Q,) a score and zeros: exact
    if outside is not None:
        rows_outside = np.flatnonzero(answers < 0)
        places = np.arange(len(rows_outside), dtype=np.int32)
        scores_outside = _answer_scores(queries[rows_outside], outside, places, device)
        target[torch.from_numpy(rows_outside).to(device)] = scores_outside
    if bonus is not None:
        target += added * torch.from_numpy(bonus.members.contain(answers)).to(target)
    if barred is not None:
        target[torch.from_numpy(barred.are_answers).to(device)] = -ONE
    counts = torch.zeros(2, len(queries), dtype=torch.int64, device=device)

    width = _columns(queries.shape[1], memory_mib)
    with progress_bar(progress) as bar:
        task = bar.add_task("ranking", total=len(entities))
        for first in range(0, len(entities), width):
            last = min(first + width, len(entities))
            columns = slice(share.start + first, share.start + last)
            block = to_grid(read_rows(entities, first, last), device)  # (e, d)
            for start in range(0, len(queries), _ROWS):
                rows = slice(start, min(start + _ROWS, len(queries)))
                scores = to_grid(queries[rows], device) @ block.T  # (q, e)
                if bonus is not None:
                    scores[_index(bonus.members.tile(rows, columns), device)] += added
                if barred is not None:
                    scores[_index(_within(barred.places[rows], columns), device)] = -ONE
                masks = find_rivals(scores, answers, known, rows, columns, target[rows])
                for count, rivals in zip(counts, masks, strict=True):
                    count[rows] += rivals.sum(1, dtype=torch.int32)
            bar.advance(task, last - first)
    return _ranks(processes.sum(counts).cpu().numpy(), answers, known, total)


def rank_scores(
    blocks: Iterable[tuple[slice | Int64, Tensor]],
    answers: Int32,
    known: Slices,
    num_candidates: int,
    processes: Processes | None = None,
) -> Ranks:
    """Rank answers[i] by scores of any scale among all candidates but the other known answers of question i.

    The blocks are the scores of a few questions after another, each with their rows; each of several `processes` has
    blocks of its own.  # (q, candidates)
    """
    processes = processes or Processes()
    counts = np.zeros((2, len(answers)), np.int64)
    for rows, scores in blocks:
        masks = find_rivals(scores, answers, known, rows)
        counts[:, rows] = torch.stack([rivals.sum(1) for rivals in masks]).cpu().numpy()
    counts = processes.sum(torch.from_numpy(counts).to(processes.device)).cpu().numpy()
    return _ranks(counts, answers, known, num_candidates)


def find_rivals(
    scores: Tensor,
    answers: Int32,
    known: Slices,
    rows: slice | Int64,
    columns: slice | None = None,
    target: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Which candidates of a tile score higher than the answer, and which the same; known answers are no rivals.

    `scores` (q, e) are those of the rows and columns. A tile of some columns needs the answers' own, `target` (q,).
    """
    if target is None:
        places = torch.from_numpy(answers[rows].astype(np.int64)).to(scores.device)
        target = scores.gather(1, places[:, None])[:, 0]
    columns = columns or slice(0, scores.shape[1])
    pairs = known.tile(rows, columns), _within(answers[rows], columns)
    excluded = _index((np.concatenate(part) for part in zip(*pairs, strict=True)), scores.device)
    greater, equal = scores > target[:, None], scores == target[:, None]
    for rivals in (greater, equal):
        rivals[excluded] = False
    return greater, equal


def sample_candidates(ranks: Ranks, sampled: int, seed: int, purpose: str) -> Ranks:
    """Ranks among the answer and `sampled` other entities, drawn for each query without replacement after the filter.

    Of the entities drawn only the number that beat the answer and the number that tie with it matter. Those numbers
    follow a hypergeometric law given the exact full counts, so they are drawn from it and no entity has to be: the
    result has the distribution of an explicit draw. Where fewer others are left, all of them compete.
    """
    rng = np.random.default_rng([seed, *purpose.encode()])
    others = ranks.candidates - 1
    size = np.minimum(sampled, others)
    greater = rng.hypergeometric(ranks.greater, others - ranks.greater, size)
    rest = others - ranks.greater  # those that do not beat the answer, of which size - greater are taken
    equal = rng.hypergeometric(ranks.equal, rest - ranks.equal, size - greater)
    return Ranks(greater, equal, size + 1)


def exact_scores(queries: VectorArray, entities: VectorArray, device: torch.device | str = "cpu") -> Tensor:
    """All cosines in score units (`ONE` is 1).  # (q, d), (e, d) -> (q, e)"""
    return to_grid(queries, device) @ to_grid(entities, device).T


def to_grid(vectors: VectorArray, device: torch.device | str = "cpu") -> Tensor:
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


def read_rows(vectors: VectorArray, start: int, stop: int) -> VectorArray:
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
    """Where to rank: on this device, or on the CPU where it has no float64."""
    device = torch.device(device)
    return torch.device("cpu") if device.type == "mps" else device


def _answer_scores(queries: Float32, entities: VectorArray, answers: Int32, device: torch.device) -> Tensor:
    scores = torch.empty(len(queries), dtype=torch.float64, device=device)
    for start in range(0, len(queries), _ROWS):
        rows = slice(start, start + _ROWS)
        own = entities[answers[rows]] if isinstance(entities, np.ndarray) else entities[torch.tensor(answers[rows])]
        scores[rows] = (to_grid(queries[rows], device) * to_grid(own, device)).sum(1)
    return scores


def _ranks(counts: Int64, answers: Int32, known: Slices, num_candidates: int) -> Ranks:
    """From the counts (2, Q) of rivals; the filter leaves the answer among the candidates."""
    others = known.stops - known.starts - known.contain(answers)
    greater, equal = counts
    return Ranks(greater, equal, (num_candidates - others + (answers < 0)).astype(np.int64))


def _within(places: Int32, columns: slice) -> tuple[Int64, Int64]:
    """Local rows and columns of those of the places, one a row, that a tile has."""
    rows = np.flatnonzero((places >= columns.start) & (places < columns.stop))
    return rows, places[rows].astype(np.int64) - columns.start


def _columns(dim: int, memory_mib: int) -> int:
    """How many entities fit: their vectors as float32 and float64 twice, and a tile of scores with two comparisons."""
    each = dim * (4 + 8 + 8) + _ROWS * (8 + 1 + 1)
    return max(1, memory_mib * 2**20 // each)


def _index(pairs: Iterable[Int64], device: torch.device) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(part).to(device, non_blocking=True) for part in pairs)
