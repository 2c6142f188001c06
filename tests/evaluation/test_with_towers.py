"""Evaluation of real, tiny towers, and on the graphs that people use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from by_hand import counts_of, split_graph, unit_vectors

import satkgc
from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, evaluate, evaluate_with
from satkgc.evaluation.candidates import candidate_entities
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import EncoderConfig, Towers
from satkgc.text import TextConfig, Texts
from satkgc.training.config import Config


def test_towers_are_evaluated_by_their_own_vectors(tiny_backbone):
    kg = split_graph(31)
    towers = Towers.create(EncoderConfig(backbone=str(tiny_backbone)))
    texts = Texts(kg, towers.tokenizer, TextConfig(max_tokens=32))
    entities = towers.encode_entities(texts.entities(np.arange(kg.num_entities)))
    pairs = np.indices((kg.num_entities, 2 * kg.num_relations)).reshape(2, -1)
    queries = towers.encode_queries(texts.queries(*pairs)).reshape(kg.num_entities, 2 * kg.num_relations, -1)
    wanted = evaluate_with(lambda e: entities[e], lambda e, d: queries[e, d], kg)
    report = evaluate(towers, texts, kg)
    # The two encode in other batches, which rounds differently, and a near tie may turn.
    for direction in ("head", "tail"):
        difference = np.abs(counts_of(report.ranks[direction]) - counts_of(wanted.ranks[direction]))
        assert np.median(difference) == 0
        assert difference.max() <= 3
    assert set(report.seconds) == {"encoding", "ranking"}


def test_a_run_folder_is_evaluated_with_settings_by_their_names(tiny_backbone, tmp_path):
    kg, encoder = split_graph(32), EncoderConfig(backbone=str(tiny_backbone))
    own = EvaluationConfig(candidates="split", memory_mib=64)
    config = Config(encoder=encoder, text=TextConfig(max_tokens=32), evaluation=own)
    run = satkgc.Run.create(tmp_path / "run", config, kg, "made-up")
    Towers.create(encoder).save(tmp_path / "run" / "model")
    for given in (run, tmp_path / "run", str(tmp_path / "run")):
        report = satkgc.evaluate(given, "valid", sampled=5, ties="pessimistic", device="cpu")
        assert report.split == "valid"
        assert report.config == replace(own, sampled=5, ties="pessimistic")
        assert (report.ranks["head"].candidates == 6).all()
    assert satkgc.evaluate(run, candidates="all").config == replace(own, candidates="all")
    other = EvaluationConfig(seed=3)
    assert satkgc.evaluate(run, config=other, sampled=5).config == replace(other, sampled=5)
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
    vectors = unit_vectors(rng, kg.num_entities, 16)
    report = evaluate_with(
        lambda e: vectors[e], lambda e, d: unit_vectors(rng, len(e), 16), kg, config=EvaluationConfig(memory_mib=64)
    )
    assert report.metrics()["both"]["amri"] == pytest.approx(0, abs=0.03)
    others = [len(kg.known_all.tails(h, r)) - 1 for h, r, _ in kg.test[:200]]
    assert (kg.num_entities - report.ranks["tail"].candidates[:200]).tolist() == others
    groups = report.to_json()["breakdown"]["relation"]
    assert sum(group["tail"]["count"] for group in groups.values()) == len(kg.test) == 3134
