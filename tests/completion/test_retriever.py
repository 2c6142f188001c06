"""Completion with models that are not the text model: one with vectors, one with scores alone, an index elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from little_world import little_world
from satkgc.completion import INDEXES, Completer, NewEntity, Question, Role
from satkgc.completion.prepare import open_prepared, prepare
from satkgc.completion.relations import RelationCalibration, log_shares
from satkgc.errors import SatkgcError
from satkgc.models import FusedConfig, FusedModel, Questions
from toy_models import PlainScores, WordVectors


def load(model, folder, index="exact"):
    """A completer over a model that is saved in a run folder."""
    folder.mkdir(exist_ok=True)
    model.save(folder / "model")
    return Completer(prepare(folder, model, index), folder)


@pytest.fixture(scope="module")
def kg():
    return little_world()


@pytest.fixture(scope="module")
def vectors(kg, tmp_path_factory):
    return load(WordVectors(kg), tmp_path_factory.mktemp("vectors") / "run")


@pytest.fixture(scope="module")
def scores(kg, tmp_path_factory):
    return load(PlainScores(kg), tmp_path_factory.mktemp("scores") / "run")


@pytest.fixture(scope="module")
def fused(kg, tmp_path_factory):
    mixed = FusedModel(kg, FusedConfig(), {"words": WordVectors(kg), "plain": PlainScores(kg, 0.05)})
    return load(mixed, tmp_path_factory.mktemp("fused") / "run")


@pytest.fixture(params=["vectors", "scores", "fused"])
def completer(request):
    return request.getfixturevalue(request.param)


def asked(entity, directed):
    return Questions(np.array([entity], np.int32), np.array([directed], np.int32))


def all_scores(completer, entity, directed):
    """Scores of all entities, asked of the model itself."""
    return completer._engine.model.score(asked(entity, directed))[0].detach().numpy()


def known_of(kg, entity, directed):
    triples = np.concatenate([kg.train, kg.valid, kg.test]).tolist()
    if directed < 4:
        return {t for h, r, t in triples if (h, r) == (entity, directed)}
    return {h for h, r, t in triples if (t, r + 4) == (entity, directed)}


def ids(answers):
    return [int(answer.id[1:]) for answer in answers]


@pytest.mark.parametrize("directed", [0, 3, 6])
@pytest.mark.parametrize("drop", [False, True])
def test_answers_are_the_best_of_all_scores(completer, kg, directed, drop):
    for entity in (2, 5, 44):
        relation, known = kg.relations.id(directed % 4), known_of(kg, entity, directed)
        parts = {"head": f"Q{entity}"} if directed < 4 else {"tail": f"Q{entity}"}
        usable = set(range(90)) - (known if drop else set())
        if directed % 4 != 3 and entity not in known:
            usable.discard(entity)
        expected = all_scores(completer, entity, directed)
        for k in (7, 60):
            answers = completer.ask([Question(**parts, relation=relation, k=k, drop_known=drop)])[0]
            # Equal scores come by lower id, whichever model it is.
            assert ids(answers) == sorted(usable, key=lambda e: (-round(float(expected[e]), 5), e))[:k]
            np.testing.assert_allclose([a.score for a in answers], expected[ids(answers)], atol=1e-5)
            assert {i for i, a in zip(ids(answers), answers, strict=True) if a.known} == known & set(ids(answers))
            assert all(0 <= a.probability <= 1 for a in answers)


def test_filters(completer, kg):
    every = {a.id: a for a in completer.tails("Q3", "knows", k=90)}
    some = [f"Q{i}" for i in range(0, 90, 4)]
    answers = completer.tails("Q3", "knows", k=90, among=some)
    assert {a.id for a in answers} == set(some) & set(every)
    assert [a.score for a in answers] == pytest.approx([every[a.id].score for a in answers], abs=1e-5)
    heads = {f"Q{h}" for h, r, _ in np.concatenate([kg.train, kg.valid, kg.test]).tolist() if r == 1}
    typed = completer.tails("Q3", "knows", k=90, role=Role("capital of", "head"), drop_known=True)
    assert {a.id for a in typed} == {id for id in heads & set(every) if not every[id].known}
    assert completer.tails("Q3", "knows", among=()) == []


def test_relations_are_asked_from_both_ends(completer):
    answers = completer.relations("Q3", "Q41")
    assert {a.id for a in answers} == {"born_in", "capital_of", "knows", "near"}
    engine = completer._engine
    fit, shares = engine.calibration.relations, log_shares(engine.names.frequency)
    for answer in answers:
        relation = completer.kg.relations.find(answer.id)
        if isinstance(engine.model, FusedModel):  # its experts are asked, each by its own weights
            parts = [
                (expert.score(asked(3, relation))[0, 41].item(), expert.score(asked(41, relation + 4))[0, 3].item())
                for expert in engine.model.experts
            ]
            weights = zip(fit.by_tail, fit.by_head, strict=True)
            ends = sum(a * tail + b * head for (a, b), (tail, head) in zip(weights, parts, strict=True))
            assert answer.score == pytest.approx(ends + fit.by_frequency * shares[relation], abs=1e-4)
        else:
            both = all_scores(completer, 3, relation)[41] + all_scores(completer, 41, relation + 4)[3]
            assert answer.score == pytest.approx(both / 2, abs=1e-5)
    assert [a.probability for a in answers] == sorted((a.probability for a in answers), reverse=True)
    assert 0 < sum(a.probability for a in answers) < 1


def test_a_run_of_an_earlier_version_asks_the_mixture_itself(fused, monkeypatch):
    both = RelationCalibration(by_tail=(2.0,), by_head=(3.0,))
    monkeypatch.setattr(fused._engine, "calibration", replace(fused._engine.calibration, relations=both))
    shares = log_shares(fused._engine.names.frequency)
    order = []
    for answer in fused.relations("Q3", "Q41"):
        relation = fused.kg.relations.find(answer.id)
        tail, head = all_scores(fused, 3, relation)[41], all_scores(fused, 41, relation + 4)[3]
        assert answer.score == pytest.approx((tail + head) / 2, abs=1e-5)
        order.append(2 * tail + 3 * head + both.by_frequency * shares[relation])
    assert order == sorted(order, reverse=True)


def test_a_batch_answers_as_each_question_alone(completer, monkeypatch):
    questions = [Question(head=f"Q{i}", relation="near", k=9) for i in range(20)]
    questions += [Question(head="Q1", tail="Q2"), Question(relation="knows", tail="Q7", among=("Q1", "Q2", "Q3"))]
    together = completer.ask(questions)
    monkeypatch.setattr("satkgc.completion.retriever.SCORES", 200)  # two questions of 90 scores at a time
    assert completer.ask(questions) == together
    for question, answers in zip(questions, together, strict=True):
        alone = completer.ask([question])[0]
        assert [a.id for a in alone] == [a.id for a in answers]
        assert [a.score for a in alone] == pytest.approx([a.score for a in answers], abs=1e-5)


def test_evidence(completer):
    answer = completer.tails("Q12", "near", k=1)[0]
    for asked in ("tail", "head", "relation"):
        evidence = completer.evidence("Q12", "near", answer.id, asked=asked)
        assert evidence.known == answer.known
        assert evidence.probability is not None
        assert (evidence.query_text, evidence.entity_text) == ("", "")  # neither model has any
    evidence = completer.evidence("Q12", "near", answer.id)
    assert (evidence.score, evidence.probability) == (
        pytest.approx(answer.score, abs=1e-5),
        pytest.approx(answer.probability, rel=1e-3),
    )
    assert len(completer.evidence("Q12", "near", "Q41").path) >= 1
    assert bool(evidence.similar) == (completer._engine.model.reads_text)  # without vectors nothing is alike


def test_proposals_are_the_best_answers(completer, tmp_path):
    assert completer.propose(tmp_path / "new.tsv", n=20, relations=["near"], second_answers=True) == 20
    header, *rows = [line.split("\t") for line in (tmp_path / "new.tsv").read_text().splitlines()]
    values = [float(row[header.index("probability")]) for row in rows]
    assert values == sorted(values, reverse=True)
    head, _, tail = rows[0][:3]
    found = [a for a in completer.tails(head, "near", k=90) if a.id == tail]
    found += [a for a in completer.heads("near", tail, k=90) if a.id == head]
    assert max(a.probability for a in found) == pytest.approx(values[0], rel=1e-3)


def test_what_is_prepared_opens_again(completer):
    model, run = completer._engine.model, completer.run
    again = Completer(open_prepared(run, model), run)
    assert again.tails("Q3", "near", k=40) == completer.tails("Q3", "near", k=40)
    assert again.relations("Q3", "Q4") == completer.relations("Q3", "Q4")
    assert json.loads((run / "index" / "index.json").read_text())["kind"] == (
        "exact" if isinstance(model, WordVectors) else None
    )


def test_suggestions_and_examples(completer, kg):
    shares = completer.suggest_relations("Q3")
    assert [s.share for s in shares] == sorted((s.share for s in shares), reverse=True)
    assert len(completer.examples(5)) == 5
    if isinstance(completer._engine.model, PlainScores):  # which has no notion of similar entities: all count
        for share in shares:
            heads = {h for h, r, _ in kg.train.tolist() if kg.relations.id(r) == share.id}
            assert share.share == pytest.approx(len(heads) / 90)
        tails = completer.suggest_relations("Q3", "head")
        assert tails[0].share == pytest.approx(
            max(len({t for _, r, t in kg.train.tolist() if r == relation}) for relation in range(4)) / 90
        )


def test_new_entities_of_a_model_that_reads_texts(kg, tmp_path):
    completer = load(WordVectors(kg), tmp_path / "run")
    new = NewEntity("bora", "a town", facts=(Role("near", "head", "Q3"),))
    answers = completer.tails(new, "near", k=90)
    assert [a.id for a in answers if a.known] == ["Q3"]
    id = completer.add(new)
    assert [a.score for a in completer.tails(id, "near", k=91) if a.id != id] == pytest.approx(
        [a.score for a in answers], abs=1e-6
    )
    assert id in {a.id for a in completer.heads("near", "Q3", k=91) if a.known}
    assert len(completer.vectors()) == 90  # those of the graph
    assert not completer.reads_facts()


def test_a_model_that_reads_no_texts_refuses_new_entities_in_one_line(scores):
    new = NewEntity("bora", "a town")
    line = (
        "^PlainScores does not read texts and knows nothing of the new entity 'bora'; ask about an entity of the graph"
    )
    for ask in (
        lambda: scores.tails(new, "near"),
        lambda: scores.heads("near", new),
        lambda: scores.relations(new, "Q3"),
        lambda: scores.evidence("Q3", "near", new),
        lambda: scores.suggest_relations(new),
    ):
        with pytest.raises(SatkgcError, match=line):
            ask()
    outcome = scores.ask_each([Question(head=new, relation="near"), Question(head="Q1", relation="near")])
    assert isinstance(outcome[0], SatkgcError)
    assert len(outcome[1]) == 10


def test_a_model_without_vectors_says_so(scores, tmp_path):
    for ask in (lambda: scores.add(NewEntity("bora")), scores.vectors):
        with pytest.raises(SatkgcError, match=r"PlainScores has no entity vectors; use a run of a model that has them"):
            ask()
    with pytest.raises(
        SatkgcError, match="PlainScores has no vectors to put into the index 'faiss'; leave --index out"
    ):
        load(PlainScores(scores.kg), tmp_path / "run", "faiss")
    with pytest.raises(SatkgcError, match="no index 'annoy'; choose one of exact"):
        load(PlainScores(scores.kg), tmp_path / "run", "annoy")


def test_probabilities_do_not_depend_on_the_size_of_scores(kg, scores, tmp_path):
    large = load(PlainScores(kg, size=1000.0), tmp_path / "run")
    for ask in (lambda c: c.tails("Q3", "near", k=60), lambda c: c.relations("Q3", "Q9")):
        mine, theirs = ask(large), ask(scores)
        assert [a.score for a in mine] == pytest.approx([1000 * a.score for a in theirs])
        assert [a.probability for a in mine] == pytest.approx([a.probability for a in theirs], rel=1e-3, abs=1e-6)


def test_nan_is_refused(kg, tmp_path):
    model = PlainScores(kg)
    model.relation.data[:] = float("nan")
    with pytest.raises(SatkgcError, match="PlainScores gave NaN as a score"):
        load(model, tmp_path / "run")


class ElsewhereIndex:
    """As a server may be: it keeps ids of its own beside the vectors, cannot exclude, and mixes equal scores up."""

    excludes: ClassVar[bool] = False
    stored: ClassVar[dict[str, dict[int, np.ndarray]]] = {}  # by folder: this one lives elsewhere
    facts: ClassVar[dict[str, float]] = {}

    def __init__(self, rows):
        self.rows = rows

    @classmethod
    def build(cls, folder, vectors, sample, device):
        (folder / "place").write_text(place := f"shelf {len(cls.stored)}")
        cls.stored[place] = dict(enumerate(np.load(vectors)))
        return cls.open(folder, device)

    @classmethod
    def open(cls, folder, device):
        return cls(dict(cls.stored[(folder / "place").read_text()]))

    def search(self, queries, k, allow=None, exclude=None):
        assert exclude is None
        some = [i for i in self.rows if allow is None or i in set(allow.tolist())][::-1]
        scores, ids = np.full((len(queries), k), -np.inf, np.float32), np.full((len(queries), k), -1, np.int32)
        for row, query in enumerate(queries):
            best = sorted(some, key=lambda i: -round(float(self.rows[i] @ query), 6))[:k]  # the highest id first
            scores[row, : len(best)], ids[row, : len(best)] = [self.rows[i] @ query for i in best], best
        return scores, ids

    def fetch(self, ids):
        return np.array([self.rows[i] for i in ids.tolist()], np.float32)

    def add(self, ids, vectors):
        self.rows.update(zip(ids.tolist(), vectors, strict=True))

    def __len__(self):
        return len(self.rows)


def test_an_index_may_live_elsewhere(kg, vectors, tmp_path, monkeypatch):
    monkeypatch.setitem(INDEXES, "elsewhere", ElsewhereIndex)
    load(WordVectors(kg), tmp_path / "run", "elsewhere")
    assert not list((tmp_path / "run" / "index").glob("entities*"))  # nothing else may read vectors from there
    again = Completer(open_prepared(tmp_path / "run", WordVectors(kg)), tmp_path / "run")
    questions = [Question(head=f"Q{i}", relation="near", k=30, drop_known=bool(i % 2)) for i in range(12)]
    questions += [
        Question(head="Q4", tail="Q8"),
        Question(relation="knows", tail="Q5", role=Role("near", "head"), k=40),
    ]
    questions += [Question(head=NewEntity("bora"), relation="near", k=90)]
    for mine, theirs in zip(again.ask(questions), vectors.ask(questions), strict=True):
        assert [a.id for a in mine] == [a.id for a in theirs]
        assert [a.probability for a in mine] == pytest.approx([a.probability for a in theirs], rel=1e-3)
    mine, theirs = (c.evidence("Q4", "near", "Q8") for c in (again, vectors))
    assert (mine.path, [s.head for s in mine.similar]) == (theirs.path, [s.head for s in theirs.similar])
    assert again.suggest_relations("Q4") == vectors.suggest_relations("Q4")
    np.testing.assert_array_equal(again.vectors(), vectors.vectors())
    id = again.add(NewEntity("mila", facts=(Role("near", "tail", "Q4"),)))
    assert id in {a.id for a in again.tails("Q4", "near", k=91)}
    assert again.propose(tmp_path / "new.tsv", n=5) == 5


def test_equal_scores_come_by_id_whatever_the_index_does(kg, tmp_path, monkeypatch):
    monkeypatch.setitem(INDEXES, "elsewhere", ElsewhereIndex)
    model = WordVectors(kg)
    model.entity.data[10:30] = model.entity.data[10]  # twenty entities alike
    for index in ("exact", "elsewhere"):
        completer = load(model, tmp_path / index, index)
        alike = [i for i in ids(completer.tails("Q1", "knows", k=90)) if 10 <= i < 30]
        assert alike == sorted(alike)
        assert len(alike) == 20
        assert not list((tmp_path / index).rglob("*.part*"))  # what an index was made of goes, moved or not
