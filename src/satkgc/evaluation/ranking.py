"""Exact filtered ranks of answers among entities, in blocks: the memory does not grow with the number of entities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from satkgc.arrays import Float32, Float64, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation.exact import ONE, UNIT, Vectors, ranking_device, read_rows, to_grid
from satkgc.evaluation.slices import Slices
from satkgc.progress import progress_bar

TIES = ("optimistic", "realistic", "pessimistic")
_ROWS = 256  # queries in a tile: enough for the full speed of a matrix product, few enough for a core's cache


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

    def select(self, queries: Int64 | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ranks:
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


def rank_queries(
    queries: Float32,
    entities: Vectors,
    answers: Int32,
    known: Slices,
    *,
    bonus: Bonus | None = None,
    device: torch.device | str = "cpu",
    memory_mib: int = 64,
    progress: bool = False,
) -> Ranks:
    """Rank answers[i] by cosine among all entities but the other known answers of query i.

    queries (Q, d) and entities (E, d) are L2-normalised float32, the entities in memory, on a device or memory-mapped.
    A tile of scores and the vectors it needs take at most about `memory_mib`. The ranks do not depend on it.
    """
    if not len(queries) == len(answers) == len(known):
        raise SatkgcError(f"{len(queries)} queries, {len(answers)} answers and {len(known)} filters do not match")
    device = ranking_device(device)
    added = 0.0 if bonus is None else round(bonus.weight * UNIT) * UNIT  # on the same exact grid as the scores
    target = _answer_scores(queries, entities, answers, device)  # (Q,)
    if bonus is not None:
        target += added * torch.from_numpy(bonus.members.contain(answers)).to(target)
    counts = torch.zeros(2, len(queries), dtype=torch.int64, device=device)

    width = _columns(queries.shape[1], memory_mib)
    with progress_bar(progress) as bar:
        task = bar.add_task("ranking", total=len(entities))
        for first in range(0, len(entities), width):
            columns = slice(first, min(first + width, len(entities)))
            block = to_grid(read_rows(entities, columns.start, columns.stop), device)  # (e, d)
            for start in range(0, len(queries), _ROWS):
                rows = slice(start, min(start + _ROWS, len(queries)))
                scores = to_grid(queries[rows], device) @ block.T  # (q, e)
                if bonus is not None:
                    scores[_index(bonus.members.tile(rows, columns), device)] += added
                scores[_index(known.tile(rows, columns), device)] = -torch.inf
                scores[_index(_inside(answers[rows], columns), device)] = -torch.inf
                counts[0, rows] += (scores > target[rows, None]).sum(1, dtype=torch.int32)
                counts[1, rows] += (scores == target[rows, None]).sum(1, dtype=torch.int32)
            bar.advance(task, columns.stop - columns.start)

    others = known.stops - known.starts - known.contain(answers)
    greater, equal = counts.cpu().numpy()
    return Ranks(greater, equal, (len(entities) - others).astype(np.int64))


def answer_cosines(queries: Float32, entities: Vectors, answers: Int32) -> Float64:
    """The cosine of each query with its answer.  # (Q,)"""
    return (_answer_scores(queries, entities, answers, torch.device("cpu")) / ONE).numpy()


def _answer_scores(queries: Float32, entities: Vectors, answers: Int32, device: torch.device) -> torch.Tensor:
    scores = torch.empty(len(queries), dtype=torch.float64, device=device)
    for start in range(0, len(queries), _ROWS):
        rows = slice(start, start + _ROWS)
        wanted = entities[answers[rows]] if isinstance(entities, np.ndarray) else entities[torch.tensor(answers[rows])]
        scores[rows] = (to_grid(queries[rows], device) * to_grid(wanted, device)).sum(1)
    return scores


def _columns(dim: int, memory_mib: int) -> int:
    """How many entities fit: their vectors as float32 and float64 twice, and a tile of scores with its comparison."""
    each = dim * (4 + 8 + 8) + _ROWS * (8 + 1)
    return max(1, memory_mib * 2**20 // each)


def _inside(answers: Int32, columns: slice) -> tuple[Int64, Int64]:
    rows = np.flatnonzero((answers >= columns.start) & (answers < columns.stop))
    return rows, answers[rows].astype(np.int64) - columns.start


def _index(pairs: tuple[Int64, Int64], device: torch.device) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(part).to(device, non_blocking=True) for part in pairs)
