"""From run folders to the figures on false positives: encode, count, print as JSON, draw."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from satkgc.analysis.false_positives import false_positives
from satkgc.arrays import Float32, Int32
from satkgc.errors import SatkgcError
from satkgc.evaluation.candidates import candidate_entities
from satkgc.evaluation.questions import Questions
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Towers
from satkgc.text import Texts
from satkgc.training import Run


class Bars(Protocol):
    """What a figure shows: a ratio for each group."""

    @property
    def groups(self) -> list[str]:
        """Labels."""

    @property
    def ratio(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Heights."""


def open_run(folder: Path, device: str = "cpu") -> tuple[KnowledgeGraph, Towers, Texts]:
    """Graph, towers and texts of a run folder."""
    run = Run.load(folder)
    towers = run.towers(device)
    return run.kg, towers, run.texts(towers)


def entity_vectors(kg: KnowledgeGraph, towers: Towers, texts: Texts) -> Float32:
    """Encoder_t's vectors of all entities.  # (E, d)"""
    return towers.encode_entities(texts.entities(np.arange(kg.num_entities, dtype=np.int32)))


def wrong_answers(run: Path, split: str, device: str) -> tuple[KnowledgeGraph, Iterator[tuple[int, Int32]]]:
    """A run's graph, and the false positives of every question of a split, in both directions."""
    kg, towers, texts = open_run(run, device)
    vectors = entity_vectors(kg, towers, texts)

    def found() -> Iterator[tuple[int, Int32]]:
        for direction, shift in (("head", kg.num_relations), ("tail", 0)):
            questions = Questions.of(kg, kg.split(split), direction, candidate_entities(kg, split, "all"))
            queries = towers.encode_queries(texts.queries(questions.entities, questions.relations + shift))
            yield from false_positives(questions, queries, vectors, device)

    return kg, found()


def draw(figures: Mapping[str, Bars], title: str, file: Path) -> None:
    """Bars side by side, one colour a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    width = 0.8 / len(figures)
    for place, (name, bars) in enumerate(figures.items()):
        axes.bar(np.arange(len(bars.ratio)) + place * width, bars.ratio, width, label=name)
    longest = max((bars.groups for bars in figures.values()), key=len)
    axes.set_xticks(np.arange(len(longest)) + 0.4 - width / 2, longest)
    axes.set(xlabel=title, ylabel="false-positive ratio")
    axes.legend()
    with atomic_write(file) as part:
        figure.savefig(part, format=file.suffix[1:] or "png")
    pyplot.close(figure)


def main(doc: str | None, analyse: Callable[[KnowledgeGraph, Iterable[tuple[int, Int32]]], Bars], title: str) -> None:
    """The command line that the figures share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--split", default="test")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plot", type=Path, help="a picture to draw")
    options = parser.parse_args()
    try:
        figures = {run.name: analyse(*wrong_answers(run, options.split, options.device)) for run in options.runs}
    except SatkgcError as error:
        parser.exit(2, f"error: {error}\n")
    print(json.dumps({run: dict(zip(bars.groups, bars.ratio.tolist(), strict=True)) for run, bars in figures.items()}))
    if options.plot:
        draw(figures, title, options.plot)
