"""The documentation names every setting of training with its default, and every recipe."""

from __future__ import annotations

from pathlib import Path

from satkgc.training import TrainingConfig, recipe_names
from satkgc.training.config import EXECUTION

TEXT = (Path(__file__).parents[2] / "docs" / "training.md").read_text()


def test_every_setting_has_a_row_with_its_default():
    for name, value in TrainingConfig().model_dump().items():
        assert f"| `training.{name}` | {'none' if value is None else value} |" in TEXT, name
    assert TEXT.count("| `training.") == len(TrainingConfig().model_dump())


def test_every_recipe_is_named():
    for name in recipe_names():
        assert f"`{name}`" in TEXT, name


def test_every_setting_that_may_change_is_named():
    for name in EXECUTION:
        assert f"`{name}`" in TEXT or f"`.{name.rsplit('.', 1)[1]}`" in TEXT, name
