"""A fused model on a graph that counts as large: candidates, their scores, and what they miss, against definitions."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, logsumexp

from little_world import little_world
from satkgc.completion import Completer, NewEntity, Question, Role
from satkgc.completion import engine as asking
from satkgc.completion import prepare as preparing
from satkgc.completion import recall as measuring
from satkgc.completion.candidates import CandidateRetriever
from satkgc.completion.prepare import open_prepared, prepare
from satkgc.completion.retriever import FusedRetriever
from satkgc.kg import RelationLogic
from satkgc.models import (
    EmbeddingConfig,
    EmbeddingModel,
    FusedConfig,
    FusedModel,
    Mixture,
    NewEntityText,
    PathConfig,
    PathModel,
    Questions,
)
from toy_models import PlainScores, WordVectors

KG = little_world()
E = KG.num_entities


class Few(PlainScores):
    """Has something to say of every second entity alone."""

    def knows_entities(self):
        return np.arange(self.kg.num_entities) % 2 == 0


def build(*names, novelty=None):
    torch.manual_seed(1)
    kinds = {
        "words": lambda: WordVectors(KG),
        "other": lambda: WordVectors(KG, 5),
        "complex": lambda: EmbeddingModel(KG, EmbeddingConfig(dim=4, scale=1.0)),
        "rotate": lambda: EmbeddingModel(KG, EmbeddingConfig(dim=4, interaction="rotate", scale=1.0)),
        "paths": lambda: PathModel(KG, PathConfig(dim=4, layers=2)),
        "few": lambda: Few(KG, 0.1),
    }
    experts = {name: kinds[name]().eval() for name in names}
    weights = 0.2 + np.random.default_rng(3).random((2 * KG.num_relations, len(names)))
    scales = np.array([9.0 if name in ("words", "other") else 1.0 for name in names])
    mixture = Mixture(names, scales, weights.mean(0), weights, novelty=novelty)
    return FusedModel(KG, FusedConfig(novelty=novelty is not None), experts, mixture=mixture)


def asked(*pairs):
    entities, relations = np.array(pairs, np.int32).T
    return Questions(entities, relations)


def saved(model, folder, monkeypatch, listed=12, near=40):
    """A run whose graph counts as large, with lists so short."""
    monkeypatch.setattr(preparing, "WHOLE", E - 1)
    monkeypatch.setattr(
        preparing, "CandidateRetriever", lambda model, k=listed, n=near: CandidateRetriever(model, k, n)
    )
    model.save(folder / "model")
    return Completer(prepare(folder, model), folder)


PAIRS = [(3, 0), (5, 3), (44, 6), (61, 5), (3, 2)]


def literal(model, question, listed, near):
    """Candidates and scores of all entities by the definition, from the experts' own scores."""
    own, lists = [], []
    for name in model.names:
        expert = model.expert(name)
        if isinstance(expert, PathModel) and near < E:
            local = PathModel(KG, PathConfig(dim=4, layers=2, neighbourhood=near)).eval()
            local.load_state_dict(expert.state_dict())
            scores = local.score(question)[0].double().numpy()
            listable = local.graph_near(int(question.entities[0]))[0]
        else:
            scores, listable = expert.score(question)[0].detach().double().numpy(), np.arange(E)
        scores = np.where(expert.knows_entities(), scores, -np.inf)
        listable = [e for e in listable if np.isfinite(scores[e])]
        lists.append(sorted(listable, key=lambda e: -scores[e])[:listed])
        own.append(scores)
    candidates = np.unique(np.concatenate(lists))
    scaled = model.mixture.scales[:, None] * np.stack(own)
    shares = scaled - logsumexp(scaled[:, candidates], axis=1, keepdims=True)
    for e in range(E):
        silent = np.isinf(shares[:, e])
        shares[silent, e] = shares[~silent, e].mean()
    total = model.mixture.weights[question.relations[0]] @ shares
    return candidates, total - logsumexp(total[candidates])


@pytest.mark.parametrize(
    "names", [("words", "complex", "paths"), ("words", "other", "rotate"), ("words", "few", "paths")]
)
def test_candidates_and_scores_are_those_of_the_definition(names):
    model = build(*names)
    retriever = CandidateRetriever(model, listed=9, near=20)
    for pair in PAIRS:
        question = asked(pair)
        candidates, expected = literal(model, question, 9, 20)
        (found,) = retriever.shortlists(question)
        assert 9 < len(candidates) < E
        if "few" not in names:  # whose equal scores have no order
            assert found.ids.tolist() == candidates.tolist()
            encoded = retriever.encode(question)
            scores, ids = retriever.search(encoded, 9)
            order = sorted(candidates, key=lambda e: -expected[e])[:9]
            assert ids[0][ids[0] >= 0].tolist() == order
            np.testing.assert_allclose(scores[0][ids[0] >= 0], expected[order], atol=1e-4)
            every = [float(retriever.score_one(encoded, e)[0]) for e in range(E)]  # those beyond the list too
            np.testing.assert_allclose(every, expected, atol=1e-4)
        assert logsumexp(found.score(found.raw(found.ids))) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("novelty", [None, np.linspace(-2, 2, 2 * KG.num_relations)])
def test_whole_lists_are_whole_scores(novelty):
    model = build("words", "complex", "few", "paths", novelty=novelty)
    retriever, questions = CandidateRetriever(model, listed=E, near=E), asked(*PAIRS)
    encoded, whole = retriever.encode(questions), model.score(questions).numpy()
    scores, ids = retriever.search(encoded, E)
    for row in range(len(PAIRS)):
        np.testing.assert_allclose(scores[row], whole[row][ids[row]], atol=1e-4)
        np.testing.assert_allclose(np.sort(whole[row])[::-1], scores[row], atol=1e-4)


@pytest.mark.parametrize("near", [30, E])
def test_first_answers_are_those_of_whole_scores_where_these_are_candidates(near):
    """Every expert knows all entities: then the normalisers change no order."""
    model = build("words", "complex", "paths")
    retriever, questions = CandidateRetriever(model, listed=15, near=near), asked(*[(e, e % 8) for e in range(60)])
    encoded, none = retriever.encode(questions), [np.empty(0, np.int32)] * 60
    found = list(retriever.candidates(questions, 10, none))
    if near == E:
        whole = FusedRetriever.search(retriever, encoded, 10)[1]
    else:  # the same experts, the paths of a neighbourhood alone
        paths = PathModel(KG, PathConfig(dim=4, layers=2, neighbourhood=near)).eval()
        paths.load_state_dict(model.expert("paths").state_dict())
        experts = {"words": model.expert("words"), "complex": model.expert("complex"), "paths": paths}
        whole = FusedRetriever(FusedModel(KG, FusedConfig(), experts, mixture=model.mixture)).search(encoded, 10)[1]
    ids, recalled = retriever.search(encoded, 10)[1], 0
    for row in range(60):
        if np.isin(whole[row], found[row]).all():
            recalled += 1
            assert ids[row].tolist() == whole[row].tolist()
    assert recalled > 10


def test_filters_leave_the_scores(tmp_path, monkeypatch):
    completer = saved(build("words", "complex", "paths"), tmp_path, monkeypatch)
    every = {e: completer._engine.retriever.score_one(completer._engine.encode([(3, 2)]), e)[0] for e in range(E)}
    some = [f"Q{i}" for i in range(0, E, 3)]  # more than a list: new lists are made of them
    answers = completer.tails("Q3", "knows", k=8, among=some, drop_known=True)
    assert len(answers) == 8
    assert {a.id for a in answers} <= set(some)
    assert [a.score for a in answers] == pytest.approx([every[int(a.id[1:])] for a in answers], abs=1e-5)
    few = ("Q1", "Q2", "Q88")
    assert {a.id for a in completer.tails("Q3", "knows", among=few)} == set(few)
    known = {f"Q{t}" for t in KG.known_all.answers(3, 2)}
    kept = completer.tails("Q3", "knows", k=E, drop_known=False)
    assert known <= {a.id for a in kept if a.known}
    assert not known & {a.id for a in completer.tails("Q3", "knows", k=E, drop_known=True)}
    assert completer.tails("Q3", "knows", role=Role("capital of", "head"))


def test_most_candidates_being_known_new_lists_are_made():
    retriever = CandidateRetriever(build("words", "complex"), listed=10)
    question = asked((3, 2))
    (listed,) = retriever.shortlists(question)
    _, ids = retriever.search(retriever.encode(question), 10, exclude=[listed.ids])
    assert (ids >= 0).all()
    assert not np.isin(ids, listed.ids).any()
    alone = CandidateRetriever(build("words"), listed=10)
    (listed,) = alone.shortlists(question)
    _, ids = alone.search(alone.encode(question), 10, exclude=[listed.ids[:5]])  # no more than half of them
    assert (ids >= 0).all()


def test_no_answer_that_objections_drop_comes_back_with_longer_lists(tmp_path, monkeypatch):
    """They bring in candidates that come before those that were there."""
    completer = saved(build("words", "complex", "paths"), tmp_path, monkeypatch, listed=4, near=20)
    monkeypatch.setattr(asking, "COMPETITORS", 4)
    completer._engine.logic = [RelationLogic(symmetric=True, transitive=r == 3) for r in range(KG.num_relations)]
    dropped = 0
    for question in [Question(head=f"Q{h}", relation="near", k=10, drop_known=True) for h in range(0, E, 3)]:
        (marked,) = completer.ask([replace(question, objections="mark", k=E)])
        (answers,) = completer.ask([replace(question, objections="drop")])
        sound = [answer.id for answer in marked if answer.objection is None]
        assert {answer.id for answer in answers} <= set(sound)
        assert len({answer.id for answer in answers}) == len(answers) == min(10, len(sound))
        dropped += len(marked) - len(sound)
    assert dropped > 100


def test_recall_is_a_count(tmp_path, monkeypatch):
    model = build("words", "complex", "paths")
    monkeypatch.setattr(measuring, "COMPARED", 500)  # all of them
    completer = saved(model, tmp_path, monkeypatch, listed=12, near=40)
    recall = json.loads((tmp_path / "index" / "candidates.json").read_text())
    queries = {(h, r) for h, r, _ in KG.valid.tolist()} | {(t, r + KG.num_relations) for _, r, t in KG.valid.tolist()}
    right, sizes, first, ten, same = [], [], [], [], []
    for entity, directed in queries:
        candidates, ours = literal(model, asked((entity, directed)), 12, 40)
        train = {t for h, r, t in KG.train.tolist() if (h, r) == (entity, directed)}
        train |= {h for h, r, t in KG.train.tolist() if (t, r + KG.num_relations) == (entity, directed)}
        true = {t for h, r, t in KG.valid.tolist() if (h, r) == (entity, directed)}
        true |= {h for h, r, t in KG.valid.tolist() if (t, r + KG.num_relations) == (entity, directed)}
        true -= train
        out = set(completer._engine.exclude((entity, directed)).tolist()) - true
        left = [e for e in candidates.tolist() if e not in out]
        assert 2 * len(left) >= len(candidates)
        sizes.append(len(left))
        right += [e in left for e in true]
        whole = model.score(asked((entity, directed)))[0].numpy()
        best = sorted((e for e in range(E) if e not in out), key=lambda e: -whole[e])[:10]
        first.append(best[0] in left)
        ten += [e in left for e in best]
        same.append(max(left, key=lambda e: ours[e]) == best[0])
    assert recall["questions"] == recall["compared"] == len(queries)
    assert recall["candidates"] == pytest.approx(np.mean(sizes))
    expected = {"right": right, "first": first, "first_ten": ten, "same_first": same}
    assert {name: recall[name] for name in expected} == pytest.approx({n: np.mean(v) for n, v in expected.items()})
    assert 0.2 < recall["right"] < 1


def test_a_run_goes_on_as_it_was_prepared(tmp_path, monkeypatch):
    model = build("words", "complex", "paths")
    completer = saved(model, tmp_path, monkeypatch)
    opened = open_prepared(tmp_path, model)
    assert isinstance(opened.retriever, CandidateRetriever)
    assert (opened.retriever.listed, opened.retriever.near) == (12, 40)
    questions = [Question(head="Q4", relation="near", k=5), Question(head="Q1", tail="Q2")]
    assert opened.ask(questions) == completer._engine.ask(questions)
    monkeypatch.undo()
    whole = Completer(prepare(tmp_path, model), tmp_path)
    assert not (tmp_path / "index" / "candidates.json").exists()
    assert type(open_prepared(tmp_path, model).retriever) is FusedRetriever
    ours, theirs = completer.tails("Q4", "near")[0], whole.tails("Q4", "near")[0]
    assert ours.score != pytest.approx(theirs.score)


def test_experts_new_entities_batches_and_proposals(tmp_path, monkeypatch):
    completer = saved(build("words", "other", "complex", "paths"), tmp_path, monkeypatch)
    for answer in completer.tails("Q4", "near", k=5):
        assert sum(abs(e.share) for e in answer.experts) == pytest.approx(1)
        assert all(e.rank >= 1 for e in answer.experts)
    written = completer.propose(tmp_path / "missing.csv", n=5, relations=["near"], second_answers=True)
    with (tmp_path / "missing.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == written == 5
    scored = completer.tails(rows[0]["head"], "near", k=E) + completer.heads("near", rows[0]["tail"], k=E)
    assert any(a.score == pytest.approx(float(rows[0]["score"]), abs=1e-4) for a in scored)
    new = NewEntity("bora", "a town", facts=(Role("near", "head", "Q3"),))
    assert len(completer.tails(new, "near", k=5)) == 5
    late, known = (Question(head=head, relation="near", k=5) for head in (new, "Q3"))
    completer._engine.retriever._memory.clear()
    beside = completer.ask([late, known])[1]
    completer._engine.retriever._memory.clear()
    assert [a.score for a in beside] == pytest.approx([a.score for a in completer.ask([known])[0]], abs=1e-5)
    before = completer.evidence("Q3", "near", new)
    assert [e.share is None for e in before.experts] == [False, False, True, True]
    added = completer.add(NewEntity("bora", "a town"))
    answers = completer.tails("Q4", "near", k=3 * E, drop_known=True)
    mine = next(a for a in answers if a.id == added)
    scored = completer._engine.retriever.score_one(completer._engine.encode([(4, 3)]), E)[0]
    assert mine.score == pytest.approx(scored, abs=1e-5)
    together = completer.ask([Question(head=f"Q{e}", relation="near", k=4) for e in range(50)])
    for e in (0, 31, 49):
        alone = completer.tails(f"Q{e}", "near", k=4)
        assert [a.id for a in alone] == [a.id for a in together[e]]
        assert [a.score for a in alone] == pytest.approx([a.score for a in together[e]], abs=1e-5)


def test_an_answer_is_ranked_as_if_it_were_not_known():
    model = build("words", "complex", "paths")
    retriever, train = CandidateRetriever(model, listed=E, near=E), KG.train[:20]
    questions, answers = Questions(train[:, 0].copy(), train[:, 1].copy()), train[:, 2].copy()
    exclude = [KG.known_all.answers(h, r) for h, r, _ in train.tolist()]
    ours, whole = (
        kind.rank(retriever, questions, answers, exclude, 5) for kind in (CandidateRetriever, FusedRetriever)
    )
    np.testing.assert_allclose(ours.scores, whole.scores, atol=1e-4)
    assert ours.ranks.tolist() == whole.ranks.tolist()
    assert ours.ids.tolist() == whole.ids.tolist()
    near = CandidateRetriever(model, listed=E, near=30)
    local = PathModel(KG, PathConfig(dim=4, layers=2, neighbourhood=30)).eval()
    local.load_state_dict(model.expert("paths").state_dict())
    shares = local.score_held_out(questions, answers).double().numpy()
    for row, listed in enumerate(near.shortlists(questions, answers)):
        np.testing.assert_allclose(listed.raw(np.arange(E, dtype=np.int32))[2], shares[row], atol=1e-4)
        assert log_softmax(listed.score(listed.raw(listed.ids))).sum() < 0


def test_experts_are_asked_for_what_they_have_learnt():
    """As each scores alone, in both retrievers: for one entity, one a question, and one in words."""
    model = build("words", "complex", "few", "paths")
    pairs = [(3, 1), (8, 0), (3, 6), (50, 7)]
    new = NewEntityText("somebody", "who is new")
    questions = asked(*pairs)
    everyone = np.stack([model.expert(name).score(questions).detach().numpy() for name in model.names], 2)  # (Q, E, n)
    everyone[:, 1::2, model.names.index("few")] = np.nan
    each = np.array([5, 0, 41, 12], np.int32)
    words = np.full((4, 4), np.nan)
    words[:, 0] = (
        model.expert("words").encode_questions(questions)
        @ model.expert("words").encode_entities(np.array([E], np.int32), [new])[0]
    )
    for retriever in (FusedRetriever(model), CandidateRetriever(model, 12, E)):
        encoded = retriever.encode(questions)
        np.testing.assert_allclose(retriever.expert_scores(encoded, each), everyone[np.arange(4), each], atol=1e-5)
        np.testing.assert_allclose(retriever.expert_scores(encoded, 7), everyone[:, 7], atol=1e-5)
        np.testing.assert_allclose(retriever.expert_scores(encoded, new), words, atol=1e-5)
    asks = Questions(np.array([E], np.int32), np.array([1], np.int32), (new,))
    for retriever in (FusedRetriever(model), CandidateRetriever(model, 12, E)):
        found = retriever.expert_scores(retriever.encode(asks), 7)[0]
        vector = model.expert("words").encode_entities(np.array([7], np.int32))[0]
        assert found[0] == pytest.approx(float(model.expert("words").encode_questions(asks)[0] @ vector), abs=1e-5)
        assert np.isnan(found[1:]).all()
