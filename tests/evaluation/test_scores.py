"""Models that give scores: against plain ranks, against PyKEEN with a model of its own, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from by_hand import counts_of, plain_counts, split_graph

from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, evaluate_scores
from satkgc.evaluation.ranking import TIES

KG = split_graph(41)
SHAPE = KG.num_entities, KG.num_relations, KG.num_entities
SCORES = np.random.default_rng(42).integers(-3, 4, SHAPE)  # of every triple; few values, so many ties


def evaluate_table(scores, split="test", batch=64, **settings):
    """A report by a table of the score of every (head, relation, tail)."""
    return evaluate_scores(
        lambda heads, relations: scores[heads, relations],
        lambda relations, tails: scores[:, relations, tails].T,
        KG,
        split,
        EvaluationConfig(**settings),
        batch=batch,
    )


def plain(split, direction, candidates="all"):
    """The counts of one direction, triple by triple and entity by entity."""
    triples = KG.split(split).tolist()
    everything = {tuple(row) for row in np.concatenate([KG.train, KG.valid, KG.test]).tolist()}
    allowed = set(range(KG.num_entities)) if candidates == "all" else {e for h, _, t in triples for e in (h, t)}
    rows, answers, banned = [], [], []
    for head, relation, tail in triples:
        others = [(head, relation, e) if direction == "tail" else (e, relation, tail) for e in range(KG.num_entities)]
        rows.append([SCORES[triple] for triple in others])
        answers.append(tail if direction == "tail" else head)
        banned.append({e for e, triple in enumerate(others) if triple in everything or e not in allowed})
    return plain_counts(rows, answers, banned)


@pytest.mark.parametrize("candidates", ["all", "split"])
@pytest.mark.parametrize("split", ["test", "valid"])
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_both_directions_are_plain_filtered_ranks(split, candidates, batch):
    before = SCORES.copy()
    report = evaluate_table(SCORES, split, batch, candidates=candidates)
    for direction in ("head", "tail"):
        np.testing.assert_array_equal(counts_of(report.ranks[direction]), plain(split, direction, candidates))
    np.testing.assert_array_equal(SCORES, before)  # a model's own table is not written into
    assert (report.metrics("optimistic")["both"]["mrr"]) > report.metrics("pessimistic")["both"]["mrr"] + 0.05


@pytest.mark.parametrize(
    "kind",
    [np.float16, np.float64, ">f4", np.longdouble, np.int8, np.uint16, torch.float16, torch.bfloat16, torch.int32],
)
def test_scores_of_any_precision_rank_the_same(kind):
    shifted = SCORES + 3
    scores = torch.from_numpy(shifted).to(kind) if isinstance(kind, torch.dtype) else shifted.astype(kind)
    report = evaluate_table(scores)
    np.testing.assert_array_equal(counts_of(report.ranks["head"]), plain("test", "head"))


def test_precision_beyond_float32_is_kept():
    scores = SCORES + 1e-12 * np.arange(KG.num_entities)  # breaks every tie of two tails
    assert not evaluate_table(scores).ranks["tail"].equal.any()
    assert evaluate_table(scores.astype(np.float32)).ranks["tail"].equal.any()


def test_few_candidates_rows_and_break_downs_are_those_of_any_report():
    full, few = evaluate_table(SCORES), evaluate_table(SCORES, sampled=10)
    assert (few.ranks["tail"].candidates == 11).all()
    np.testing.assert_array_equal(full.sampled(10).ranks["head"].rank(), few.ranks["head"].rank())
    data = json.loads(json.dumps(full.to_json(), allow_nan=False))
    assert sum(group["tail"]["count"] for group in data["breakdown"]["relation"].values()) == len(KG.test)
    rows = np.array([7, 2])
    part = evaluate_scores(lambda h, r: SCORES[h, r], lambda r, t: SCORES[:, r, t].T, KG, rows=rows)
    np.testing.assert_array_equal(counts_of(part.ranks["tail"]), counts_of(full.ranks["tail"])[rows])


def test_a_batch_fits_the_memory_setting(monkeypatch):
    sizes = []

    def tails(heads, relations):
        sizes.append(len(heads))
        return SCORES[heads, relations]

    monkeypatch.setattr("satkgc.evaluation.scores._BYTES", 16 * 2**20 // KG.num_entities // 5)
    evaluate_scores(tails, lambda r, t: SCORES[:, r, t].T, KG, config=EvaluationConfig(memory_mib=16))
    assert sizes == [5] * (len(KG.test) // 5) + [len(KG.test) % 5] * bool(len(KG.test) % 5)


def test_what_cannot_be_ranked_is_said_in_one_line():
    broken = SCORES.astype(np.float32)
    head, relation, _ = KG.test[3]
    broken[head, relation, 0] = np.nan
    with pytest.raises(SatkgcError, match=rf"score_tails gave NaN, first for \(e{head}, r{relation}\)"):
        evaluate_scores(lambda h, r: broken[h, r], lambda r, t: SCORES[:, r, t].T, KG)
    with pytest.raises(SatkgcError, match=r"score_heads gave scores of shape \(40, 25\); give \(25, 40\)"):
        evaluate_scores(lambda h, r: SCORES[h, r], lambda r, t: SCORES[:, r, t], KG)
    for wrong in (SCORES.astype(np.complex64), SCORES.astype(str), torch.from_numpy(SCORES).to(torch.complex64)):
        with pytest.raises(SatkgcError, match="give an array or a tensor of real numbers"):
            evaluate_table(wrong)
    with pytest.raises(SatkgcError, match=r"set evaluation\.rerank_hops to 0"):
        evaluate_table(SCORES, rerank_hops=2)
    endless = np.where(SCORES < 0, -np.inf, SCORES)  # infinite scores have an order
    assert evaluate_table(endless).ranks["tail"].equal.any()


@pytest.mark.parametrize(("model", "inverse"), [("TransE", False), ("DistMult", True)])
def test_a_model_of_pykeen_has_the_metrics_that_pykeen_finds(model, inverse):
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import model_resolver
    from pykeen.triples import CoreTriplesFactory

    names = {"mrr": "inverse_harmonic_mean_rank", "hits@3": "hits_at_3", "mr": "arithmetic_mean_rank"}
    train, valid, test = (torch.tensor(KG.split(name)).long() for name in ("train", "valid", "test"))
    factory = CoreTriplesFactory(train, KG.num_entities, KG.num_relations, create_inverse_triples=inverse)
    model = model_resolver.make(model, triples_factory=factory, embedding_dim=8, random_seed=0)
    theirs = RankBasedEvaluator().evaluate(
        model, test, additional_filter_triples=[train, valid], use_tqdm=False, batch_size=64
    )
    ours = evaluate_scores(
        lambda heads, relations: model.predict_t(torch.from_numpy(np.stack([heads, relations], 1))),
        lambda relations, tails: model.predict_h(torch.from_numpy(np.stack([relations, tails], 1))),
        KG,
    )
    for ties in TIES:
        for side, metrics in ours.metrics(ties).items():
            for name, key in names.items():
                assert metrics[name] == pytest.approx(theirs.get_metric(f"{side}.{ties}.{key}"), abs=1e-6)
    assert ours.metrics()["both"]["amri"] == pytest.approx(
        theirs.get_metric("both.realistic.adjusted_arithmetic_mean_rank_index"), abs=1e-6
    )
