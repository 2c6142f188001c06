"""Fixtures of this folder's tests: a run over the little world, prepared once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from little_world import little_world, write_run
from satkgc.completion import Completer


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, tiny_backbone) -> Path:
    """A run folder with its index: read it, or copy it to change it."""
    run = write_run(tmp_path_factory.mktemp("runs") / "tiny", little_world(), tiny_backbone)
    Completer.load(run)
    return run


@pytest.fixture(scope="session")
def completer(prepared) -> Completer:
    """The run opened; tests add nothing to it."""
    return Completer.load(prepared)


@pytest.fixture
def run_copy(prepared, tmp_path) -> Path:
    """A run folder that may be changed."""
    shutil.copytree(prepared, tmp_path / "run")
    return tmp_path / "run"
