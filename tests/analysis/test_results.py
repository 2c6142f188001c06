"""Result files: written whole, read back, and refused where they cannot be true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_up import metrics, result

from satkgc.analysis import Result, find_row, load_results, save_result
from satkgc.analysis.experiments import NO_TEXT
from satkgc.analysis.results import Evaluation
from satkgc.errors import SatkgcError
from satkgc.settings import flatten
from satkgc.training import make_config

KEPT = load_results(Path(__file__).parents[2] / "results")

# What settings were called when the results were written, and what values of them are called now.
RENAMED = {
    "text.hide": "model.text.exclude",
    "text.bare_share": "model.text.neighbour_dropout",
    "objective.popularity": "model.loss.logit_adjustment",
    "training.chunk_tokens": "model.encoder.chunk_tokens",
}
MOVED = {"text": "model.text", "encoder": "model.encoder", "objective": "model.loss"}
VALUES = {
    ("model.loss.proximity", "all"): "paper",
    ("model.loss.proximity", "negatives"): "authors",
    ("training.tracker", "none"): None,
    ("sampling.walk_steps", 1_000_000): 0,  # then the default: as many as M takes, but not for ever
}
# What is gone, and the only value that is left of it.
GONE = {
    "objective.proximity_rule": "product",
    "objective.reduction": "mean",
    "objective.train_beta": True,
    "objective.train_temperature": True,
    "objective.mask": "known",
    "text.entity_format": "colon",
    "training.average": 0.0,
    "training.objective_learning_rate": None,
}
# How a run was carried out, not what came of it; and where its settings came from, by the names of then.
OTHER = {"training.checkpoint_minutes", "training.workers", "recipe", "applied"}


def test_a_result_comes_back_as_it_was_and_the_same_bytes_twice(tmp_path):
    sampled = Evaluation(
        split="test",
        candidates="1,000 sampled of all entities",
        ties="realistic",
        head=metrics(0.5),
        tail=metrics(0.7),
        both=metrics(0.6),
    )
    odd = {"relation": {"a { b [ \n c": {"both": metrics(0.6)}, "[two  \n words] d ]\n}": {"both": metrics(0.5)}}}
    one = result("fb15k-237n-satkgc-adjusted", valid_mrr=0.25, also=[sampled], breakdown=odd)
    file = save_result(one, tmp_path / "results")
    text = file.read_text()
    assert load_results(tmp_path / "results") == {"fb15k-237n-satkgc-adjusted": one}
    save_result(load_results(tmp_path / "results")["fb15k-237n-satkgc-adjusted"], tmp_path / "results")
    assert file.read_text() == text
    assert len([line for line in text.splitlines() if '"mrr"' in line and '"hits@10"' in line]) == 8  # a line a set
    assert [path.name for path in file.parent.iterdir()] == ["fb15k-237n-satkgc-adjusted.json"]


def test_the_file_says_what_the_design_asks_for():
    data = json.loads(result("wn18rr-satkgc").to_json())
    wanted = "dataset recipe backbone seed split candidates ties head tail both steps epochs minutes hardware commit"
    assert set(wanted.split()) <= set(data)
    assert data["both"]["hits@10"] == 0.35


def test_no_folder_is_no_results(tmp_path):
    assert load_results(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"commit": ""}, "commit is empty"),
        ({"ties": "lucky"}, "unknown tie rule"),
        ({"both": {**metrics(0.5), "mrr": 1.5}}, r"both.mrr is 1.5"),
        ({"both": {**metrics(0.5), "mrr": 0.6}}, "not the mean of head and tail"),
        ({"head": {}}, "head.mrr is None"),
        ({"steps": 0}, "0 steps"),
        ({"minutes": 0.0}, "in 0.0 minutes"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(SatkgcError, match=message):
        result("wn18rr-satkgc", **changes)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"row": "x"}', '{"typo": 1}'])
def test_a_file_that_is_no_result_is_named(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(SatkgcError, match=r"x\.json: not a result file"):
        load_results(tmp_path)


def test_a_file_under_another_row_s_name_is_refused(tmp_path):
    save_result(result("wn18rr-satkgc"), tmp_path).rename(tmp_path / "wn18rr-simkgc.json")
    with pytest.raises(SatkgcError, match="name the file after its row"):
        load_results(tmp_path)


def test_a_wrong_value_in_a_file_is_told_with_the_file(tmp_path):
    data = json.loads(result("wn18rr-satkgc").to_json())
    with pytest.raises(SatkgcError, match="here: unknown tie rule"):
        Result.from_json(json.dumps({**data, "ties": "none"}), "here")


def settings_of(config):
    """A result's settings by the names that they have now; of what is gone those that are not as they are left."""
    old = flatten(config)
    if "model.kind" in old:
        return {name: value for name, value in old.items() if name not in OTHER}
    by_relation = old.pop("text.neighbour_relations", False)
    old["model.text.neighbours_per_relation" if by_relation else "text.neighbours"] = old.pop("text.neighbours")
    settings = {}
    for name, value in old.items():
        if name not in OTHER and not (name in GONE and value == GONE[name]):
            package, _, rest = name.partition(".")
            renamed = RENAMED.get(name, f"{MOVED.get(package, package)}.{rest}")
            settings[renamed] = VALUES.get((renamed, value), value)
    return settings


@pytest.mark.parametrize("name", KEPT)
def test_a_result_that_is_kept_is_what_its_row_says(name):
    """The names of rows and recipes were given after the runs: the settings that each ran with prove them."""
    kept, row = KEPT[name], find_row(name)
    assert (kept.dataset, kept.recipe, kept.backbone, kept.seed) == (row.dataset, row.recipe, row.backbone, row.seed)
    overrides = row.settings(None if row.backbone == NO_TEXT else row.backbone)
    expected = flatten(make_config(row.recipe, benchmark=row.dataset, overrides=overrides).model_dump())
    settings = settings_of(kept.config)
    assert settings.keys() - expected.keys() <= {"sampling.distances"}  # by proximity now
    compared = (settings.keys() & expected.keys()) - {"training.device"}  # where it ran is its hardware
    assert {name: settings[name] for name in compared} == {name: expected[name] for name in compared}
    decisive = {"sampling.sampler", "training.epochs", "training.learning_rate", "sampling.batch_size"}
    if experts := kept.config.get("experts"):
        of_experts = {f"experts.{expert}.{name}" for expert in experts for name in decisive | {"model.kind"}}
        assert of_experts | {"experts.text.model.text.exclude"} <= settings.keys()
        return
    if row.backbone == NO_TEXT:
        assert decisive | {"model.kind"} <= settings.keys()
        return
    assert decisive | {"model.text.exclude", "model.loss.proximity", "model.loss.frequency"} <= settings.keys()
    if "model.loss.logit_adjustment" not in settings:  # of before there was one
        assert expected["model.loss.logit_adjustment"] == 0
