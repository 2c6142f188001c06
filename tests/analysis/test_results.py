"""Result files: written whole, read back, and refused where they cannot be true."""

from __future__ import annotations

import json

import pytest
from made_up import metrics, result

from satkgc.analysis.results import Evaluation, Result, load_results, save_result
from satkgc.errors import SatkgcError


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
    one = result("fb15k-237n-satkgc", valid_mrr=0.25, also=[sampled], breakdown=odd)
    file = save_result(one, tmp_path / "results")
    text = file.read_text()
    assert load_results(tmp_path / "results") == {"fb15k-237n-satkgc": one}
    save_result(load_results(tmp_path / "results")["fb15k-237n-satkgc"], tmp_path / "results")
    assert file.read_text() == text
    assert len([line for line in text.splitlines() if '"mrr"' in line and '"hits@10"' in line]) == 8  # a line a set
    assert [path.name for path in file.parent.iterdir()] == ["fb15k-237n-satkgc.json"]


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
