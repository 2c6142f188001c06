"""Two systems' ranks beside one another."""

from __future__ import annotations

import json
from dataclasses import asdict

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
    with pytest.raises(SatkgcError, match=r"not a Parquet file of ranks; write one with `satkgc evaluate RUN"):
        compare(one, tmp_path / "text.parquet")
    with pytest.raises(SatkgcError, match="no such file"):
        compare(one, tmp_path / "nothing.parquet")


@pytest.mark.parametrize("text", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()])
@pytest.mark.parametrize("number", [pa.string(), pa.float32(), pa.dictionary(pa.int8(), pa.int64())])
def test_files_that_other_programs_write_are_read(tmp_path, rng, text, number):
    one, other = (ranks_file(tmp_path / f"{name}.parquet", rng.integers(1, 9, (20, 2))) for name in "ab")
    table = pq.read_table(other)
    kinds = {name: number if name == "rank" else text for name in table.column_names}
    cast = {
        name: table[name].dictionary_encode() if pa.types.is_dictionary(kind) else table[name].cast(kind)
        for name, kind in kinds.items()
    }
    pq.write_table(pa.table(cast), tmp_path / "foreign.parquet")
    assert compare(one, tmp_path / "foreign.parquet") == compare(one, other)


def test_categories_and_numbers_as_ids_are_read(tmp_path, rng):
    one, other = (ranks_file(tmp_path / f"{name}.parquet", rng.integers(1, 9, (20, 2))) for name in "ab")
    frame = pq.read_table(other).to_pandas()
    frame.astype(dict.fromkeys(["head", "relation", "tail", "asked"], "category")).to_parquet(tmp_path / "c.parquet")
    assert compare(one, tmp_path / "c.parquet") == compare(one, other)
    for file in (one, other):
        frame = pq.read_table(file).to_pandas()
        for name in ("head", "relation", "tail"):
            frame[name] = frame[name].str[1:]
        frame.to_parquet(file)
        frame.astype(dict.fromkeys(["head", "relation", "tail"], "int64")).astype(
            dict.fromkeys(["head", "relation"], "category")
        ).to_parquet(tmp_path / f"numbers-{file.name}")
    assert compare(tmp_path / "numbers-a.parquet", tmp_path / "numbers-b.parquet") == compare(one, other)
    assert compare(tmp_path / "numbers-a.parquet", other) == compare(one, other)


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("rank", ["first"] * 40, "column rank is string, not numbers"),
        ("tail", [["t"]] * 40, "column tail is list.*, not text"),
        ("head", [None] + ["h"] * 39, "column head has a row without a value"),
        ("asked", ["tail", "left"] * 20, "column asked has 'left'; it takes head and tail"),
        ("candidates", ["many"] * 40, "column candidates is string, not numbers"),
    ],
)
def test_columns_that_are_something_else_are_one_line(tmp_path, rng, name, values, told):
    one = ranks_file(tmp_path / "one.parquet", rng.integers(1, 9, (20, 2)))
    columns = dict(zip(pq.read_table(one).column_names, pq.read_table(one).columns, strict=True))
    pq.write_table(pa.table(columns | {name: pa.array(values)}), tmp_path / "other.parquet")
    with pytest.raises(SatkgcError, match=rf"other\.parquet: {told}") as raised:
        compare(one, tmp_path / "other.parquet")
    assert "\n" not in str(raised.value)


def test_no_ranks_and_broken_metadata_are_one_line(tmp_path, rng):
    one = ranks_file(tmp_path / "one.parquet", rng.integers(1, 9, (20, 2)))
    pq.write_table(pq.read_table(one).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(SatkgcError, match=r"empty\.parquet: no ranks"):
        compare(one, tmp_path / "empty.parquet")
    for broken in ("{", "[1]"):
        pq.write_table(pq.read_table(one).replace_schema_metadata({"satkgc": broken}), tmp_path / "broken.parquet")
        with pytest.raises(SatkgcError, match="metadata cannot be read"):
            compare(one, tmp_path / "broken.parquet")
    with pytest.raises(SatkgcError, match="nothing to compare"):
        compare(one, [])


def test_seeds_of_a_side_are_averaged_before_the_test(tmp_path, rng):
    first, second = rng.integers(1, 30, (2, 50, 2)), rng.integers(1, 20, (3, 50, 2))
    files = [
        [ranks_file(tmp_path / f"{name}{i}.parquet", ranks) for i, ranks in enumerate(side)]
        for name, side in (("a", first), ("b", second))
    ]
    found = compare(*files)[0]
    before, after = ((1 / side).mean(axis=(0, 2)) for side in (first, second))  # over seeds and questions
    expected = stats.ttest_rel(after, before)
    assert (found.first, found.second) == pytest.approx((before.mean(), after.mean()))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.first_seeds == pytest.approx([(1 / ranks).mean() for ranks in first])
    assert found.second_seeds == pytest.approx([(1 / ranks).mean() for ranks in second])
    assert found.spreads == pytest.approx([np.ptp((1 / side).mean(axis=(1, 2))) for side in (first, second)])
    alone = compare(files[0][0], files[1])[0]
    assert (alone.first, alone.spreads[0]) == (pytest.approx((1 / first[0]).mean()), 0)
    with pytest.raises(SatkgcError, match=r"a0\.parquet and .*few\.parquet: 100 questions against 98"):
        compare([files[0][0], ranks_file(tmp_path / "few.parquet", first[1][:49])], files[1])


def test_from_a_shell(tmp_path, rng):
    ranks = rng.integers(1, 9, (40, 2))
    one, other = (ranks_file(tmp_path / f"{n}.parquet", r) for n, r in (("simkgc", ranks), ("satkgc", ranks + 5)))
    shown = CliRunner().invoke(app, ["compare", str(one), str(other)], env={"COLUMNS": "100"}).output
    assert "simkgc" in shown
    line = next(line for line in shown.splitlines() if "MRR" in line)
    assert f"{(1 / (ranks + 5)).mean() - (1 / ranks).mean():.4f}" in line
    assert len(json.loads(CliRunner().invoke(app, ["compare", str(one), str(other), "--json"]).output)) == 4


def test_several_seeds_from_a_shell(tmp_path, rng):
    ranks = {name: rng.integers(1, 9, (40, 2)) for name in ("a1", "a2", "b1", "b2", "b3")}
    a1, a2, *b = (str(ranks_file(tmp_path / f"{name}.parquet", each)) for name, each in ranks.items())

    def run(*arguments):
        return CliRunner().invoke(app, ["compare", *arguments], env={"COLUMNS": "80"})

    expected = [asdict(one) for one in compare([a1, a2], b)]
    for against in (["--against", *b], ["--against", b[0], "--against", *b[1:]], [f"--against={b[0]}", *b[1:]]):
        assert json.loads(run(a1, a2, "--json", *against).output) == json.loads(json.dumps(expected))
        assert json.loads(run(a1, a2, *against, "--json").output) == json.loads(json.dumps(expected))
    shown = run(a1, a2, "--against", *b).output
    line = next(line for line in shown.splitlines() if "MRR" in line)
    for seeds in ("first_seeds", "second_seeds"):
        assert f"{np.ptp(expected[0][seeds]):.4f}" in line
    assert f"{expected[0]['low']:+.4f} to {expected[0]['high']:+.4f}" in line  # it fits a terminal
    assert "3 files; give two" in str(run(a1, a2, b[0]).exception)


def test_a_difference_that_seeds_make_too_is_pointed_out(tmp_path, rng):
    ranks = rng.integers(1, 9, (40, 2))
    far, near, best = (
        str(ranks_file(tmp_path / f"{name}.parquet", ranks * times)) for name, times in (("x", 9), ("y", 3), ("z", 1))
    )
    told = "seeds of one system differ as much as the two systems do"
    noisy = CliRunner().invoke(app, ["compare", far, best, "--against", near], env={"COLUMNS": "120"}).output
    clear = CliRunner().invoke(app, ["compare", far, far, "--against", best], env={"COLUMNS": "120"}).output
    assert told in " ".join(noisy.split())
    assert told not in " ".join(clear.split())


def test_a_single_file_shows_its_metrics(tmp_path, rng):
    ranks = rng.integers(1, 30, (40, 2)) + 0.5
    file = ranks_file(tmp_path / "one.parquet", ranks)
    data = json.loads(CliRunner().invoke(app, ["compare", str(file), "--json"]).output)
    for side, part in (("head", ranks[:, 0]), ("tail", ranks[:, 1]), ("both", ranks)):
        expected = {"mrr": (1 / part).mean(), "mr": part.mean(), "count": part.size}
        expected |= {f"hits@{k}": (part <= k).mean() for k in (1, 3, 10)}
        assert data[side] == pytest.approx(expected)
    shown = CliRunner().invoke(app, ["compare", str(file)], env={"COLUMNS": "100"}).output
    assert f"{(1 / ranks).mean():.3f}" in shown
    pq.write_table(pq.read_table(file).slice(40), tmp_path / "tails.parquet")
    only = CliRunner().invoke(app, ["compare", str(tmp_path / "tails.parquet")], env={"COLUMNS": "100"}).output
    assert f"{(1 / ranks[:, 1]).mean():.3f}" in only
    assert "head" not in only
