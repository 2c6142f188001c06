"""Checkpoints come back as they were written, or not at all."""

from __future__ import annotations

import json
import resource

import numpy as np
import pytest
import torch

from satkgc.errors import SatkgcError
from satkgc.manifest import Damaged
from satkgc.training.checkpoint import Checkpoints


def save(checkpoints, step, best=None, size=10):
    tensors = {"weights": {"a": torch.arange(size, dtype=torch.float32) + step, "b": torch.tensor(2.0)}}
    facts = {"step": step, "best": best and {"step": best, "mrr": 0.5}}
    return checkpoints.save(f"step-{step:08d}", tensors, {"visits": np.arange(3) * step}, facts)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_was_written_comes_back(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    tensors, arrays, facts = checkpoints.read(save(checkpoints, 7))
    assert tensors["weights"]["a"].tolist() == list(range(7, 17))
    assert tensors["weights"]["b"].item() == 2
    assert arrays["visits"].tolist() == [0, 7, 14]
    assert facts == {"step": 7, "best": None}


@pytest.mark.parametrize("file", ["weights.safetensors", "arrays.safetensors", "facts.json", "manifest.json"])
@pytest.mark.parametrize("harm", ["cut", "alter", "remove"])
def test_damage_to_any_file_is_noticed_and_the_one_before_is_used(tmp_path, file, harm):
    checkpoints = Checkpoints(tmp_path)
    before = save(checkpoints, 1)
    path = save(checkpoints, 2) / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    if harm == "remove":
        path.unlink()
    else:
        path.write_bytes(content if harm == "alter" else content[: len(content) // 2])
    said = []
    assert checkpoints.latest(said.append) == before
    assert len(said) == 1
    assert "step-00000002" in said[0]
    with pytest.raises(Damaged):
        checkpoints.read(path.parent)


def test_the_last_two_and_the_best_they_speak_of_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for best in (1, 3, 5, 7):
        checkpoints.save(f"best-{best:08d}", {}, {}, {})
    for step, best in ((2, 1), (4, 3), (6, 5), (8, 7)):
        save(checkpoints, step, best)
    (tmp_path / ".step-00000009.partial").mkdir()
    checkpoints.prune()
    assert names(tmp_path) == ["best-00000005", "best-00000007", "step-00000006", "step-00000008"]


def test_the_same_step_may_be_saved_again(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    save(checkpoints, 3, size=5)
    assert len(checkpoints.read(save(checkpoints, 3, size=6))[0]["weights"]["a"]) == 6


def test_a_full_disk_is_told_and_the_checkpoint_before_stays(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    before = save(checkpoints, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # the system refuses to write more, as a full disk
    try:
        with pytest.raises(SatkgcError, match=r"disk is full.*step-00000002 was not saved, step-00000001 is intact"):
            save(checkpoints, 2, size=10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["step-00000001"]
    checkpoints.verify(before)


def test_another_format_is_refused_by_name(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    manifest = save(checkpoints, 1) / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 0}))
    with pytest.raises(SatkgcError, match="step-00000001 has format 0, this version reads 1"):
        checkpoints.latest(print)


@pytest.mark.parametrize("sums", [{}, {"facts.json": None}, None, [], {"facts.json": "same"}])
def test_a_manifest_that_does_not_list_every_file_is_damage(tmp_path, sums):
    checkpoints = Checkpoints(tmp_path)
    path = save(checkpoints, 1)
    manifest = json.loads((path / "manifest.json").read_text())
    if sums and sums["facts.json"]:
        sums = {"facts.json": manifest["sha256"]["facts.json"]}
        (path / "weights.safetensors").unlink()
        (path / "arrays.safetensors").unlink()
    (path / "manifest.json").write_text(json.dumps(manifest | {"sha256": sums}))
    with pytest.raises(Damaged):
        checkpoints.read(path)
    assert checkpoints.latest(lambda line: None) is None


def test_a_file_that_the_manifest_does_not_know_is_damage(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    path = save(checkpoints, 1)
    (path / "more.safetensors").write_bytes((path / "weights.safetensors").read_bytes())
    with pytest.raises(Damaged, match=r"more\.safetensors is not in its manifest"):
        checkpoints.read(path)
