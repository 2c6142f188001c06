"""Filtered ranks of any model, metrics, break-downs, comparison: a model becomes a report."""

from satkgc.evaluation.compare import Difference, QuestionRanks, compare
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.evaluate import ScoreFunctions, Scorer, evaluate, score_blocks
from satkgc.evaluation.metrics import DIRECTIONS, measure
from satkgc.evaluation.questions import (
    MANY_ENTITIES,
    RankingTask,
    Slices,
    candidate_entities,
    known_answers,
    split_triples,
)
from satkgc.evaluation.ranking import Ranks, find_rivals, rank_queries
from satkgc.evaluation.report import Report, metrics_table

__all__ = [
    "DIRECTIONS",
    "MANY_ENTITIES",
    "Difference",
    "EvaluationConfig",
    "QuestionRanks",
    "RankingTask",
    "Ranks",
    "Report",
    "ScoreFunctions",
    "Scorer",
    "Slices",
    "candidate_entities",
    "compare",
    "evaluate",
    "find_rivals",
    "known_answers",
    "measure",
    "metrics_table",
    "rank_queries",
    "score_blocks",
    "split_triples",
]
