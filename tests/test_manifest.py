"""Sums of a folder's files: what a manifest must say, and when a large folder is not read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from satkgc import manifest
from satkgc.manifest import MANIFEST, Damaged, Stamp, check_folder, read_manifest, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, one of them below, and their manifest."""
    (tmp_path / "f" / "below").mkdir(parents=True)
    (tmp_path / "f" / "a").write_text("a")
    (tmp_path / "f" / "below" / "b").write_text("b")
    write_manifest(tmp_path / "f")
    return tmp_path / "f"


@pytest.mark.parametrize("sums", [{}, [], None, "", {"a": None, "below/b": None}, {"a": 1, "below/b": "x"}])
def test_a_manifest_without_sums_is_none(folder: Path, sums: object) -> None:
    """Also of a folder in which there is nothing else, so that no file is missed in it."""
    (folder / MANIFEST).write_text(json.dumps({"format": 1, "sha256": sums}))
    for gone in ([], ["a", "below/b"]):
        for name in gone:
            (folder / name).unlink()
        with pytest.raises(Damaged, match=r"incomplete: no manifest\.json that can be read"):
            read_manifest(folder)


@pytest.mark.parametrize("name", ["a", "below/b"])
def test_what_a_manifest_lists_must_be_there_as_it_was_and_nothing_else(folder: Path, name: str) -> None:
    assert sorted(check_folder(folder)) == ["a", "below/b"]
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(b"x")
    with pytest.raises(Damaged, match=f"{name} was altered or cut short"):
        check_folder(folder)
    (folder / name).unlink()
    with pytest.raises(Damaged, match=f"{name} was altered or cut short"):
        check_folder(folder)
    (folder / name).write_bytes(content)
    (folder / f"{name}2").write_bytes(content)
    with pytest.raises(Damaged, match=rf"{name}2 is not in its manifest\.json"):
        check_folder(folder)


def test_a_large_folder_that_was_changed_a_moment_ago_is_read_again(folder: Path, monkeypatch, tmp_path: Path) -> None:
    """It may change once more within the same tick of the file system's clock, and nobody would see."""
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(manifest, "LARGE", 0)
    sums = check_folder(folder)
    assert not Stamp(folder, sums).holds()
    monkeypatch.setattr(manifest, "SETTLED", -1 << 62)
    check_folder(folder)
    assert Stamp(folder, sums).holds()
    assert not Stamp(folder, sums | {"a": "0"}).holds()
    monkeypatch.setattr(manifest, "LARGE", 1 << 20)
    assert not Stamp(folder, sums).holds()
    (folder / "a").write_text("b")
    with pytest.raises(Damaged):
        check_folder(folder)
