"""The whole evaluation on random vectors: against plain ranks, in files, in JSON, among few candidates."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict

import numpy as np
import pyarrow.parquet as pq
import pytest
from by_hand import counts_of, plain_counts, split_graph, unit_vectors

from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, QuestionRanks, compare, evaluate_with
from satkgc.evaluation.exact import exact_scores

module = importlib.import_module("satkgc.evaluation.evaluate")  # the package has a function of that name
KG = split_graph(21)
RNG = np.random.default_rng(22)
ENTITIES = unit_vectors(RNG, KG.num_entities, 8)
QUERIES = unit_vectors(RNG, KG.num_entities * 2 * KG.num_relations, 8).reshape(KG.num_entities, -1, 8)


def run(split="test", **settings):
    return evaluate_with(lambda e: ENTITIES[e], lambda e, d: QUERIES[e, d], KG, split, EvaluationConfig(**settings))


@pytest.mark.parametrize("candidates", ["all", "split"])
@pytest.mark.parametrize("split", ["test", "valid"])
def test_both_directions_are_plain_filtered_ranks(split, candidates):
    report = run(split, candidates=candidates)
    triples = KG.split(split)
    allowed = set(range(KG.num_entities) if candidates == "all" else triples[:, [0, 2]].ravel().tolist())
    everything = np.concatenate([KG.train, KG.valid, KG.test])
    for direction, asked, answer, shift in (("tail", 0, 2, 0), ("head", 2, 0, KG.num_relations)):
        scores = exact_scores(QUERIES[triples[:, asked], triples[:, 1] + shift], ENTITIES).numpy()
        banned = [
            {int(x[answer]) for x in everything if x[1] == row[1] and x[asked] == row[asked]}
            | (set(range(KG.num_entities)) - allowed)
            for row in triples
        ]
        np.testing.assert_array_equal(
            counts_of(report.ranks[direction]), plain_counts(scores, triples[:, answer], banned)
        )


def test_a_question_is_encoded_once_and_an_entity_once(monkeypatch):
    asked, seen = [], []

    def queries(entities, directed):
        asked.extend(zip(entities.tolist(), directed.tolist(), strict=True))
        return QUERIES[entities, directed]

    def entities(chosen):
        seen.extend(chosen.tolist())
        return ENTITIES[chosen]

    monkeypatch.setattr(module, "_CHUNK", 7)
    report = evaluate_with(entities, queries, KG)
    assert len(asked) == len(set(asked))
    assert seen == list(range(KG.num_entities))
    np.testing.assert_array_equal(counts_of(report.ranks["tail"]), counts_of(run().ranks["tail"]))


def test_vectors_that_exceed_the_memory_setting_go_to_a_file_and_the_file_goes(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_CHUNK", 9)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_tile_mib", lambda config: config.memory_mib)  # leaves nothing for the vectors
    mapped = []
    ranked = module.rank_queries

    def spy(queries, entities, *rest, **named):
        mapped.append(isinstance(entities, np.memmap) and entities.filename.is_relative_to(tmp_path))
        return ranked(queries, entities, *rest, **named)

    monkeypatch.setattr(module, "rank_queries", spy)
    report = run()
    assert mapped == [True, True]
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    np.testing.assert_array_equal(counts_of(report.ranks["head"]), counts_of(run().ranks["head"]))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("in_a_file", [False, True])
def test_vectors_of_other_precision_are_ranked_as_float32(monkeypatch, dtype, in_a_file):
    monkeypatch.setattr(module, "_CHUNK", 9)
    if in_a_file:
        monkeypatch.setattr(module, "_tile_mib", lambda config: config.memory_mib)
    entities, queries = ENTITIES.astype(dtype), QUERIES.astype(dtype)
    report = evaluate_with(lambda e: entities[e], lambda e, d: queries[e, d], KG)
    scores = exact_scores(queries[KG.test[:, 0], KG.test[:, 1]].astype(np.float32), entities.astype(np.float32))
    known = [KG.known_all.tails(head, relation) for head, relation, _ in KG.test]
    np.testing.assert_array_equal(counts_of(report.ranks["tail"]), plain_counts(scores.numpy(), KG.test[:, 2], known))


def test_json_has_the_promised_keys_and_only_plain_numbers():
    data = json.loads(json.dumps(run(sampled=10).to_json(), allow_nan=False))
    for side in ("head", "tail", "both"):
        assert {"mrr", "hits@1", "hits@3", "hits@10", "mr", "amr", "amri", "count"} == set(data[side])
    for metric in ("mrr", "hits@1", "hits@3", "hits@10"):
        assert data["both"][metric] == pytest.approx((data["head"][metric] + data["tail"][metric]) / 2)
    assert data["candidates"] == "10 sampled of all entities"
    assert data["by_ties"]["optimistic"]["mrr"] >= data["by_ties"]["pessimistic"]["mrr"]
    assert data["triples"] == len(KG.test)


def test_sampled_candidates_make_ranks_better_but_never_better_than_first():
    few, full = run(sampled=10), run()
    assert (few.ranks["tail"].rank() <= full.ranks["tail"].rank()).all()
    assert (few.ranks["tail"].candidates == 11).all()
    assert few.metrics()["both"]["mrr"] > full.metrics()["both"]["mrr"]
    np.testing.assert_array_equal(full.sampled(10).ranks["head"].rank(), few.ranks["head"].rank())


def test_some_rows_are_ranked_as_among_all():
    rows = np.array([7, 2, 9])
    part = evaluate_with(lambda e: ENTITIES[e], lambda e, d: QUERIES[e, d], KG, "test", rows=rows)
    for direction in ("head", "tail"):
        np.testing.assert_array_equal(counts_of(part.ranks[direction]), counts_of(run().ranks[direction])[rows])
    assert part.to_json()["triples"] == 3


def test_the_table_shows_what_the_metrics_say():
    report = run()
    text = str(report)
    assert repr(report) == text  # in a notebook
    assert f"{run().metrics()['both']['mrr']:.3f}" in text
    assert "ties: realistic" in text


def test_ranks_are_kept_as_parquet(tmp_path):
    report = run()
    report.save_ranks(tmp_path / "ranks.parquet")
    table = pq.read_table(tmp_path / "ranks.parquet").to_pandas()
    assert [file.name for file in tmp_path.iterdir()] == ["ranks.parquet"]
    row = table[(table["asked"] == "tail")].iloc[4]
    head, relation, tail = KG.test[4]
    assert (row["head"], row["relation"], row["tail"]) == (f"e{head}", f"r{relation}", f"e{tail}")
    assert row["rank"] == report.ranks["tail"].rank()[4]
    assert (1 / table["rank"]).mean() == pytest.approx(report.metrics()["both"]["mrr"])
    assert {(d.difference, d.p) for d in compare(report, tmp_path / "ranks.parquet")} == {(0, 1)}
    for side, values in QuestionRanks.read(tmp_path / "ranks.parquet").metrics().items():
        assert values == pytest.approx(report.metrics()[side])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"candidates": "split"}, "candidates all against split"),
        ({"sampled": 10}, "sampled 0 against 10"),
        ({"ties": "optimistic", "sampled": 9}, "sampled 0 against 9, ties realistic against optimistic"),
        ({"rerank_hops": 2}, "rerank_hops 0 against 2"),
        ({"split": "valid"}, "split test against valid"),
    ],
)
def test_ranks_that_were_taken_in_another_way_are_not_compared(tmp_path, settings, told):
    run().save_ranks(tmp_path / "one.parquet")
    run(**settings).save_ranks(tmp_path / "other.parquet")
    for sources in ((tmp_path / "one.parquet", tmp_path / "other.parquet"), (run(), run(**settings))):
        with pytest.raises(SatkgcError, match=f"not ranked in the same way: {told};"):
            compare(*sources)
    about = json.loads(pq.read_schema(tmp_path / "one.parquet").metadata[b"satkgc"])
    assert about == {"dataset": KG.name, "split": "test", **asdict(EvaluationConfig())}


def test_what_does_not_change_ranks_may_differ_in_a_comparison():
    assert compare(run(), run(memory_mib=64, seed=3, rerank_weight=0.1))[0].p == 1
    assert compare(run(sampled=10), run(sampled=10, seed=3))[0].p < 1  # two draws
    with pytest.raises(SatkgcError, match=r"rerank_weight 0\.05 against 0\.1;"):
        compare(run(rerank_hops=2), run(rerank_hops=2, rerank_weight=0.1))


def test_without_metadata_other_numbers_of_candidates_tell(tmp_path):
    pq.write_table(run(sampled=10).rank_table().replace_schema_metadata(None), tmp_path / "few.parquet")
    with pytest.raises(SatkgcError, match=r"few\.parquet: not ranked .*: among \d\d candidates against 11 "):
        compare(run(), tmp_path / "few.parquet")
    pq.write_table(pq.read_table(tmp_path / "few.parquet").drop_columns(["candidates"]), tmp_path / "foreign.parquet")
    assert compare(run(), tmp_path / "foreign.parquet")[0].difference > 0  # nothing is known of these


def test_a_split_without_triples_is_named():
    with pytest.raises(SatkgcError, match="no test triples"):
        evaluate_with(lambda e: ENTITIES[e], lambda e, d: QUERIES[e, d], _without_test())
    with pytest.raises(SatkgcError, match="unknown split 'testing'; choose train, valid or test"):
        run("testing")


def _without_test():
    from graphs import graph_of

    return graph_of(KG.train, KG.num_entities, KG.num_relations)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("candidates", "some"),
        ("sampled", -1),
        ("ties", "lucky"),
        ("rerank_hops", -1),
        ("rerank_weight", 2),
        ("memory_mib", 1),
    ],
)
def test_nonsense_settings_are_refused_by_name(setting, value):
    with pytest.raises(SatkgcError, match=f"evaluation.{setting} is"):
        EvaluationConfig(**{setting: value})
