"""Experts alone, in pairs and together, against the evaluation of mixtures made of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from satkgc.analysis import analyse
from satkgc.analysis.options import Options
from satkgc.cli import app
from satkgc.errors import SatkgcError
from satkgc.evaluation import evaluate
from satkgc.models import FusedModel, Mixture
from satkgc.training import train_or_stop
from satkgc.training.mixture import collect, fit_general, fit_relations
from tasks import small_graph

KG = small_graph()
SMALL = {"model.dim": 4, "sampling.batch_size": 16, "training.steps": 8, "training.validations": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    recipes = {"text": "none", "complex": "complex", "second": "rotate", "paths": "paths"}
    overrides = {f"experts.{name}.recipe": recipe for name, recipe in recipes.items()}
    overrides |= {f"experts.{name}.{key}": value for name in list(recipes)[1:] for key, value in SMALL.items()}
    folder = tmp_path_factory.mktemp("fused") / "run"
    return train_or_stop(KG, "fused", folder, overrides={"training.device": "cpu", **overrides})[0]


@pytest.fixture(scope="module")
def charts(run):
    return {chart.title: chart.to_json() for chart in analyse("experts", {"run": run}, Options(device="cpu")).charts}


def same_as(report, charts, name):
    """Whether a table has the figures of a report."""
    figures = report.to_json()
    groups = {"all": figures["both"]} | {key: own["both"] for key, own in figures["breakdown"]["category"].items()}
    for title, measure in (("MRR", "mrr"), ("Hits@1", "hits@1"), ("Hits@10", "hits@10")):
        assert set(charts[title]) == set(groups)
        for group, own in groups.items():
            assert charts[title][group][name] == pytest.approx(own[measure], abs=1e-9), (title, group)


def test_each_alone_and_all_together_are_as_evaluated(run, charts):
    model = run.model("cpu")
    for name in model.names:
        same_as(evaluate(model.alone(name), KG, "test"), charts, name)
    same_as(run.evaluate("test", device="cpu"), charts, "all")
    assert charts["Weight"]["paths"]["all"] == model.mixture.general[model.names.index("paths")]
    assert "complex" not in charts["Weight"]["paths"]


@pytest.mark.parametrize("names", [("complex", "paths"), ("complex", "second"), ("paths", "second")])
def test_a_pair_is_a_mixture_fitted_without_the_third(names, run, charts):
    model = run.model("cpu")
    fusion = json.loads((run.folder / "model" / "fusion.json").read_text())
    places = [model.names.index(name) for name in names]
    pair = FusedModel(KG, model.config, {name: model.expert(name) for name in names})
    even = Mixture.even(names, KG.num_relations)
    pair.mixture = Mixture(names, model.mixture.scales[places], even.general, even.weights)
    choices = collect(pair, KG.valid)
    general = fit_general(choices).round(4)
    weights = np.tile(general, (2 * KG.num_relations, 1))
    if fusion["fit"]["strength"] is not None:
        seen = np.unique(choices.relations)
        weights[seen] = fit_relations(choices, general, fusion["fit"]["strength"])[seen].round(4)
    pair.mixture = Mixture(names, model.mixture.scales[places], general, weights)
    assert [charts["Weight"][name][" + ".join(names)] for name in names] == pytest.approx(general, abs=2e-4)
    same_as(evaluate(pair, KG, "test"), charts, " + ".join(names))


def test_as_a_command(run, tmp_path):
    result = CliRunner().invoke(app, ["analyse", "experts", str(run.folder), "--device", "cpu", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["charts"]["MRR"]["all"]) == {
        *("complex", "second", "paths", "complex + second", "complex + paths", "paths + second", "all")
    }


def test_a_run_of_one_model_has_none(run):
    with pytest.raises(SatkgcError, match="no experts"):
        analyse("experts", {"run": next(iter(run.experts.values()))}, Options(device="cpu"))
