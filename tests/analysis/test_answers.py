"""Answers won and lost, and Hits@1 by category, against plain counting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import graph_of
from satkgc.analysis import Options
from satkgc.analysis.answers import (
    category_shares,
    chart_categories,
    chart_won_and_lost,
    hits_by_category,
    read_ranks,
    won_and_lost,
)
from satkgc.errors import SatkgcError
from satkgc.evaluation import QuestionRanks, evaluate
from satkgc.models import EmbeddingConfig, EmbeddingModel
from satkgc.training import Config, RunFolder

# r0: 1-1, r1: one head and many tails, r2: many heads and one tail, r3: many of both
TRAIN = [
    *((i, 0, i + 10) for i in range(5)),
    *((0, 1, i) for i in range(20, 26)),
    *((i, 2, 1) for i in range(20, 27)),
    *((i, 3, j) for i in range(3) for j in range(4, 7)),
]
TEST = [(6, 0, 16), (0, 1, 26), (28, 2, 1), (3, 3, 5), (1, 3, 8)]
KG = graph_of(TRAIN, 30, 4, TEST, TEST)
CATEGORY = {"r0": "1-1", "r1": "1-N", "r2": "N-1", "r3": "N-N"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of untrained embeddings, the first with its ranks."""
    folders = {}
    for seed, label in enumerate(("one", "two")):
        config = Config(model=EmbeddingConfig(dim=4))
        run = RunFolder.create(tmp_path_factory.mktemp("runs") / label, config, KG, "made up")
        torch.manual_seed(seed)
        EmbeddingModel(KG, config.model).save(run.folder / "model")
        folders[label] = run
    run = folders["one"]
    run.evaluate("test", device="cpu").save_ranks(run.folder / "ranks-test.parquet")
    return folders


def test_won_and_lost_by_counting():
    rng = np.random.default_rng(0)
    first, second = rng.integers(1, 25, (2, 400)).astype(float)
    pairs = list(zip(first, second, strict=True))
    found = won_and_lost(first, second)
    assert found["lost, of those in the top 10"] == pytest.approx(np.mean([b > 10 for a, b in pairs if a <= 10]))
    assert found["won, of the others"] == pytest.approx(np.mean([b <= 10 for a, b in pairs if a > 10]))
    assert 0 < found["won, of the others"] < 1
    same = won_and_lost(first, first)
    assert set(same.values()) == {0}
    assert np.isnan(won_and_lost(np.ones(3), np.ones(3))["won, of the others"])


def test_shares_and_hits_by_category():
    assert category_shares(KG) == pytest.approx({"1-1": 5 / 27, "1-N": 6 / 27, "N-1": 7 / 27, "N-N": 9 / 27})
    report = evaluate(EmbeddingModel(KG, EmbeddingConfig(dim=4)), KG, "test")
    ranks = QuestionRanks.read(report)
    for category, hits in hits_by_category(KG, ranks).items():
        rows = [row for row in ranks.table.to_pylist() if CATEGORY[row["relation"]] == category]
        assert hits == pytest.approx(np.mean([row["rank"] == 1 for row in rows]))
    assert list(hits_by_category(KG, ranks)) == list(CATEGORY.values())


def test_runs_are_compared_by_the_ranks_in_their_folders_or_by_new_ones(runs):
    options = Options(device="cpu")
    (chart,) = chart_won_and_lost(runs, options)
    assert list(chart.series) == ["two against one"]
    first, second = (read_ranks(run, options).table["rank"].to_numpy() for run in runs.values())
    assert chart.to_json()["two against one"] == won_and_lost(first, second)
    shares, hits = chart_categories(runs, options)
    assert list(shares.series) == list(hits.series) == ["one", "two"]
    assert read_ranks(runs["one"], options).file is not None
    assert read_ranks(runs["two"], options).file is None


def test_one_run_alone_wins_nothing(runs):
    with pytest.raises(SatkgcError, match="give two runs"):
        chart_won_and_lost({"one": runs["one"]}, Options())
