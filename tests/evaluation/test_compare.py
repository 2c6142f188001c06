"""Two systems' ranks beside one another."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner

from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.evaluation import compare


def ranks_file(file, ranks, order=None):
    """A file of `ranks`, (triples, 2): of each triple the rank of its head, and of its tail."""
    n = len(ranks)
    columns = {
        "head": [f"h{i // 3}" for i in range(n)] * 2,
        "relation": [f"r{i % 2}" for i in range(n)] * 2,
        "tail": [f"t{i}" for i in range(n)] * 2,
        "asked": ["head"] * n + ["tail"] * n,
        "rank": np.concatenate([ranks[:, 0], ranks[:, 1]]),
    }
    table = pa.table(columns)
    pq.write_table(table if order is None else table.take(order), file)
    return file


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_differences_are_those_of_the_triples_whatever_the_order(tmp_path, rng):
    first, second = rng.integers(1, 30, (50, 2)), rng.integers(1, 20, (50, 2))
    one = ranks_file(tmp_path / "one.parquet", first)
    other = ranks_file(tmp_path / "other.parquet", second, rng.permutation(100))
    found = {difference.metric: difference for difference in compare(one, str(other))}
    assert list(found) == ["mrr", "hits@1", "hits@3", "hits@10"]
    for metric, value in (("mrr", lambda r: 1 / r), ("hits@3", lambda r: r <= 3)):
        before = [(value(a) + value(b)) / 2 for a, b in first.tolist()]
        after = [(value(a) + value(b)) / 2 for a, b in second.tolist()]
        expected = stats.ttest_1samp(np.subtract(after, before), 0)
        assert found[metric].first == pytest.approx(np.mean(before))
        assert found[metric].second == pytest.approx(np.mean(after))
        assert found[metric].difference == pytest.approx(np.mean(after) - np.mean(before))
        assert found[metric].p == pytest.approx(expected.pvalue)
        interval = expected.confidence_interval(0.95)
        assert (found[metric].low, found[metric].high) == pytest.approx((interval.low, interval.high))


def test_chance_alone_is_found_out_in_one_comparison_of_twenty(tmp_path, rng):
    """Also where the two questions of a triple are the same one twice: they are not taken for two observations."""
    low = 0
    for _ in range(300):
        pair = [np.repeat(rng.integers(1, 40, (60, 1)), 2, axis=1) for _ in range(2)]
        files = [ranks_file(tmp_path / f"{name}.parquet", ranks) for name, ranks in zip("ab", pair, strict=True)]
        low += compare(*files)[0].p < 0.05
    assert 4 <= low <= 28  # 15 are expected; as two observations there would be some 50


def test_the_same_ranks_differ_in_nothing(tmp_path, rng):
    file = ranks_file(tmp_path / "one.parquet", rng.integers(1, 9, (20, 2)))
    assert {(d.difference, d.low, d.high, d.p) for d in compare(file, file)} == {(0, 0, 0, 1)}


def test_what_cannot_be_compared_is_said(tmp_path, rng):
    ranks = rng.integers(1, 9, (20, 2))
    one = ranks_file(tmp_path / "one.parquet", ranks)
    with pytest.raises(SatkgcError, match="40 questions against 38"):
        compare(one, ranks_file(tmp_path / "fewer.parquet", ranks[:19]))
    other = pq.read_table(one)
    renamed = [tail if tail != "t7" else "t99" for tail in other["tail"].to_pylist()]
    pq.write_table(other.set_column(2, "tail", pa.array(renamed)), tmp_path / "other.parquet")
    with pytest.raises(SatkgcError, match=r"not the same questions, from \(h2 r1 t7 head\) on"):
        compare(one, tmp_path / "other.parquet")
    pq.write_table(other.drop_columns(["asked"]), tmp_path / "without.parquet")
    with pytest.raises(SatkgcError, match="no column asked"):
        compare(one, tmp_path / "without.parquet")
    for wrong in (0, None):
        broken = other.set_column(4, "rank", pa.array([wrong] + [1] * 39))
        pq.write_table(broken, tmp_path / "broken.parquet")
        with pytest.raises(SatkgcError, match="a rank is missing or less than 1"):
            compare(one, tmp_path / "broken.parquet")
    lone = ranks_file(tmp_path / "lone.parquet", ranks[:1])
    with pytest.raises(SatkgcError, match="fewer than two triples"):
        compare(lone, lone)
    (tmp_path / "text.parquet").write_text("head,relation,tail\n")
    with pytest.raises(SatkgcError, match="not a Parquet file of ranks"):
        compare(one, tmp_path / "text.parquet")
    with pytest.raises(SatkgcError, match="no such file"):
        compare(one, tmp_path / "nothing.parquet")


def test_from_a_shell(tmp_path, rng):
    ranks = rng.integers(1, 9, (40, 2))
    one, other = (ranks_file(tmp_path / f"{n}.parquet", r) for n, r in (("simkgc", ranks), ("satkgc", ranks + 5)))
    shown = CliRunner().invoke(app, ["compare", str(one), str(other)], env={"COLUMNS": "100"}).output
    assert "simkgc" in shown
    line = next(line for line in shown.splitlines() if "MRR" in line)
    assert f"{(1 / (ranks + 5)).mean() - (1 / ranks).mean():.4f}" in line
    assert len(json.loads(CliRunner().invoke(app, ["compare", str(one), str(other), "--json"]).output)) == 4
