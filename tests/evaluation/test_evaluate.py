"""The whole evaluation of models with vectors: against plain ranks, in files, in JSON, among few candidates."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from array_model import ArrayModel, random_model
from by_hand import counts_of, plain_counts, split_graph, unit_vectors

import satkgc
from graphs import graph_of
from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, QuestionRanks, Ranks, candidate_entities, compare, evaluate
from satkgc.evaluation.questions import draw_pool
from satkgc.evaluation.ranking import exact_scores, sample_candidates
from satkgc.kg import KnowledgeGraph
from satkgc.models import EncoderConfig, Questions, TextModel, TextModelConfig
from satkgc.text import TextConfig

module = importlib.import_module("satkgc.evaluation.evaluate")  # the package has a function of that name
KG = split_graph(21)
MODEL = random_model(KG, 22)
ENTITIES, QUERIES = MODEL.entities, MODEL.queries


def run(split="test", **settings):
    return evaluate(MODEL, KG, split, EvaluationConfig(**settings))


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
    pairs, seen = [], []

    class Watched(ArrayModel):
        def encode_questions(self, questions, **options):
            pairs.extend(zip(questions.entities.tolist(), questions.relations.tolist(), strict=True))
            return super().encode_questions(questions, **options)

        def encode_entities(self, entities, **options):
            seen.extend(entities.tolist())
            return super().encode_entities(entities, **options)

    monkeypatch.setattr(module, "_CHUNK", 7)
    report = evaluate(Watched(KG, ENTITIES, QUERIES), KG)
    assert len(pairs) == len(set(pairs))
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
    report = evaluate(ArrayModel(KG, entities, queries), KG)
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
    part = evaluate(MODEL, KG, "test", rows=rows)
    for direction in ("head", "tail"):
        np.testing.assert_array_equal(counts_of(part.ranks[direction]), counts_of(run().ranks[direction])[rows])
    assert part.to_json()["triples"] == 3


def test_the_table_shows_what_the_metrics_say(monkeypatch):
    report = run()
    text = str(report)
    assert repr(report) == text
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(report) == text, "in a notebook too: no codes of a terminal"
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
    assert about == {"dataset": KG.name, "split": "test", **EvaluationConfig().model_dump()}


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
        evaluate(MODEL, graph_of(KG.train, KG.num_entities, KG.num_relations))
    with pytest.raises(SatkgcError, match="unknown split 'testing'; choose train, valid, test or inference"):
        run("testing")


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


def test_a_model_in_training_is_evaluated_without_dropout_and_goes_on_as_it_was():
    modes = []

    class Watched(ArrayModel):
        def encode_entities(self, entities, **options):
            modes.append((self.training, self.part.training))
            return super().encode_entities(entities, **options)

    model = Watched(KG, ENTITIES, QUERIES).train()
    model.part = torch.nn.Dropout().eval()
    evaluate(model, KG)
    assert modes == [(False, False)]
    assert (model.training, model.part.training) == (True, False)


def test_the_text_model_is_evaluated_by_its_own_vectors(tiny_backbone):
    kg = split_graph(31)
    config = TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone)), text=TextConfig(max_tokens=32))
    model = TextModel(kg, config).eval()
    entities = model.encode_entities(np.arange(kg.num_entities, dtype=np.int32))
    pairs = np.indices((kg.num_entities, 2 * kg.num_relations)).reshape(2, -1).astype(np.int32)
    queries = model.encode_questions(Questions(*pairs)).reshape(kg.num_entities, 2 * kg.num_relations, -1)
    expected = evaluate(ArrayModel(kg, entities, queries), kg)
    report = evaluate(model, kg)
    # The two encode in other batches, which rounds differently, and a near tie may turn.
    for direction in ("head", "tail"):
        difference = np.abs(counts_of(report.ranks[direction]) - counts_of(expected.ranks[direction]))
        assert np.median(difference) == 0
        assert difference.max() <= 3
    assert set(report.seconds) == {"encoding", "ranking"}


def test_a_run_folder_is_evaluated_with_settings_by_their_names(tiny_backbone, tmp_path):
    from satkgc.training import Config, RunFolder

    kg, own = split_graph(32), EvaluationConfig(candidates="split", memory_mib=64)
    model = TextModelConfig(encoder=EncoderConfig(backbone=str(tiny_backbone)), text=TextConfig(max_tokens=32))
    run = RunFolder.create(tmp_path / "run", Config(model=model, evaluation=own), kg, "made-up")
    TextModel(kg, model).save(tmp_path / "run" / "model")
    for source in (run, tmp_path / "run", str(tmp_path / "run")):
        report = satkgc.evaluate(source, "valid", sampled=5, ties="pessimistic", device="cpu")
        assert report.split == "valid"
        assert report.config == own.replace(sampled=5, ties="pessimistic")
        assert (report.ranks["head"].candidates == 6).all()
    assert satkgc.evaluate(run, candidates="all").config == own.replace(candidates="all")
    other = EvaluationConfig(seed=3)
    assert satkgc.evaluate(run, config=other, sampled=5).config == other.replace(sampled=5)
    np.testing.assert_array_equal(
        counts_of(satkgc.evaluate(run).ranks["tail"]), counts_of(run.evaluate().ranks["tail"])
    )
    with pytest.raises(SatkgcError, match="unknown split 'testing'"):
        satkgc.evaluate(run, "testing")
    with pytest.raises(SatkgcError, match="no run here"):
        satkgc.evaluate(tmp_path)
    with pytest.raises(SatkgcError, match=r"evaluation\.candidates is 1000; .* and sampled to a number"):
        satkgc.evaluate(run, candidates=1000)


@pytest.mark.shared
def test_inductive_candidates_are_the_unseen_entities_and_what_they_touch(shared_data, monkeypatch):
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    kg = KnowledgeGraph.load("BLP-FB15k-237-inductive")
    candidates = candidate_entities(kg, "test", "split")
    new = kg.split_entities["test"]
    assert np.isin(new, candidates).all()
    assert (kg.adjacency.degree[new] == 0).all()
    assert np.isin(kg.test[:, [0, 2]], candidates).all()
    assert len(new) <= len(candidates) < kg.num_entities


@pytest.mark.shared
def test_random_vectors_on_wn18rr_get_the_ranks_of_chance(shared_data, monkeypatch):
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    kg = KnowledgeGraph.load("WN18RR")
    rng = np.random.default_rng(1)

    class Chance(ArrayModel):
        def encode_questions(self, questions, **options):
            return unit_vectors(rng, len(questions), 16)

    model = Chance(kg, unit_vectors(rng, kg.num_entities, 16), None)
    report = evaluate(model, kg, config=EvaluationConfig(memory_mib=64))
    assert report.metrics()["both"]["amri"] == pytest.approx(0, abs=0.03)
    others = [len(kg.known_all.tails(h, r)) - 1 for h, r, _ in kg.test[:200]]
    assert (kg.num_entities - report.ranks["tail"].candidates[:200]).tolist() == others
    groups = report.to_json()["breakdown"]["relation"]
    assert sum(group["tail"]["count"] for group in groups.values()) == len(kg.test) == 3134


SAMPLED = 8


@pytest.fixture
def pools(monkeypatch):
    """Sampled candidates come from a pool on this small graph, too."""
    monkeypatch.setattr(module, "MANY_ENTITIES", 0)


def test_a_pool_gives_plain_ranks_among_its_members(pools):
    everything = np.concatenate([KG.train, KG.valid, KG.test])
    report, pool = run(sampled=SAMPLED, seed=5), draw_pool(np.arange(KG.num_entities, dtype=np.int32), SAMPLED, 5)
    assert len(pool) == min(KG.num_entities, SAMPLED + SAMPLED // 4 + 16) < KG.num_entities
    assert report.num_candidates == KG.num_entities
    for direction, asked, answer, shift in (("tail", 0, 2, 0), ("head", 2, 0, KG.num_relations)):
        scores = exact_scores(QUERIES[KG.test[:, asked], KG.test[:, 1] + shift], ENTITIES).numpy()
        banned = [
            {int(x[answer]) for x in everything if x[1] == row[1] and x[asked] == row[asked]}
            | (set(range(KG.num_entities)) - set(pool.tolist()))
            for row in KG.test
        ]
        whole = Ranks(*plain_counts(scores, KG.test[:, answer], banned).T)
        np.testing.assert_array_equal(
            counts_of(report.ranks[direction]), counts_of(sample_candidates(whole, SAMPLED, 5, direction))
        )


def test_of_a_pool_only_its_members_and_the_answers_are_encoded(pools):
    seen = []

    class Watched(ArrayModel):
        def encode_entities(self, entities, **options):
            seen.extend(entities.tolist())
            return super().encode_entities(entities, **options)

    evaluate(Watched(KG, ENTITIES, QUERIES), KG, "test", EvaluationConfig(sampled=SAMPLED))
    pool = draw_pool(np.arange(KG.num_entities, dtype=np.int32), SAMPLED, 0)
    assert sorted(seen) == sorted({*pool.tolist(), *KG.test[:, [0, 2]].ravel().tolist()})


def test_figures_of_pools_have_no_bias(pools):
    """AMRI is that among all candidates, on average; MRR is that of candidates drawn for each question."""
    full = run()
    draws = [run(sampled=SAMPLED, seed=seed).metrics()["both"] for seed in range(300)]
    own = [
        replace(full, config=full.config.replace(seed=seed)).sampled(SAMPLED).metrics()["both"] for seed in range(300)
    ]
    for metric, expected in (("amri", full.metrics()["both"]["amri"]), ("mrr", np.mean([d["mrr"] for d in own]))):
        values = np.array([draw[metric] for draw in draws])
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values)), metric
