"""From two towers to a report: encode every candidate and every question once, then rank."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from satkgc.arrays import Float32, Int32, Int64
from satkgc.evaluation.candidates import candidate_entities
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.metrics import DIRECTIONS
from satkgc.evaluation.questions import Questions, triples_to_ask
from satkgc.evaluation.ranking import Ranks, rank_queries
from satkgc.evaluation.report import Report
from satkgc.evaluation.rerank import neighbourhood_bonus
from satkgc.kg import KnowledgeGraph

if TYPE_CHECKING:
    from satkgc.models.text import Towers
    from satkgc.text import Texts

_CHUNK = 1 << 16  # entities put into words and encoded at a time
_TILE_MIB = 64


def evaluate(
    towers: Towers,
    texts: Texts,
    kg: KnowledgeGraph,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    rows: Int64 | None = None,
    progress: bool = False,
) -> Report:
    """Filtered ranks of a split's triples, or of some of its rows, in both directions.

    The paper's inference (appendix A): the cosine of the query vector with every entity vector. Entity vectors beyond
    `config.memory_mib` are kept in a temporary file, so that memory does not grow with the graph.
    """
    return evaluate_with(
        lambda entities: towers.encode_entities(texts.entities(entities), progress=progress),
        lambda entities, directed: towers.encode_queries(texts.queries(entities, directed), progress=progress),
        kg,
        split,
        config,
        rows=rows,
        device=towers.device,
        progress=progress,
    )


def evaluate_with(
    encode_entities: Callable[[Int32], Float32],
    encode_queries: Callable[[Int32, Int32], Float32],
    kg: KnowledgeGraph,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    rows: Int64 | None = None,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> Report:
    """As `evaluate`, for any encoder of entities and of (entity, directed relation) queries into unit vectors."""
    config = config or EvaluationConfig()
    triples = triples_to_ask(kg, split, rows)
    candidates = candidate_entities(kg, split, config.candidates)
    ranks: dict[str, Ranks] = {}
    ranking = 0.0
    begin = time.perf_counter()
    with ExitStack() as stack:
        vectors = _encode_candidates(encode_entities, candidates, config, stack)
        for direction in DIRECTIONS:
            queries = _encode_questions(encode_queries, triples, direction, kg.num_relations)
            start = time.perf_counter()
            ranks[direction] = _rank(kg, triples, direction, queries, vectors, candidates, config, device, progress)
            ranking += time.perf_counter() - start
    total = time.perf_counter() - begin
    seconds = {"encoding": total - ranking, "ranking": ranking}
    report = Report(kg, split, triples, replace(config, sampled=0), len(candidates), ranks, seconds)
    return report.sampled(config.sampled) if config.sampled else report


def _encode_candidates(
    encode: Callable[[Int32], Float32], candidates: Int32, config: EvaluationConfig, stack: ExitStack
) -> Float32:
    """Vectors of all candidates, in memory where they fit the setting, else in a file that goes with the stack."""
    # Ranked as float32, whatever the encoder gives, so kept as that too.
    starts = range(0, len(candidates), _CHUNK)
    chunks = (np.asarray(encode(candidates[start : start + _CHUNK]), np.float32) for start in starts)
    first = next(chunks)
    if len(candidates) * first[:1].nbytes <= (config.memory_mib - _tile_mib(config)) * 2**20:
        return np.concatenate([first, *chunks]) if len(starts) > 1 else first
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="satkgc-"))
    file = Path(folder) / "entities.f32"
    with file.open("wb") as stream:  # written, not mapped: pages written through a map would stay resident
        for chunk in itertools.chain([first], chunks):
            chunk.tofile(stream)
    return np.memmap(file, np.float32, "r", shape=(len(candidates), first.shape[1]))


def _encode_questions(
    encode: Callable[[Int32, Int32], Float32], triples: Int32, direction: str, num_relations: int
) -> Float32:
    """One vector per triple; a question that several triples answer is encoded once."""
    asked, directed = triples[:, 0], triples[:, 1]
    if direction == "head":
        asked, directed = triples[:, 2], triples[:, 1] + num_relations
    distinct, place = np.unique(np.stack([asked, directed], 1), axis=0, return_inverse=True)
    return encode(np.ascontiguousarray(distinct[:, 0]), np.ascontiguousarray(distinct[:, 1]))[place]


def _rank(
    kg: KnowledgeGraph,
    triples: Int32,
    direction: str,
    queries: Float32,
    vectors: Float32,
    candidates: Int32,
    config: EvaluationConfig,
    device: torch.device | str,
    progress: bool,
) -> Ranks:
    asked = Questions.of(kg, triples, direction, candidates)
    bonus = None
    if config.rerank_hops:
        bonus = neighbourhood_bonus(kg.adjacency, asked.entities, config.rerank_hops, config.rerank_weight)
        if len(candidates) < kg.num_entities:
            bonus = bonus.among(candidates)
    return rank_queries(
        queries,
        vectors,
        asked.answers,
        asked.known,
        bonus=bonus,
        device=device,
        memory_mib=_tile_mib(config),
        progress=progress,
    )


def _tile_mib(config: EvaluationConfig) -> int:
    return min(_TILE_MIB, config.memory_mib // 2)
