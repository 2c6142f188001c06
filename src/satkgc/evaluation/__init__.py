"""Filtered ranks, metrics, break-downs: a trained model's report."""

from satkgc.evaluation.compare import Difference, compare
from satkgc.evaluation.config import EvaluationConfig
from satkgc.evaluation.evaluate import evaluate, evaluate_with
from satkgc.evaluation.metrics import measure
from satkgc.evaluation.rank_files import QuestionRanks
from satkgc.evaluation.ranking import Ranks, rank_queries
from satkgc.evaluation.report import Report, metrics_table
from satkgc.evaluation.scores import evaluate_scores
from satkgc.evaluation.slices import Slices, known_answers

__all__ = [
    "Difference",
    "EvaluationConfig",
    "QuestionRanks",
    "Ranks",
    "Report",
    "Slices",
    "compare",
    "evaluate",
    "evaluate_scores",
    "evaluate_with",
    "known_answers",
    "measure",
    "metrics_table",
    "rank_queries",
]
