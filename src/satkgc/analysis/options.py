"""What all analyses are given: runs by their labels, and how to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.progress import progress_bar
from satkgc.training import RunFolder

Runs = Mapping[str, RunFolder]
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What the command line may say."""

    split: str = "test"  # whose questions are asked
    device: str = "auto"
    steps: int | None = None  # batches to draw, where an analysis draws any
    progress: bool = False

    def track(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        """The same items with a bar."""
        with progress_bar(self.progress) as bar:
            task = bar.add_task(what, total=total)
            for item in items:
                yield item
                bar.advance(task)


def one_graph(runs: Runs) -> KnowledgeGraph:
    """The graph that all runs share."""
    graphs = {label: run.kg for label, run in runs.items()}
    (first, kg), *others = graphs.items()
    for label, other in others:
        if (other.num_entities, len(other.train)) != (kg.num_entities, len(kg.train)):
            raise SatkgcError(f"{first} and {label} are of different graphs", remedy="give runs on one graph")
    return kg
