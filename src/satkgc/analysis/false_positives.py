"""The false triples that a model ranks above the true one, by distance and by degree: Figures 1 and 2 of the paper, and
the mean degree of their tails (Section 5.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from satkgc.analysis.chart import Chart, align
from satkgc.analysis.options import Options, Runs
from satkgc.analysis.similarity import add_counts, choose_sources, pairs_at_distance
from satkgc.arrays import Float64, Int32, Int64
from satkgc.evaluation import (
    DIRECTIONS,
    RankingTask,
    Scorer,
    candidate_entities,
    find_rivals,
    score_blocks,
    split_triples,
)
from satkgc.kg import KnowledgeGraph, hops_from
from satkgc.training import RunFolder

FalsePositives = Iterable[tuple[int, Int32]]  # of each question its entity, and the false answers above the true one


@dataclass(frozen=True, eq=False)
class ByDistance:
    """Index i is distance i + 1."""

    false_positives: Int64
    pairs: Float64  # unordered

    @property
    def groups(self) -> list[str]:
        """The distances, as labels."""
        return [str(distance) for distance in range(1, len(self.pairs) + 1)]

    @property
    def values(self) -> Float64:
        """False positives per pair."""
        return self.false_positives / np.maximum(self.pairs, 1)


@dataclass(frozen=True, eq=False)
class ByDegree:
    """One entry a group, from low degrees to high."""

    bounds: list[tuple[int, int]]  # lowest and highest degree
    false_positives: Float64  # per question
    entities: Int64
    mean_degree: float  # of the tails of all false positives

    @property
    def groups(self) -> list[str]:
        """The degrees of each group, as labels."""
        return [f"{low}–{high}" for low, high in self.bounds]

    @property
    def values(self) -> Float64:
        """False positives per question and entity."""
        return self.false_positives / self.entities


def find_false_positives(model: Scorer, kg: KnowledgeGraph, split: str = "test") -> Iterator[tuple[int, Int32]]:
    """Of each triple of a split, asked for its head and for its tail, the question's entity, and the entities that
    score higher than the answer and are none; in any order."""
    triples, everyone = split_triples(kg, split), candidate_entities(kg, split, "all")
    tasks = [RankingTask.of(kg, triples, direction, everyone) for direction in DIRECTIONS]
    for task, rows, scores in score_blocks(model, kg, tasks):
        above, _ = find_rivals(scores, task.answers, task.known, rows)  # (q, E)
        for entity, row in zip(task.entities[rows], above.cpu().numpy(), strict=True):
            yield int(entity), row.nonzero()[0].astype(np.int32)


def count_by_distance(
    kg: KnowledgeGraph, false_positives: FalsePositives, sources: int | None = 2_000, seed: int = 0
) -> ByDistance:
    """Figure 1: are false triples ranked too high more often where head and tail are near each other?

    The number of false positives whose two entities lie so far apart in the training graph, over the number of entity
    pairs that do (the figure's footnote). Entities without a path count nowhere. Pairs are counted from at most
    `sources` entities.
    """
    count: Int64 = np.zeros(1, np.int64)
    for entity, wrong in false_positives:
        hops = hops_from(kg.adjacency, np.array([entity], np.int32))[0, wrong]
        count = add_counts(count, np.bincount(hops[hops >= 0]))
    origins = choose_sources(kg.num_entities, sources, seed)
    pairs = pairs_at_distance(kg.adjacency, origins) * (kg.num_entities / len(origins) / 2)
    length = max(len(count) - 1, len(pairs))
    wrong_counts = add_counts(count[1:], np.zeros(length, np.int64))
    return ByDistance(wrong_counts, np.pad(pairs, (0, length - len(pairs))))


def count_by_degree(kg: KnowledgeGraph, false_positives: FalsePositives, groups: int = 5) -> ByDegree:
    """Figure 2: are false triples ranked too high more often where the tail has many neighbours?

    The degrees that occur in the training graph are cut into groups of equally many distinct degrees. A group's value
    is the false positives per question whose entity has such a degree, over the number of such entities.
    """
    degree = kg.adjacency.degree
    parts = [part for part in np.array_split(np.unique(degree), groups) if len(part)]
    group = np.searchsorted([part[-1] for part in parts], degree)  # (E,) the group of every entity
    count, questions, total = np.zeros(len(parts), np.int64), 0, 0
    for _, wrong in false_positives:
        count += np.bincount(group[wrong], minlength=len(parts))
        total += int(degree[wrong].sum(dtype=np.int64))
        questions += 1
    bounds = [(int(part[0]), int(part[-1])) for part in parts]
    mean = total / max(int(count.sum()), 1)
    return ByDegree(bounds, count / max(questions, 1), np.bincount(group, minlength=len(parts)), mean)


def chart_by_distance(runs: Runs, options: Options) -> list[Chart]:
    """Figure 1."""
    bars = {}
    for label, run in runs.items():
        found = count_by_distance(run.kg, _questions(run, options))
        bars[label] = dict(zip(found.groups, found.values.tolist(), strict=True))
    return [align("False-positive ratio", "distance between head and tail", bars)]


def chart_by_degree(runs: Runs, options: Options) -> list[Chart]:
    """Figure 2, and the mean degree of the tails."""
    bars, means = {}, {}
    for label, run in runs.items():
        found = count_by_degree(run.kg, _questions(run, options))
        bars[label] = dict(zip(found.groups, found.values.tolist(), strict=True))
        means[label] = {"false positives": found.mean_degree, "all entities": float(run.kg.adjacency.degree.mean())}
    return [
        align("False-positive ratio", "degree of the tail", bars),
        align("Mean degree of the tail", "of", means),
    ]


def _questions(run: RunFolder, options: Options) -> Iterator[tuple[int, Int32]]:
    total = 2 * len(split_triples(run.kg, options.split))
    return options.track(find_false_positives(run.model(options.device), run.kg, options.split), "asking", total)
