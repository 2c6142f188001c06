"""Which column of a table holds what: by name, by position, or guessed from the usual names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from satkgc.errors import SatkgcError

# The usual names of each role, in lower case, the best first.
USUAL = {
    "head": ("head", "subject", "source", "from", "head_id", "subject_id", "h", "s"),
    "relation": ("relation", "predicate", "property", "rel", "relation_id", "predicate_id", "r", "p"),
    "tail": ("tail", "object", "target", "to", "tail_id", "object_id", "t", "o"),
    "split": ("split",),
    "id": ("id", "entity", "relation", "entity_id", "relation_id", "iri", "uri", "qid"),
    "name": ("name", "label", "title"),
    "description": ("description", "definition", "text", "gloss", "comment", "abstract"),
}

# What the cells of a split column may say.
SPLIT_VALUES = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
}

Columns = dict[str, int | None]


def is_header(row: Sequence[str], given: Mapping[str, str | None]) -> bool:
    """Whether a first row names columns: it has one that was given, or usual names for two of the roles."""
    if any(name in row for name in given.values()):
        return True
    return sum(_usual(role, row) is not None for role in given) >= min(2, len(row))


def locate(
    names: Sequence[str], given: Mapping[str, str | None], required: Sequence[str], shown: str, header: bool
) -> Columns:
    """The column of every role in `given`: the one given there by name or position, else one with a usual name.

    Where neither finds the required ones and nothing else was given, they are the first columns: all of a table of
    triples, or the ids of a listing.
    """
    found: Columns = {}
    for role, name in given.items():
        found[role] = (_usual(role, names) if header else None) if name is None else _named(name, role, names, shown)
    missing = [role for role in required if found[role] is None]
    if not missing:
        return found
    if len(missing) == len(required) and len(names) >= len(required) and (len(required) == 1 or len(names) == 3):
        return {role: place if place < len(names) else None for place, role in enumerate(given)}
    raise SatkgcError(
        f"which column is the {missing[0]}?",
        where=shown,
        remedy=f"name it (--{missing[0]} NAME); it has {listed(names)}",
    )


def listed(names: Sequence[str]) -> str:
    """The names for a message, not too many of them."""
    shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:40]}…") for name in names[:12])
    return f"the columns {shown}{' …' if len(names) > 12 else ''}"


def _named(name: str, role: str, names: Sequence[str], shown: str) -> int:
    if name in names:
        return names.index(name)
    if name.isascii() and name.isdigit() and int(name) < len(names):
        return int(name)
    raise SatkgcError(f"there is no column {name!r} for the {role}", where=shown, remedy=f"it has {listed(names)}")


def _usual(role: str, names: Sequence[str]) -> int | None:
    lower = [name.strip().lower() for name in names]
    return next((lower.index(usual) for usual in USUAL[role] if usual in lower), None)
