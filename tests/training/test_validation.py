"""Validation ranks as evaluation does, on triples chosen once."""

from __future__ import annotations

import importlib

import torch

import satkgc
from satkgc.evaluation import EvaluationConfig
from satkgc.models import EncoderConfig, TextModel, TextModelConfig
from satkgc.text import TextConfig
from satkgc.training import validation
from satkgc.training.validation import Validation, validation_steps

encode = TextModel.encode_entities


def test_all_triples_are_ranked_again_only_when_that_can_differ(tiny_backbone):
    kg = satkgc.KnowledgeGraph.load("wordnet-sample")
    encoder, text = EncoderConfig(backbone=str(tiny_backbone)), TextConfig(max_tokens=48, neighbours=0)
    model = TextModel(kg, TextModelConfig(encoder=encoder, text=text)).eval()
    whole, part = (Validation(model, EvaluationConfig(), triples, 0) for triples in (0, 20))
    metrics = whole()
    part()
    assert len(part.latest.triples) == 20
    assert whole.of_all(again=False) is whole.latest
    assert part.of_all(again=False).metrics() == metrics
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(-0.5).add_(0.01)
    assert whole.of_all(again=True).metrics() != metrics


def test_on_a_large_graph_candidates_are_chosen_once_and_all_are_ranked_at_the_end(tiny_backbone, monkeypatch):
    monkeypatch.setattr(validation, "MANY_ENTITIES", 1000)
    monkeypatch.setattr(validation, "SAMPLED", 50)
    monkeypatch.setattr(importlib.import_module("satkgc.evaluation.evaluate"), "MANY_ENTITIES", 1000)
    kg = satkgc.KnowledgeGraph.load("wordnet-sample")
    encoder, text = EncoderConfig(backbone=str(tiny_backbone)), TextConfig(max_tokens=48, neighbours=0)
    model = TextModel(kg, TextModelConfig(encoder=encoder, text=text)).eval()
    encoded = []
    monkeypatch.setattr(
        TextModel, "encode_entities", lambda self, ids, **rest: (encoded.append(ids), encode(self, ids, **rest))[1]
    )
    quick = Validation(model, EvaluationConfig(), 20, 0)
    assert quick() == quick()
    assert sum(map(len, encoded)) < 2 * (50 + 50 // 4 + 16 + 40 + 1)
    assert quick.latest.config.candidates_in_words == "50 sampled of all entities"
    assert quick.candidates == " among 50 sampled of all entities"
    whole = quick.of_all(again=False)
    assert whole.config.candidates_in_words == "all entities"
    assert len(whole.triples) == len(kg.valid)


def test_validations_are_spread_evenly_and_the_last_step_is_one():
    assert validation_steps(100, 4) == {25, 50, 75, 100}
    assert validation_steps(3, 10) <= {0, 1, 2, 3}
    assert validation_steps(10, 0) == set()
