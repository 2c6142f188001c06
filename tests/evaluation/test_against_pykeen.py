"""PyKEEN's RankBasedEvaluator, with its own filter, on the same scores: all metrics agree for all tie rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from by_hand import split_graph, tied_vectors, unit_vectors

from satkgc.evaluation import evaluate_with
from satkgc.evaluation.exact import exact_scores
from satkgc.evaluation.ranking import TIES

NAMES = {
    "mrr": "inverse_harmonic_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@10": "hits_at_10",
    "mr": "arithmetic_mean_rank",
    "amr": "adjusted_arithmetic_mean_rank",
    "amri": "adjusted_arithmetic_mean_rank_index",
}


@pytest.mark.parametrize("make", [unit_vectors, tied_vectors])
def test_every_metric_agrees_for_every_tie_rule(make):
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.evaluation.evaluator import create_sparse_positive_filter_, filter_scores_

    kg = split_graph(11)
    rng = np.random.default_rng(12)
    entities = make(rng, kg.num_entities, 6)
    queries = make(rng, kg.num_entities * 2 * kg.num_relations, 6).reshape(kg.num_entities, -1, 6)
    report = evaluate_with(lambda e: entities[e], lambda e, d: queries[e, d], kg)

    evaluator = RankBasedEvaluator()
    test = torch.from_numpy(kg.test.astype(np.int64))
    everything = torch.from_numpy(np.concatenate([kg.train, kg.valid, kg.test]).astype(np.int64))
    for target, column, asked, inverse in (("head", 0, 2, kg.num_relations), ("tail", 2, 0, 0)):
        scores = exact_scores(queries[kg.test[:, asked], kg.test[:, 1] + inverse], entities)
        true_scores = scores[torch.arange(len(test)), test[:, column]]
        positives, _ = create_sparse_positive_filter_(test, everything, None, filter_col=column)
        scores = filter_scores_(scores, positives)
        scores[torch.arange(len(test)), test[:, column]] = true_scores
        evaluator.process_scores_(test, target, scores, true_scores[:, None])
    theirs = evaluator.finalize()

    for ties in TIES:
        for side, ours in report.metrics(ties).items():
            for name, key in NAMES.items():
                wanted = (
                    theirs.get_metric(f"{side}.{ties}.{key}") if "adjusted" not in key or ties == "realistic" else None
                )
                if wanted is not None:
                    assert ours[name] == pytest.approx(wanted, abs=1e-6), (ties, side, name)
    if make is tied_vectors:
        assert report.metrics("optimistic")["both"]["mrr"] > report.metrics("pessimistic")["both"]["mrr"] + 0.05
