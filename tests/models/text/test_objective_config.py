"""Nonsense is refused by naming the setting."""

from __future__ import annotations

import pytest

from satkgc.errors import SatkgcError
from satkgc.models.text import ObjectiveConfig


@pytest.mark.parametrize(
    ("setting", "value"), [("temperature", 0.0), ("temperature", float("nan")), ("margin", -0.1), ("beta", 100.0)]
)
def test_nonsense_is_refused(setting, value):
    with pytest.raises(SatkgcError, match=f"objective.{setting}"):
        ObjectiveConfig(**{setting: value})
