"""What the candidates of a fused model on a large graph miss, on validation questions: measured by `prepare`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from satkgc.completion.calibration import sample_queries, valid_answers
from satkgc.completion.candidates import CandidateRetriever
from satkgc.completion.info import CandidateRecall
from satkgc.completion.retriever import FusedRetriever
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write

if TYPE_CHECKING:
    from satkgc.completion.engine import Engine

QUESTIONS = 500  # of validation that are looked at
COMPARED = 100  # of them, scored whole as well; fewer on large graphs, where that is slow:
FEWEST, SCORED = 10, 50_000_000  # at least so many, and so many entities in all
FIRST = 10


def save_recall(recall: CandidateRecall, file: Path) -> None:
    """Write as JSON."""
    with atomic_write(file) as part:
        part.write_text(json.dumps(asdict(recall), indent=2) + "\n")


def load_recall(file: Path) -> CandidateRecall:
    """Read what `save_recall` wrote."""
    try:
        return CandidateRecall(**json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise SatkgcError("not a recall of candidates", where=file, remedy="run `satkgc prepare`") from error


def measure_recall(engine: Engine, retriever: CandidateRetriever) -> CandidateRecall:
    """On validation questions, both ways."""
    kg = engine.kg
    queries = sample_queries(kg, kg.valid, QUESTIONS)
    questions, true = engine.questions(queries), [valid_answers(kg, query) for query in queries]
    exclude = [np.setdiff1d(engine.exclude(query), right) for query, right in zip(queries, true, strict=True)]
    found = list(retriever.candidates(questions, FIRST, exclude))
    right = [np.isin(answers, own) for answers, own in zip(true, found, strict=True)]
    least = max(FEWEST, SCORED // kg.num_entities)
    rows = np.random.default_rng(0).permutation(len(queries))[: min(COMPARED, least)]
    asked, out = retriever.encode(questions.select(rows)), [exclude[row] for row in rows]
    whole = FusedRetriever.search(retriever, asked, FIRST, exclude=out)[1]
    ours = retriever.search(asked, FIRST, exclude=out)[1]
    there = [np.isin(ids[ids >= 0], found[row]) for ids, row in zip(whole, rows, strict=True)]
    return CandidateRecall(
        listed=retriever.listed,
        near=retriever.near,
        questions=len(queries),
        candidates=float(np.mean([len(own) for own in found])) if found else 0.0,
        right=_share(right),
        compared=len(rows),
        first=_share([ids[:1] for ids in there]),
        first_ten=_share(there),
        same_first=_share([whole[:, 0] == ours[:, 0]]),
    )


def _share(parts: list[np.ndarray]) -> float | None:
    joined = np.concatenate([np.empty(0, bool), *parts])
    return float(joined.mean()) if len(joined) else None
