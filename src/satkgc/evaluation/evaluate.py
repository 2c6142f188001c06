"""From a model to a report: score every question, filter, count."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from satkgc.arrays import Float32, Int32, Int64
from satkgc.errors import SatkgcError
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.metrics import DIRECTIONS
from satkgc.evaluation.questions import MANY_ENTITIES, RankingTask, candidate_entities, draw_pool, split_triples
from satkgc.evaluation.ranking import ONE, Barred, Ranks, rank_queries, rank_scores, ranking_device, to_grid
from satkgc.evaluation.report import Report
from satkgc.evaluation.rerank import neighbourhood_bonus
from satkgc.kg import KnowledgeGraph
from satkgc.processes import Processes
from satkgc.progress import progress_bar

if TYPE_CHECKING:
    from satkgc.models import Questions, VectorModel

_CHUNK = 1 << 16  # entities encoded at a time
_TILE_MIB = 64
_QUESTIONS = 64  # scored at a time, at most
_BYTES = 24  # of a score: itself, widened, the candidates' part of it and two comparisons

Tasks = dict[str, RankingTask]  # by direction


class Scorer(Protocol):
    """What can be ranked by its scores: a `Model`, or anything else with this method."""

    def score(self, questions: Questions) -> Any:
        """How well every entity of the graph answers, higher is better.  # (questions, entities)"""


@dataclass(frozen=True)
class ScoreFunctions:
    """A model made elsewhere, as two functions that score every entity of the graph, higher is better.

    `score_tails(heads, relations)` and `score_heads(relations, tails)` take the graph's own numbers, int64, at most 64
    of each, and give an array or a tensor of (questions, entities), of any precision. Scores that are equal tie.
    """

    score_tails: Callable[[Int64, Int64], Any]
    score_heads: Callable[[Int64, Int64], Any]


def evaluate(
    model: Scorer | ScoreFunctions,
    kg: KnowledgeGraph,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    rows: Int64 | None = None,
    progress: bool = False,
    processes: Processes | None = None,
) -> Report:
    """Filtered ranks of a split's triples, or of some of its rows, in both directions.

    A `VectorModel` is ranked by the exact cosines of its vectors (the paper's inference, appendix A). Entity vectors
    beyond `config.memory_mib` are kept in a temporary file, so that memory does not grow with the graph. Anything else
    that has `score(questions)`, and `ScoreFunctions`, is ranked by its scores, a few questions at a time.

    Several `processes` share the work, and all of them get the whole report.

    With `config.sampled`, on graphs of more than MANY_ENTITIES, only a pool of candidates and the answers are encoded.
    Of such figures AMRI is an estimate without bias of that among all candidates; MRR and Hits@k are higher.
    """
    config = config or EvaluationConfig()
    triples = split_triples(kg, split, rows)
    candidates = candidate_entities(kg, split, config.candidates)
    count = len(candidates)
    if config.sampled and count > MANY_ENTITIES and _has_vectors(model) and not config.rerank_hops:
        candidates = draw_pool(candidates, config.sampled, config.seed)
    tasks = {direction: RankingTask.of(kg, triples, direction, candidates) for direction in DIRECTIONS}
    processes = processes or Processes()
    progress = progress and processes.first
    if processes.world > len(candidates):  # too few to share: each ranks all of them
        processes = Processes(device=processes.device)
    with _eval_mode(model):
        if _has_vectors(model):
            ranks, seconds = _rank_by_vectors(model, kg, tasks, triples, candidates, config, progress, processes)
        else:
            ranks, seconds = _rank_by_scores(model, kg, tasks, candidates, config, progress, processes)
    report = Report(kg, split, triples, config.replace(sampled=0), count, ranks, seconds)
    return report.sampled(config.sampled) if config.sampled else report


def score_blocks(
    model: Scorer | ScoreFunctions, kg: KnowledgeGraph, tasks: Iterable[RankingTask], block: int = 32
) -> Iterator[tuple[RankingTask, Int64, Tensor]]:
    """Scores of all entities for a few rows of a task after another, as `evaluate` ranks by them.  # (q, E)

    Those of a `VectorModel` are exact cosines in units of `ranking.ONE`. All its entity vectors are kept in memory.
    """
    with _eval_mode(model):
        if _has_vectors(model):
            device = ranking_device(model.device)
            grid = to_grid(model.encode_entities(np.arange(kg.num_entities, dtype=np.int32)), device)  # (E, d)
            for task in tasks:
                queries = _encode_questions(model, task)
                for start in range(0, len(task), block):
                    rows = np.arange(start, min(start + block, len(task)))
                    scores = to_grid(queries[rows], device) @ grid.T
                    own = np.flatnonzero(model.bars_own(questions := _questions(task).select(rows)))
                    scores[torch.from_numpy(own), torch.from_numpy(questions.entities[own].astype(np.int64))] = -ONE
                    yield task, rows, scores
        else:
            for task in tasks:
                for rows, scores in _score_blocks(model, kg, task, block):
                    yield task, rows, scores


def _rank_by_vectors(
    model: VectorModel,
    kg: KnowledgeGraph,
    tasks: Tasks,
    triples: Int32,
    candidates: Int32,
    config: EvaluationConfig,
    progress: bool,
    processes: Processes,
) -> tuple[dict[str, Ranks], dict[str, float]]:
    ranks: dict[str, Ranks] = {}
    ranking = 0.0
    begin = time.perf_counter()
    with ExitStack() as stack:
        own = candidates[processes.share(len(candidates))]
        vectors = _encode_candidates(model, own, config, stack, progress)
        outside = _encode_outside(model, tasks, triples, candidates, progress, processes)
        for direction, task in tasks.items():
            queries = _encode_questions(model, task, progress, processes)
            start = time.perf_counter()
            bonus = None
            if config.rerank_hops:
                bonus = neighbourhood_bonus(kg.fact_adjacency, task.entities, config.rerank_hops, config.rerank_weight)
                bonus = bonus.among(candidates) if len(candidates) < kg.num_entities else bonus
            ranks[direction] = rank_queries(
                queries,
                vectors,
                task.answers,
                task.known,
                bonus=bonus,
                barred=_barred(model, task, triples, candidates),
                device=model.device,
                memory_mib=_tile_mib(config),
                progress=progress,
                processes=processes,
                num_entities=len(candidates),
                outside=outside.get(direction),
            )
            ranking += time.perf_counter() - start
    return ranks, {"encoding": time.perf_counter() - begin - ranking, "ranking": ranking}


def _barred(model: VectorModel, task: RankingTask, triples: Int32, candidates: Int32) -> Barred | None:
    """Entities that are no answers to questions about themselves, where the model has such questions."""
    own = model.bars_own(_questions(task))
    places = np.minimum(np.searchsorted(candidates, task.entities), len(candidates) - 1)
    places = np.where(own & (candidates[places] == task.entities), places, -1).astype(np.int32)
    return Barred(places, own & (triples[:, 0] == triples[:, 2])) if own.any() else None


def _encode_candidates(
    model: VectorModel, candidates: Int32, config: EvaluationConfig, stack: ExitStack, progress: bool
) -> Float32:
    """Vectors of all candidates, in memory where they fit the setting, else in a file that goes with the stack."""
    # Ranked as float32, whatever the encoder gives, so kept as that too.
    starts = range(0, len(candidates), _CHUNK)
    chunks = (
        np.asarray(model.encode_entities(candidates[start : start + _CHUNK], progress=progress), np.float32)
        for start in starts
    )
    first = next(chunks)
    if len(candidates) * first[:1].nbytes <= (config.memory_mib - _tile_mib(config)) * 2**20:
        return np.concatenate([first, *chunks]) if len(starts) > 1 else first
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="satkgc-"))
    file = Path(folder) / "entities.f32"
    with file.open("wb") as stream:  # written, not mapped: pages written through a map would stay resident
        for chunk in itertools.chain([first], chunks):
            chunk.tofile(stream)
    return np.memmap(file, np.float32, "r", shape=(len(candidates), first.shape[1]))


def _encode_outside(
    model: VectorModel, tasks: Tasks, triples: Int32, candidates: Int32, progress: bool, processes: Processes
) -> dict[str, Float32]:
    """The vectors of the answers that a pool of candidates lacks, by direction; each entity is encoded once."""
    if all((task.answers >= 0).all() for task in tasks.values()):
        return {}
    entities = np.setdiff1d(triples[:, [0, 2]], candidates).astype(np.int32)
    several = 1 < processes.world <= len(entities)
    own = entities[processes.share(len(entities))] if several else entities
    vectors = np.asarray(model.encode_entities(own, progress=progress), np.float32)
    if several:
        shares = torch.from_numpy(vectors).to(processes.device)
        vectors = processes.gather_shares(shares, len(entities)).cpu().numpy()
    return {
        direction: vectors[np.searchsorted(entities, triples[task.answers < 0, 2 if direction == "tail" else 0])]
        for direction, task in tasks.items()
    }


def _questions(task: RankingTask) -> Questions:
    from satkgc.models import Questions

    return Questions(task.entities, task.relations)


def _encode_questions(
    model: VectorModel, task: RankingTask, progress: bool = False, processes: Processes | None = None
) -> Float32:
    """One vector per triple; a question that several triples answer is encoded once, by one of the processes."""
    from satkgc.models import Questions

    pairs = np.stack([task.entities, task.relations], 1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    entities, relations = (np.ascontiguousarray(distinct[:, column]) for column in (0, 1))
    questions = Questions(entities, relations)
    if processes is None or not 1 < processes.world <= len(questions):
        return model.encode_questions(questions, progress=progress)[place]
    own = model.encode_questions(questions.select(processes.share(len(questions))), progress=progress)
    vectors = processes.gather_shares(torch.from_numpy(own).to(processes.device), len(questions))
    return vectors.cpu().numpy()[place]


def _rank_by_scores(
    model: Scorer | ScoreFunctions,
    kg: KnowledgeGraph,
    tasks: Tasks,
    candidates: Int32,
    config: EvaluationConfig,
    progress: bool,
    processes: Processes,
) -> tuple[dict[str, Ranks], dict[str, float]]:
    if config.rerank_hops:
        problem = "re-ranking adds to a cosine, and scores may have any scale"
        raise SatkgcError(problem, remedy="set evaluation.rerank_hops to 0")
    block = max(1, min(_QUESTIONS, config.memory_mib * 2**20 // (_BYTES * kg.num_entities)))
    begin = time.perf_counter()
    with progress_bar(progress) as bar:
        bar_task = bar.add_task("ranking", total=sum(map(len, tasks.values())) / processes.world)

        def blocks(task: RankingTask) -> Iterator[tuple[Int64, Tensor]]:
            for rows, scores in _score_blocks(model, kg, task, block, processes):
                if len(candidates) < kg.num_entities:
                    scores = scores[:, torch.from_numpy(candidates.astype(np.int64)).to(scores.device)]
                yield rows, scores
                bar.advance(bar_task, len(rows))

        ranks = {
            direction: rank_scores(blocks(task), task.answers, task.known, len(candidates), processes)
            for direction, task in tasks.items()
        }
    return ranks, {"ranking": time.perf_counter() - begin}


def _score_blocks(
    model: Scorer | ScoreFunctions,
    kg: KnowledgeGraph,
    task: RankingTask,
    block: int,
    processes: Processes | None = None,
) -> Iterator[tuple[Int64, Tensor]]:
    """A model's own scores of all entities, checked; a question that several triples ask is scored once.  # (q, E)

    Each of several processes scores every so many-th block.
    """
    processes = processes or Processes()
    distinct, place = np.unique(np.stack([task.entities, task.relations], 1), axis=0, return_inverse=True)
    order = np.argsort(place, kind="stable")  # rows by their question
    first = np.searchsorted(place[order], np.arange(len(distinct) + 1))
    for start in range(block * processes.rank, len(distinct), block * processes.world):
        entities, relations = np.ascontiguousarray(distinct[start : start + block].T)
        with torch.no_grad():
            name, scores = _ask(model, kg, entities, relations)
        scores = _as_tensor(scores, name)
        shape = len(entities), kg.num_entities
        if tuple(scores.shape) != shape:
            raise SatkgcError(
                f"{name} gave scores of shape {tuple(scores.shape)}",
                remedy=f"give {shape}: a row for each question, a column for each entity of the graph",
            )
        bad = scores.isnan().any(1).nonzero()
        if len(bad):
            entity, relation = entities[int(bad[0])], relations[int(bad[0])] % kg.num_relations
            question = f"({kg.entities.id(entity)}, {kg.relations.id(relation)})"
            raise SatkgcError(f"{name} gave NaN, first for {question}", remedy="a model that gives NaN has no ranks")
        rows = order[first[start] : first[start + len(entities)]]
        for some in np.split(rows, range(block, len(rows), block)):
            yield some, scores[torch.from_numpy(place[some] - start).to(scores.device)]


def _ask(model: Scorer | ScoreFunctions, kg: KnowledgeGraph, entities: Int32, relations: Int32) -> tuple[str, Any]:
    """The scores of questions of one direction, and the name of who gave them."""
    if not isinstance(model, ScoreFunctions):
        from satkgc.models import Questions

        return f"{type(model).__name__}.score", model.score(Questions(entities, relations))
    if relations[0] < kg.num_relations:
        return "score_tails", model.score_tails(entities.astype(np.int64), relations.astype(np.int64))
    return "score_heads", model.score_heads((relations - kg.num_relations).astype(np.int64), entities.astype(np.int64))


def _as_tensor(scores: Any, name: str) -> Tensor:
    """Numbers that torch can compare; widened where it cannot."""
    if not isinstance(scores, Tensor):
        scores = np.asarray(scores)
        if scores.dtype.kind in "fiub":
            return torch.from_numpy(scores.astype(np.float64 if scores.dtype.kind == "f" else np.int64))
    elif not scores.is_complex():
        return scores if scores.is_floating_point() else scores.long()
    raise SatkgcError(f"{name} gave {scores.dtype}", remedy="give an array or a tensor of real numbers")


def _has_vectors(model: object) -> TypeGuard[VectorModel]:
    from satkgc.models import VectorModel

    return isinstance(model, VectorModel)


@contextmanager
def _eval_mode(model: object) -> Iterator[None]:
    """Without dropout; what was in training goes on so."""
    modules = [part for part in model.modules() if part.training] if isinstance(model, nn.Module) else []
    for part in modules:
        part.training = False
    try:
        yield
    finally:
        for part in modules:
            part.training = True


def _tile_mib(config: EvaluationConfig) -> int:
    return min(_TILE_MIB, config.memory_mib // 2)
