"""Models that give scores: against plain ranks, of any precision, and what is refused."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
import torch
from array_model import random_model
from by_hand import counts_of, plain_counts, split_graph

from satkgc.errors import SatkgcError
from satkgc.evaluation import DIRECTIONS, EvaluationConfig, RankingTask, ScoreFunctions, evaluate, score_blocks
from satkgc.evaluation.ranking import exact_scores

module = importlib.import_module("satkgc.evaluation.evaluate")  # the package has a function of that name

KG = split_graph(41)
SHAPE = KG.num_entities, KG.num_relations, KG.num_entities
SCORES = np.random.default_rng(42).integers(-3, 4, SHAPE)  # of every triple; few values, so many ties


def functions(scores):
    """A table of the score of every (head, relation, tail), as two functions."""
    return ScoreFunctions(lambda h, r: scores[h, r], lambda r, t: scores[:, r, t].T)


def evaluate_table(scores, split="test", **settings):
    return evaluate(functions(scores), KG, split, EvaluationConfig(**settings))


class TableModel:
    """The same as a model that answers questions; all that evaluation asks of one is this method."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, questions, candidates=None):
        rows = []
        for entity, relation in zip(questions.entities, questions.relations, strict=True):
            heads = relation >= KG.num_relations
            rows.append(self.scores[:, relation - KG.num_relations, entity] if heads else self.scores[entity, relation])
        return torch.from_numpy(np.stack(rows))


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
@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("make", [functions, TableModel])
def test_both_directions_are_plain_filtered_ranks(split, candidates, block, make, monkeypatch):
    monkeypatch.setattr(module, "_QUESTIONS", block)
    before = SCORES.copy()
    report = evaluate(make(SCORES), KG, split, EvaluationConfig(candidates=candidates))
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
    part = evaluate(functions(SCORES), KG, rows=rows)
    np.testing.assert_array_equal(counts_of(part.ranks["tail"]), counts_of(full.ranks["tail"])[rows])


def test_a_question_is_scored_once_in_blocks_that_fit_the_memory_setting(monkeypatch):
    sizes, seen = [], []

    def tails(heads, relations):
        assert heads.dtype == relations.dtype == np.int64
        sizes.append(len(heads))
        seen.extend(zip(heads.tolist(), relations.tolist(), strict=True))
        return SCORES[heads, relations]

    monkeypatch.setattr(module, "_BYTES", 16 * 2**20 // KG.num_entities // 5)
    evaluate(ScoreFunctions(tails, functions(SCORES).score_heads), KG, config=EvaluationConfig(memory_mib=16))
    questions = {(h, r) for h, r, _ in KG.test.tolist()}
    assert len(seen) == len(questions) < len(KG.test)  # some are asked by several triples
    assert set(seen) == questions
    assert sizes == [5] * (len(questions) // 5) + [len(questions) % 5] * bool(len(questions) % 5)


def test_what_cannot_be_ranked_is_said_in_one_line():
    broken = SCORES.astype(np.float32)
    head, relation, _ = KG.test[3]
    broken[head, relation, 0] = np.nan
    with pytest.raises(SatkgcError, match=rf"score_tails gave NaN, first for \(e{head}, r{relation}\)"):
        evaluate_table(broken)
    with pytest.raises(SatkgcError, match=rf"TableModel.score gave NaN, first for \(e{head}, r{relation}\)"):
        evaluate(TableModel(np.where(np.arange(40)[:, None, None] == head, broken, SCORES)), KG, rows=np.array([3]))
    with pytest.raises(SatkgcError, match=r"score_heads gave scores of shape \(40, 23\); give \(23, 40\)"):
        evaluate(ScoreFunctions(functions(SCORES).score_tails, lambda r, t: SCORES[:, r, t]), KG)
    for wrong in (SCORES.astype(np.complex64), SCORES.astype(str), torch.from_numpy(SCORES).to(torch.complex64)):
        with pytest.raises(SatkgcError, match="give an array or a tensor of real numbers"):
            evaluate_table(wrong)
    with pytest.raises(SatkgcError, match=r"set evaluation\.rerank_hops to 0"):
        evaluate_table(SCORES, rerank_hops=2)
    endless = np.where(SCORES < 0, -np.inf, SCORES)  # infinite scores have an order
    assert evaluate_table(endless).ranks["tail"].equal.any()


@pytest.mark.parametrize("kind", ["vectors", "scores"])
def test_blocks_of_scores_are_those_that_ranks_are_taken_by(kind):
    model = random_model(KG, 43) if kind == "vectors" else TableModel(SCORES)
    everyone = np.arange(KG.num_entities, dtype=np.int32)
    tasks = [RankingTask.of(KG, KG.test, direction, everyone) for direction in DIRECTIONS]
    report = evaluate(model, KG)
    greater = {id(task): np.full(len(task), -1) for task in tasks}
    for task, rows, scores in score_blocks(model, KG, tasks, block=7):
        if kind == "vectors":
            queries = model.queries[task.entities[rows], task.relations[rows]]
            assert torch.equal(scores, exact_scores(queries, model.entities))
        assert len(rows) <= 7
        for place, row in zip(rows.tolist(), scores.tolist(), strict=True):
            known = set(task.known.of(place).tolist())
            greater[id(task)][place] = sum(s > row[task.answers[place]] for e, s in enumerate(row) if e not in known)
    for direction, task in zip(DIRECTIONS, tasks, strict=True):
        assert greater[id(task)].tolist() == report.ranks[direction].greater.tolist()
