"""From the scores of any model to a report: the questions, filter and ties are those that vectors are ranked by."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from satkgc.arrays import Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation.candidates import candidate_entities
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.metrics import DIRECTIONS
from satkgc.evaluation.questions import Questions, triples_to_ask
from satkgc.evaluation.ranking import Ranks
from satkgc.evaluation.report import Report
from satkgc.kg import KnowledgeGraph
from satkgc.progress import progress_bar

Scorer = Callable[[Int64, Int64], Any]
_BYTES = 24  # of a score: itself, widened, the candidates' part of it and two comparisons


def evaluate_scores(
    score_tails: Scorer,
    score_heads: Scorer,
    kg: KnowledgeGraph,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    rows: Int64 | None = None,
    batch: int = 64,
    progress: bool = False,
) -> Report:
    """As `evaluate`, for a model that scores every entity, higher is better; one made elsewhere will do.

    `score_tails(heads, relations)` and `score_heads(relations, tails)` take the graph's own numbers, at most `batch` of
    each, and give an array or a tensor of (n, entities), of any precision. Scores that are equal tie.
    """
    config = config or EvaluationConfig()
    if config.rerank_hops:
        problem = "re-ranking adds to a cosine, and scores may have any scale"
        raise SatkgcError(problem, remedy="set evaluation.rerank_hops to 0")
    triples = triples_to_ask(kg, split, rows)
    candidates = candidate_entities(kg, split, config.candidates)
    batch = max(1, min(batch, config.memory_mib * 2**20 // (_BYTES * kg.num_entities)))
    ranks = {}
    begin = time.perf_counter()
    with progress_bar(progress) as bar:
        task = bar.add_task("ranking", total=len(DIRECTIONS) * len(triples))
        for direction in DIRECTIONS:
            scorer = score_tails if direction == "tail" else score_heads
            parts = []
            for start in range(0, len(triples), batch):
                asked = triples[start : start + batch]
                scores = _scores(scorer, kg, asked, direction)
                parts.append(_rank(scores, Questions.of(kg, asked, direction, candidates), candidates))
                bar.advance(task, len(asked))
            ranks[direction] = Ranks.concatenate(parts)
    seconds = {"ranking": time.perf_counter() - begin}
    report = Report(kg, split, triples, replace(config, sampled=0), len(candidates), ranks, seconds)
    return report.sampled(config.sampled) if config.sampled else report


def _scores(scorer: Scorer, kg: KnowledgeGraph, asked: Int32, direction: str) -> torch.Tensor:
    """The scores of all entities for a batch of triples, checked.  # (q, E)"""
    name, columns = ("score_tails", [0, 1]) if direction == "tail" else ("score_heads", [1, 2])
    with torch.no_grad():
        given = scorer(*(asked[:, column].astype(np.int64) for column in columns))
    scores = _as_tensor(given, name)
    wanted = len(asked), kg.num_entities
    if tuple(scores.shape) != wanted:
        raise SatkgcError(
            f"{name} gave scores of shape {tuple(scores.shape)}",
            remedy=f"give {wanted}: a row for each question, a column for each entity of the graph",
        )
    bad = scores.isnan().any(1).nonzero()
    if len(bad):
        head, relation, tail = asked[int(bad[0])]
        entity = head if direction == "tail" else tail
        question = f"({kg.entities.id(entity)}, {kg.relations.id(relation)})"
        raise SatkgcError(f"{name} gave NaN, first for {question}", remedy="a model that gives NaN has no ranks")
    return scores


def _as_tensor(scores: Any, name: str) -> torch.Tensor:
    """Numbers that torch can compare; widened where it cannot."""
    if not isinstance(scores, torch.Tensor):
        scores = np.asarray(scores)
        if scores.dtype.kind in "fiub":
            return torch.from_numpy(scores.astype(np.float64 if scores.dtype.kind == "f" else np.int64))
    elif not scores.is_complex():
        return scores if scores.is_floating_point() else scores.long()
    raise SatkgcError(f"{name} gave {scores.dtype}", remedy="give an array or a tensor of real numbers")


def _rank(scores: torch.Tensor, questions: Questions, candidates: Int32) -> Ranks:
    """The places of the answers by their scores among the candidates."""
    if len(candidates) < scores.shape[1]:
        scores = scores[:, torch.from_numpy(candidates.astype(np.int64)).to(scores.device)]
    answers = torch.from_numpy(questions.answers.astype(np.int64)).to(scores.device)[:, None]
    members = questions.known.tile(slice(0, len(answers)), slice(0, len(candidates)))
    known = tuple(torch.from_numpy(part).to(scores.device) for part in members)
    target = scores.gather(1, answers)
    greater, equal = scores > target, scores == target
    for counted in (greater, equal):
        counted[known] = False  # the answer among them: its triple is of the graph
    left = len(candidates) - (questions.known.stops - questions.known.starts) + 1
    return Ranks(greater.sum(1).cpu().numpy(), equal.sum(1).cpu().numpy(), left)
