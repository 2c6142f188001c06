"""Backbones of several families."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny import FAMILIES, save_tiny


@pytest.fixture(scope="session")
def families(tiny_backbone, tmp_path_factory) -> dict[str, Path]:  # type: ignore[no-untyped-def]
    """Folders of a random model of each family."""
    root = tmp_path_factory.mktemp("families")
    return {family: save_tiny(family, tiny_backbone, root / family) for family in FAMILIES}
