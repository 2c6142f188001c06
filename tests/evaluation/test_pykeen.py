"""PyKEEN's RankBasedEvaluator on the same scores and on models of its own: all metrics agree for all tie rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from array_model import ArrayModel
from by_hand import split_graph, tied_vectors, unit_vectors

from satkgc.evaluation import ScoreFunctions, evaluate
from satkgc.evaluation.ranking import TIES, exact_scores

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
    report = evaluate(ArrayModel(kg, entities, queries), kg)

    evaluator = RankBasedEvaluator()
    test = torch.from_numpy(kg.test.astype(np.int64))
    everything = torch.from_numpy(np.concatenate([kg.train, kg.valid, kg.test]).astype(np.int64))
    for target, column, source, inverse in (("head", 0, 2, kg.num_relations), ("tail", 2, 0, 0)):
        scores = exact_scores(queries[kg.test[:, source], kg.test[:, 1] + inverse], entities)
        true_scores = scores[torch.arange(len(test)), test[:, column]]
        positives, _ = create_sparse_positive_filter_(test, everything, None, filter_col=column)
        scores = filter_scores_(scores, positives)
        scores[torch.arange(len(test)), test[:, column]] = true_scores
        evaluator.process_scores_(test, target, scores, true_scores[:, None])
    theirs = evaluator.finalize()

    for ties in TIES:
        for side, ours in report.metrics(ties).items():
            for name, key in NAMES.items():
                expected = (
                    theirs.get_metric(f"{side}.{ties}.{key}") if "adjusted" not in key or ties == "realistic" else None
                )
                if expected is not None:
                    assert ours[name] == pytest.approx(expected, abs=1e-6), (ties, side, name)
    if make is tied_vectors:
        assert report.metrics("optimistic")["both"]["mrr"] > report.metrics("pessimistic")["both"]["mrr"] + 0.05


@pytest.mark.parametrize(("model", "inverse"), [("TransE", False), ("DistMult", True)])
def test_a_model_of_pykeen_has_the_metrics_that_pykeen_finds(model, inverse):
    kg = split_graph(41)
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import model_resolver
    from pykeen.triples import CoreTriplesFactory

    names = {"mrr": "inverse_harmonic_mean_rank", "hits@3": "hits_at_3", "mr": "arithmetic_mean_rank"}
    train, valid, test = (torch.tensor(kg.split(name)).long() for name in ("train", "valid", "test"))
    factory = CoreTriplesFactory(train, kg.num_entities, kg.num_relations, create_inverse_triples=inverse)
    model = model_resolver.make(model, triples_factory=factory, embedding_dim=8, random_seed=0)
    theirs = RankBasedEvaluator().evaluate(
        model, test, additional_filter_triples=[train, valid], use_tqdm=False, batch_size=64
    )
    scores = ScoreFunctions(
        lambda heads, relations: model.predict_t(torch.from_numpy(np.stack([heads, relations], 1))),
        lambda relations, tails: model.predict_h(torch.from_numpy(np.stack([relations, tails], 1))),
    )
    ours = evaluate(scores, kg)
    for ties in TIES:
        for side, metrics in ours.metrics(ties).items():
            for name, key in names.items():
                assert metrics[name] == pytest.approx(theirs.get_metric(f"{side}.{ties}.{key}"), abs=1e-6)
    assert ours.metrics()["both"]["amri"] == pytest.approx(
        theirs.get_metric("both.realistic.adjusted_arithmetic_mean_rank_index"), abs=1e-6
    )
