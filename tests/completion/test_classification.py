"""Right from wrong: thresholds and area against trying all, and a model that knows the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from little_world import little_world
from satkgc.completion import Completer
from satkgc.completion.classification import SHRINK, area, best_threshold, fit_thresholds
from satkgc.completion.prepare import prepare
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, published_negatives, read_negatives
from toy_models import PlainScores

KG = little_world()


@pytest.mark.parametrize("seed", range(30))
def test_a_threshold_makes_fewest_mistakes_and_the_area_counts_pairs(seed) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, 12).astype(float)  # many are equal
    labels = np.append(rng.random(10) < 0.5, [True, False])
    best = max(((values >= cut) == labels).sum() for cut in np.arange(-0.5, 7))
    assert ((values >= best_threshold(values, labels)) == labels).sum() == best
    pairs = [(a > b) + (a == b) / 2 for a in values[labels] for b in values[~labels]]
    assert area(values, labels) == pytest.approx(np.mean(pairs))


def test_a_relation_with_few_examples_stays_near_the_threshold_of_all() -> None:
    values = np.array([0.0, 2.0] * 50 + [10.0, 12.0])
    labels = np.array([False, True] * 51)
    relations = np.array([0] * 100 + [1] * 2)
    few, many = 2 / (2 + SHRINK), 100 / (100 + SHRINK)
    expected = [many * 1 + (1 - many) * 5, few * 11 + (1 - few) * 5, 5]
    np.testing.assert_allclose(fit_thresholds(values, labels, relations, 3, 5.0), expected)


class Truth(PlainScores):
    """Scores what the graph has in any split above the rest."""

    def score(self, questions, candidates=None):
        scores = torch.zeros(len(questions), self.kg.num_entities)
        for row, query in enumerate(zip(questions.entities.tolist(), questions.relations.tolist(), strict=True)):
            scores[row, torch.from_numpy(self.kg.known_all.answers(*query).astype(np.int64))] = 1.0
        return scores if candidates is None else scores.gather(1, torch.from_numpy(candidates).long())


def wrong_triples(seed, count):
    rng = np.random.default_rng(seed)
    known = {tuple(t) for split in ("train", "valid", "test") for t in KG.split(split).tolist()}
    rows = [(int(rng.integers(90)), int(rng.integers(4)), int(rng.integers(90))) for _ in range(count)]
    return [row for row in rows if row not in known and row[0] != row[2]]


def write(file, triples):
    lines = [f"{KG.entities.id(h)}\t{KG.relations.id(r)}\t{KG.entities.id(t)}\n" for h, r, t in triples]
    file.write_text("".join(lines))
    return file


@pytest.mark.parametrize(("kind", "least", "most"), [(Truth, 1.0, 1.0), (PlainScores, 0.3, 0.7)])
def test_a_model_that_knows_makes_no_mistake_and_one_that_does_not_guesses(kind, least, most, tmp_path) -> None:
    files = [write(tmp_path / f"{seed}.tsv", wrong_triples(seed, 120)) for seed in (1, 2)]
    (tmp_path / "run").mkdir()
    model = kind(KG)
    model.save(tmp_path / "run" / "model")
    result = Completer(prepare(tmp_path / "run", model), tmp_path / "run").classify(*files)
    assert (result.right, result.wrong) == (len(KG.test), len(wrong_triples(2, 120)))
    assert least <= result.accuracy <= most
    assert least <= result.auc <= most
    assert list(result.thresholds) == list(result.relations) == KG.relations.ids.to_pylist()
    assert least <= result.f1 <= 1
    assert result.f1 == pytest.approx(2 / (1 / result.precision + 1 / result.recall))
    called = result.recall * result.right / result.precision
    mistakes = result.right * (1 - result.recall) + called * (1 - result.precision)
    assert result.accuracy == pytest.approx(1 - mistakes / (result.right + result.wrong))
    parts = list(result.relations.values())
    assert [sum(part.right for part in parts), sum(part.wrong for part in parts)] == [result.right, result.wrong]
    correct = sum((part.accuracy or 0) * (part.right + part.wrong) for part in parts)
    assert correct == pytest.approx(result.accuracy * (result.right + result.wrong))
    assert [part.threshold for part in parts] == list(result.thresholds.values())
    assert all(part.auc is None or least - 0.3 <= part.auc <= most + 0.3 for part in parts)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Q1\tnear\tQ2\nQ1\tnear\n", r"wrong.tsv:2: no triple"),
        ("Q1\tnear\tQ900\n", r"wrong.tsv:1: the graph has no entity 'Q900'"),
        ("", "the file is empty"),
    ],
)
def test_a_file_that_has_no_triples_of_the_graph(content, told, tmp_path) -> None:
    (tmp_path / "wrong.tsv").write_text(content)
    with pytest.raises(SatkgcError, match=told):
        read_negatives(KG, tmp_path / "wrong.tsv")


def test_a_file_of_csv_with_a_header_that_an_import_knows(tmp_path) -> None:
    (tmp_path / "wrong.csv").write_text('target,source,relation\nQ2,"Q1",near\nQ4,Q3,knows\n')
    found = [KG.entities.index("Q1"), KG.relations.index("near"), KG.entities.index("Q2")]
    assert read_negatives(KG, tmp_path / "wrong.csv").tolist()[0] == found
    (tmp_path / "wrong.csv").write_text("source,relation,target\nQ1,near,Q900\n")
    with pytest.raises(SatkgcError, match=r"wrong.csv:2: the graph has no entity 'Q900'"):
        read_negatives(KG, tmp_path / "wrong.csv")


def test_a_graph_without_published_ones() -> None:
    with pytest.raises(SatkgcError, match="no wrong test triples are published with little world here; give files"):
        published_negatives(KG, "test")


@pytest.mark.shared
def test_published_ones(shared_data, monkeypatch) -> None:
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    kg = KnowledgeGraph.load("FB15k-237N")
    for split, count in (("valid", 7_041), ("test", 8_226)):
        wrong = {tuple(triple) for triple in published_negatives(kg, split).tolist()}
        assert len(wrong) > 0.95 * count
        assert not wrong & {tuple(triple) for triple in kg.train.tolist()}
