"""Which column of a table holds what: by name, by position, or guessed from the usual names."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from satkgc.errors import SatkgcError

log = logging.getLogger("satkgc.kg")

# The usual names of each role, in lower case, the best first. Those of Neo4j and its APOC exports stand before all
# others, for an edge may have properties called source or to, and a node one called id.
USUAL = {
    "head": (":START_ID", "_start", "head", "subject", "source", "from", "head_id", "subject_id", "h", "s"),
    "relation": (":TYPE", "_type", "relation", "predicate", "property", "rel", "relation_id", "predicate_id", "r", "p"),
    "tail": (":END_ID", "_end", "tail", "object", "target", "to", "tail_id", "object_id", "t", "o"),
    "split": ("split",),
    "id": (":ID", "_id", "id", "entity", "relation", "entity_id", "relation_id", "iri", "uri", "qid"),
    "name": ("name", "label", "title"),
    "description": ("description", "definition", "text", "gloss", "comment", "abstract"),
}

# One of these in a first row is enough: no entity is called so. `:LABEL` and `_labels` hold a node's kinds, no name.
SURE = (":START_ID", ":END_ID", ":TYPE", ":ID", ":LABEL", "_labels")
_NEO4J = re.compile(r"[^:]*(:START_ID|:END_ID|:TYPE|:ID|:LABEL)(\(.*\))?(\{.*\})?")  # `objectId:ID(Object)`

# What the cells of a split column may say.
SPLIT_VALUES = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing"),
}

Columns = dict[str, int | None]


def is_header(row: Sequence[str], given: Mapping[str, str | None]) -> bool:
    """Whether a first row names columns: it has one that was given, one of Neo4j's, or usual ones for two roles.

    Where triples have "relation" in the middle, that alone is enough: no relation is called so.
    """
    positions = _positions(row, given)
    if any(name in row for name in given.values() if name not in positions):
        return True
    if any(_plain(name) in SURE for name in row):
        return True
    if "head" in given and len(row) == 3 and _plain(row[1]) in ("relation", "predicate"):
        return True
    return sum(_usual(role, row) is not None for role in given) >= min(2, len(row))


def locate(
    names: Sequence[str], given: Mapping[str, str | None], required: Sequence[str], shown: str, header: bool
) -> Columns:
    """The column of every role in `given`: the one given there by name or position, else one with a usual name.

    Where neither finds the required ones, those of a table of three columns are its columns in order, and the id of a
    listing is its first free column. A listing of which nothing is known has its other columns in order, too.
    """
    found: Columns = {}
    positions = _positions(names, given)
    for role, name in given.items():
        if name is None:
            found[role] = _usual(role, names) if header else None
        else:
            found[role] = _named(name, role, names, shown, positions)
    _tell_groups(found, names, shown)
    missing = [role for role in required if found[role] is None]
    if not missing:
        return found
    taken = [place for place in found.values() if place is not None]
    free = [place for place in range(len(names)) if place not in taken]
    if len(missing) == len(required) and (free if len(required) == 1 else len(free) == len(names) == 3):
        by_position = dict(zip(missing if taken else given, free, strict=False))
        _tell(by_position, names, shown, header)
        return found | by_position
    raise SatkgcError(
        f"which column is the {missing[0]}?",
        where=shown,
        remedy=f"name it (--{missing[0]} NAME); it has {listed(names)}",
    )


def listed(names: Sequence[str]) -> str:
    """The names for a message, not too many of them."""
    shown = ", ".join(repr(_cut(name)) for name in names[:12])
    return f"the columns {shown}{' …' if len(names) > 12 else ''}"


def _tell(places: Mapping[str, int], names: Sequence[str], shown: str, header: bool) -> None:
    """Say which columns were taken unasked."""
    taken = ", ".join(f"{_cut(names[place])!r} as {role}" for role, place in places.items())
    log.warning("%s: columns taken by position: %s%s", shown, taken, "" if header else "; its first row counts as data")


def _tell_groups(found: Columns, names: Sequence[str], shown: str) -> None:
    """Say where Neo4j's ids are of two groups: one that both have would be two nodes there, and is one entity here."""
    ends = [found.get(role) for role in ("head", "tail")]
    groups = [match[2] for place in ends if place is not None and (match := _NEO4J.fullmatch(names[place].strip()))]
    if len(set(groups)) > 1:
        log.warning("%s: ids of %s that are the same become one entity", shown, " and ".join(map(str, groups)))


def _cut(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:40]}…"


def _named(name: str, role: str, names: Sequence[str], shown: str, positions: Sequence[str]) -> int:
    if name in names and name not in positions:
        return names.index(name)
    if _is_number(name) and int(name) < len(names):
        return int(name)
    raise SatkgcError(f"there is no column {name!r} for the {role}", where=shown, remedy=f"it has {listed(names)}")


def _positions(row: Sequence[str], given: Mapping[str, str | None]) -> list[str]:
    """The numbers given for columns, which are positions; unless all of them stand in the first row, as its names."""
    numbers = [name for name in given.values() if name is not None and _is_number(name)]
    return [] if all(number in row for number in numbers) else numbers


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _usual(role: str, names: Sequence[str]) -> int | None:
    plain = [_plain(name) for name in names]
    return next((plain.index(usual) for usual in USUAL[role] if usual in plain), None)


def _plain(name: str) -> str:
    """A column's name as USUAL has it: in lower case, or what Neo4j says of it, without its property and group."""
    if found := _NEO4J.fullmatch(name.strip()):
        return found[1]
    return name.strip().lower().removesuffix(":string")
