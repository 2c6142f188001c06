"""The examples in docs/evaluation.md, tried as a reader would, and its list of settings."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from satkgc.evaluation import EvaluationConfig, compare

TEXT = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_models_of_pykeen_are_evaluated_as_it_is_shown(tmp_path, monkeypatch):
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import TransE
    from pykeen.triples import TriplesFactory

    monkeypatch.chdir(tmp_path)
    shown, renumbered = BLOCKS[:2]
    names = {}
    exec(shown.replace("epochs=20", "epochs=1"), names)
    kg, model, report = names["kg"], names["model"], names["report"]
    assert compare(report, "transe.parquet")[0].p == 1

    def theirs(model, test, others):
        result = RankBasedEvaluator().evaluate(
            model, test, additional_filter_triples=others, use_tqdm=False, batch_size=64
        )
        return result.get_metric("both.realistic.inverse_harmonic_mean_rank")

    train, valid, test = (torch.tensor(kg.split(name)).long() for name in ("train", "valid", "test"))
    assert report.metrics()["both"]["mrr"] == pytest.approx(theirs(model, test, [train, valid]), abs=1e-6)

    ids = [np.array(vocabulary.ids.to_pylist()) for vocabulary in (kg.entities, kg.relations, kg.entities)]
    words = [np.stack([ids[i][triples[:, i]] for i in range(3)], 1) for triples in (kg.train, kg.valid, kg.test)]
    entities, relations = ({name: i for i, name in enumerate(sorted(ids[k], reverse=True))} for k in (0, 1))
    factory = TriplesFactory.from_labeled_triples(words[0], entity_to_id=entities, relation_to_id=relations)
    names |= {"factory": factory, "model": TransE(triples_factory=factory, embedding_dim=8, random_seed=0)}
    exec(renumbered, names)
    train, valid, test = (factory.map_triples(triples) for triples in words)
    assert names["report"].metrics()["both"]["mrr"] == pytest.approx(
        theirs(names["model"], test, [train, valid]), abs=1e-6
    )


def test_every_setting_is_named():
    for name in EvaluationConfig.model_fields:
        assert f"`{name}`" in TEXT, name
