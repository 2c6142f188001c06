"""What a person, or a language model, is told about input that does not fit its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from satkgc.serving.schemas import NEW, TEXT

_MESSAGES = {  # instead of pydantic's own, which speak of its internals or do not say what to do
    "missing": "it is missing; add it",
    "extra_forbidden": "there is no such field; remove it",
    "string_type": "give it as text",
    "string_too_short": "it is empty; give at least one character",
    "string_pattern_mismatch": "it is blank; give a name",
    "dict_type": "give an object",
    "model_type": "give an object",
    "model_attributes_type": "give an object",
}


def field_path(location: tuple[int | str, ...]) -> str:
    """Where a value stands, in dots: without which of the two forms of an entity was tried."""
    return ".".join(str(part) for part in location if part not in (TEXT, NEW))


def invalid_value(where: str, error: Mapping[str, Any]) -> str:
    """One of pydantic's errors as a line, with the place of the value."""
    return f"{where}: {_MESSAGES.get(error['type']) or error['msg'].removeprefix('Value error, ')}"
