"""The log survives a kill, is cut back on resuming, and notices what is no number."""

from __future__ import annotations

import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.training.log import Log, draw_curves, read_log


def numbers(loss, norm, **metrics):
    values = {"loss": loss, **metrics, "gradient_norm": norm}
    return {name: torch.tensor(float(value)) for name, value in values.items()}


def test_a_record_is_the_mean_since_the_last(tmp_path):
    log = Log(tmp_path / "log.jsonl", 0)
    assert log.write(8, 0.0, {}) is None
    for step in (1, 2, 3):
        log.add(step, numbers(step, 10 - step, temperature=step / 2, beta=-step))
    record = log.write(8, 0.0, {"lr": 0.1})
    assert (record["step"], record["loss"], record["gradient_norm"], record["lr"]) == (3, 2, 9, 0.1)
    assert record["triples_per_second"] > 0
    assert record["metrics"] == {"temperature": 1.5, "beta": -3}  # a model's own are those of the last step
    assert read_log(tmp_path / "log.jsonl") == [record]
    assert log.write(8, 0.0, {}) is None


def test_resuming_cuts_it_back_and_half_a_line_is_dropped(tmp_path):
    file = tmp_path / "log.jsonl"
    log = Log(file, 0)
    for step in (1, 2, 3, 4):
        log.note({"step": step})
    with file.open("a") as stream:
        stream.write('{"step": 5, "lo')  # killed here
    assert [r["step"] for r in read_log(file)] == [1, 2, 3, 4]
    Log(file, 2).note({"step": 3, "again": True})
    assert read_log(file) == [{"step": 1}, {"step": 2}, {"step": 3, "again": True}]


@pytest.mark.parametrize(("loss", "norm"), [("nan", 1), ("inf", 1), (1, "nan")])
def test_what_is_no_number_is_named_by_its_step(tmp_path, loss, norm):
    log = Log(tmp_path / "log.jsonl", 0)
    log.add(6, numbers(1, 1))
    log.add(7, numbers(loss, norm))
    log.add(8, numbers("nan", 1))
    with pytest.raises(SatkgcError, match="the loss of step 7 is"):
        log.write(8, 0.0, {})
    assert read_log(tmp_path / "log.jsonl") == []


def test_other_ranks_write_nothing(tmp_path):
    log = Log(None, 0)
    log.add(1, numbers(1, 1))
    assert log.write(8, 0.0, {})["loss"] == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("validated", [True, False])
def test_curves_are_drawn_of_what_there_is(tmp_path, validated):
    log = [{"step": step, "loss": 1 / step, "metrics": {}} for step in (1, 2, 3)]
    if validated:
        log.append({"step": 3, "validation": {"both": {"mrr": 0.5, "hits@1": 0.4, "hits@10": 0.6}}})
    draw_curves(log, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
