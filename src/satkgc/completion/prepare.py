"""What a run needs before it can answer: entity vectors, an index over names, calibrated probabilities."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from satkgc.arrays import Int32
from satkgc.completion.approximate import FaissIndex
from satkgc.completion.asking import Asker, Query
from satkgc.completion.calibration import RIVALS, Calibration, fit
from satkgc.completion.exact import ExactIndex
from satkgc.completion.index import Index
from satkgc.completion.joining import Joining
from satkgc.completion.names import Names
from satkgc.completion.reliability import draw_reliability, report
from satkgc.completion.search import EntitySearch
from satkgc.completion.vectors import Vectors
from satkgc.completion.weigh import weigh_relations
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Towers, model_checksum
from satkgc.progress import progress_bar
from satkgc.text import Texts, Tokens

FORMAT = 1
CHUNK = 1024  # entities encoded before they are written
QUESTIONS = 4000  # validation questions that calibration looks at
IndexKind = Literal["exact", "faiss"]


def prepare(
    run: Path,
    kg: KnowledgeGraph,
    towers: Towers,
    texts: Texts,
    kind: IndexKind = "exact",
    told: Callable[[str], None] = lambda doing: None,
) -> Asker:
    """Encode all entities, index them and their names, calibrate; everything is written into the run folder."""
    folder = run / "index"
    folder.mkdir(exist_ok=True)
    (folder / "index.json").unlink(missing_ok=True)  # it is written last: a folder without it is not ready
    belongs = _belongs_to(run, kg, towers)
    texts.tokens.save(folder / "texts.safetensors")
    _encode_entities(kg, towers, texts, folder / "entities.npy", belongs, told)
    vectors = Vectors.open(folder / "entities.npy")
    search = EntitySearch.build(kg.entities, kg.adjacency.degree)
    search.save(folder)
    asker = Asker(Names(kg, search), towers, texts, vectors, ExactIndex(vectors, str(towers.device)))
    if kind == "faiss":
        faiss = FaissIndex.build(vectors, asker.encode(sample_queries(kg, kg.train, 1000)))
        faiss.save(folder)
        asker.index = faiss
    told("fitting the probabilities")
    asker.calibration, asker.joining = calibrate(asker), weigh_relations(asker)
    if asker.calibration is None:
        for name in ("calibration.json", "reliability.png"):
            (run / name).unlink(missing_ok=True)
    else:
        asker.calibration.save(run / "calibration.json")
        draw_reliability(asker.calibration, run / "reliability.png")
        report(asker.calibration, run / "README.md")
    made = {"kind": kind, "calibrated": asker.calibration is not None, "relations": asdict(asker.joining)}
    with atomic_write(folder / "index.json") as part:
        part.write_text(json.dumps({**belongs, **made}, indent=2) + "\n")
    return asker


def is_prepared(run: Path) -> bool:
    """Whether the run folder has a finished index."""
    return (run / "index" / "index.json").is_file()


def index_checksum(run: Path) -> str:
    """The checksum of the model that the run's index was made with."""
    return str(_facts(run / "index" / "index.json").get("model"))


def stored_tokens(run: Path) -> Tokens | None:
    """The tokens of the run's texts, as `prepare` kept them; earlier versions did not."""
    file = run / "index" / "texts.safetensors"
    try:
        return Tokens.open(file) if file.exists() else None
    except (OSError, ValueError) as error:
        raise _damaged(run, error) from error


def open_prepared(run: Path, kg: KnowledgeGraph, towers: Towers, texts: Texts) -> Asker:
    """Open what `prepare` wrote, if it belongs to this run's model and graph."""
    folder = run / "index"
    facts = _facts(folder / "index.json")
    stored = run / "calibration.json"
    try:
        vectors = Vectors.open(folder / "entities.npy")
        search = EntitySearch.open(folder, kg.entities, kg.adjacency.degree)
        if facts.get("calibrated") and not stored.is_file():
            raise FileNotFoundError(f"no {stored.name}")
        joining = Joining(**facts.get("relations", {}))
        index: Index = ExactIndex(vectors, str(towers.device))
        if facts.get("kind") == "faiss":
            index = FaissIndex.open(folder, vectors)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:  # the last from faiss
        raise _damaged(run, error) from error
    wrong = [name for name, value in _belongs_to(run, kg, towers).items() if facts.get(name) != value]
    if wrong or vectors.parts[0].shape != (kg.num_entities, towers.dim):
        raise SatkgcError(
            f"the index does not belong to this run's {'model' if 'model' in wrong else 'graph'}",
            where=folder,
            remedy=f"make it anew with `satkgc prepare {run}`",
        )
    calibration = Calibration.load(stored) if stored.is_file() else None
    return Asker(Names(kg, search), towers, texts, vectors, index, calibration, joining)


def calibrate(asker: Asker, questions: int = QUESTIONS) -> Calibration | None:
    """Fit probabilities on validation questions, both ways; None where there are too few of them.

    Candidates are a question's RIVALS best without those that training or test triples answer it with: the former are
    no finds, the latter nobody may look at.
    """
    kg = asker.kg
    queries = sample_queries(kg, kg.valid, questions)
    scores = np.full((len(queries), RIVALS), -np.inf, np.float32)
    labels = np.zeros((len(queries), RIVALS), bool)
    for start in range(0, len(queries), 1024):
        some = queries[start : start + 1024]
        vectors = asker.encode(some, progress=True)
        valid = [_valid_answers(kg, query) for query in some]
        excluded = [np.setdiff1d(asker.out(query), true) for query, true in zip(some, valid, strict=True)]
        found, ids = asker.index.search(vectors, min(RIVALS, len(asker.index)), excluded=excluded)
        rows = slice(start, start + len(some))
        scores[rows, : found.shape[1]] = found
        for row, (mine, true) in enumerate(zip(ids, valid, strict=True), start):
            labels[row, : len(mine)] = np.isin(mine, true)
    return fit(scores, labels)


def sample_queries(kg: KnowledgeGraph, triples: Int32, count: int) -> list[Query]:
    """Distinct queries of some triples, tails and heads asked for alike."""
    rng = np.random.default_rng(0)
    both = np.concatenate([triples[:, :2], np.stack([triples[:, 2], triples[:, 1] + kg.num_relations], 1)])
    both = np.unique(both, axis=0)
    chosen = both[np.sort(rng.choice(len(both), min(count, len(both)), replace=False))]
    return [(int(entity), int(directed)) for entity, directed in chosen]


def _valid_answers(kg: KnowledgeGraph, query: Query) -> Int32:
    """Answers that validation has and training has not."""
    entity, directed = query
    assert isinstance(entity, int)
    inverse = directed >= kg.num_relations
    rows = kg.valid[(kg.valid[:, 1] == directed % kg.num_relations) & (kg.valid[:, 2 if inverse else 0] == entity)]
    return np.setdiff1d(rows[:, 0 if inverse else 2], kg.known_train.answers(entity, directed))


def _encode_entities(
    kg: KnowledgeGraph,
    towers: Towers,
    texts: Texts,
    file: Path,
    belongs: dict[str, Any],
    told: Callable[[str], None],
) -> None:
    """Into a memory-mapped file, a chunk at a time: millions of entities need no more memory than a few, and what one
    that was stopped has written is not encoded again."""
    key = hashlib.sha256(json.dumps(belongs).encode()).hexdigest()[:16]
    part = file.with_name(f"entities-{key}.part.npy")
    for other in file.parent.glob("entities*.part.npy"):
        if other != part:
            other.unlink()
    whole = part.exists() and part.stat().st_size > 4 * kg.num_entities * towers.dim
    rows = np.lib.format.open_memmap(part, "r+" if whole else "w+", np.float32, (kg.num_entities, towers.dim))
    with progress_bar() as progress:
        task = progress.add_task("encoding entities", total=kg.num_entities)
        for start in range(0, kg.num_entities, CHUNK):
            told(f"encoding the entities, {100 * start // kg.num_entities} %")
            stop = min(start + CHUNK, kg.num_entities)
            if not rows[stop - 1].any():  # a vector is never zero
                rows[start:stop] = towers.encode_entities(texts.entities(np.arange(start, stop)), progress=False)
            progress.advance(task, stop - start)
    rows.flush()
    del rows
    with suppress(FileNotFoundError):  # another process that did the same was there first
        os.replace(part, file)


def _damaged(run: Path, error: Exception) -> SatkgcError:
    remedy = f"make it anew with `satkgc prepare {run}`"
    return SatkgcError(f"the index is damaged ({error})", where=run / "index", remedy=remedy)


def _belongs_to(run: Path, kg: KnowledgeGraph, towers: Towers) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "model": model_checksum(run / "model"),
        "graph": kg.fingerprint,
        "entities": kg.num_entities,
        "dim": towers.dim,
    }


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts = json.loads(file.read_text())
    except ValueError as broken:
        raise SatkgcError("not an index", where=file, remedy="make it anew with `satkgc prepare`") from broken
    return facts if isinstance(facts, dict) else {}
