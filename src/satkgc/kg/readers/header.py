"""Which column of a table is what: by the names or positions in `ReadOptions`, else by the usual names.

Names are compared without case and without regard to how words are joined: `startId`, `Start ID` and `start_id` are
one. What the names do not tell is asked for, with the flags that answer.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from satkgc.errors import SatkgcError

log = logging.getLogger("satkgc.kg")

Choices = Mapping[str, str | None]  # a column by name or position, for each role

# The two ends of an edge. Those of Neo4j and its APOC exports come first, for an edge may have properties called source
# or to; of the others, two pairs in one table cannot be told apart.
NEO4J_ENDS = ((":START_ID", ":END_ID"), ("_start", "_end"))
ENDS = (
    ("head", "tail"), ("subject", "object"), ("source", "target"), ("from", "to"), ("start", "end"),
    ("head_id", "tail_id"), ("subject_id", "object_id"), ("source_id", "target_id"), ("from_id", "to_id"),
    ("start_id", "end_id"), ("start_node", "end_node"), ("source_node", "target_node"), ("from_node", "to_node"),
    ("start_node_id", "end_node_id"), ("head_entity", "tail_entity"), ("src", "dst"), ("src", "dest"),
    ("subj", "obj"), ("node1", "node2"), ("node_1", "node_2"), ("entity1", "entity2"), ("entity_1", "entity_2"),
    ("h", "t"), ("s", "o"),
)  # fmt: skip

# The usual names of the other roles, the best first.
USUAL = {
    "relation": (
        ":TYPE", "_type", "relation", "predicate", "property", "relationship", "rel", "pred", "relation_id",
        "predicate_id", "relation_type", "relationship_type", "rel_type", "relation_name", "edge_type", "edge_label",
        "edge", "r", "p",
    ),
    "split": ("split",),
    "id": (":ID", "_id", "id", "entity", "relation", "entity_id", "relation_id", "node_id", "iri", "uri", "qid"),
    "name": ("name", "label", "title", "pref_label", "rdfs_label"),
    "description": ("description", "definition", "text", "gloss", "comment", "abstract", "summary"),
    "labels": (":LABEL", "_labels"),
}  # fmt: skip
EDGE_NAMES = ("type", "label")  # of relations, beside two ends
KINDS = ("type", "types", "kind", "class", "category", "entity_type", "node_type")  # of entities, as people call them

# One of these in a first row is enough: no entity is called so. `:LABEL` and `_labels` hold a node's kinds, no name.
SURE = (":START_ID", ":END_ID", ":TYPE", ":ID", ":LABEL", "_labels")
_NEO4J = re.compile(r"[^:]*(:START_ID|:END_ID|:TYPE|:ID|:LABEL)(\(.*\))?(\{.*\})?")  # `objectId:ID(Object)`
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER, _IRI = r"^-?[0-9]+$", "^https?://"


def names_columns(row: Sequence[str], choices: Choices) -> bool:
    """Whether a first row has a column that was chosen by name, one of Neo4j's, or usual ones.

    Usual are both ends of an edge, or one and a relation; `bill_id, committee_id` of keys alone; in a table of three
    columns "relation" in the middle, in one of entities a name or description after the first column.
    """
    positions = _positions(row, choices)
    if any(name in row for name in choices.values() if name not in positions):
        return True
    plain = [plain_name(name) for name in row]
    if any(name in SURE for name in plain):
        return True
    if "head" not in choices:
        return len(row) > 1 and any(_usual(role, row[1:]) is not None for role in ("name", "description"))
    if len(row) == 3 and plain[1] in ("relation", "predicate"):
        return True
    if len(row) == 2 and all(name.endswith("_id") for name in plain):
        return True
    roles = [any(pair[side] in plain for pair in (*NEO4J_ENDS, *ENDS)) for side in (0, 1)]
    roles.append(any(name in (*USUAL["relation"], *EDGE_NAMES) for name in plain))
    return sum(roles) >= 2


def looks_like_header(first: Sequence[str], batches: Iterable[Sequence[pa.Array]]) -> bool | None:
    """Whether a first row without usual names is a header; `batches` has the other rows. None: it cannot be told.

    It is one if a column has numbers alone, or IRIs, and no such thing in the first row. It is none if something in it
    comes again: its relation, or one of its entities as either end.
    """
    alike = {(i, p) for i, cell in enumerate(first) for p in (_NUMBER, _IRI) if not re.match(p, cell)}
    again, rows = False, 0
    for columns in batches:
        rows += len(columns[0])
        alike = {(i, p) for i, p in alike if pc.all(pc.match_substring_regex(columns[i], p), min_count=0).as_py()}
        ends = (columns[0], columns[-1])
        again = again or any(_has(column, cell) for cell in (first[0], first[-1]) for column in ends)
        again = again or any(_has(column, cell) for cell, column in zip(first[1:-1], columns[1:-1], strict=True))
        if again and not alike and rows >= 3:
            return False
    if not rows:
        return False  # one row alone; a header would have nothing below it
    if rows >= 3 and alike:
        return True
    return False if again else None


def _has(column: pa.Array, cell: str) -> bool:
    return pc.index(column, pa.scalar(cell, column.type)).as_py() >= 0


def locate(names: Sequence[str], choices: Choices, required: Sequence[str], shown: str, header: bool) -> dict[str, int]:
    """The columns by role: those chosen by name or position, else those with a usual name; roles without one lack.

    Without a header, three columns are head, relation, tail, and two the ends. The id of a listing is its first free
    column; a listing of which nothing is known has its other columns in order, too.
    """
    positions = _positions(names, choices)
    chosen = {role: _named(name, role, names, shown, positions) for role, name in choices.items() if name is not None}
    places = dict(chosen)
    if header:
        places |= {role: at for role in choices if role not in places and (at := _usual(role, names)) is not None}
        if "head" in choices:
            places |= _ends(names, chosen, shown)
            if "relation" in choices and "relation" not in places and {"head", "tail"} <= places.keys():
                places |= _edge_name(names, places, shown)
            _tell_groups(places, names, shown)
    places = {role: places[role] for role in choices if role in places}
    missing = [role for role in required if role not in places]
    if not missing:
        return places
    free = [place for place in range(len(names)) if place not in places.values()]
    listing = len(required) == 1
    untitled = not header or all(_is_number(name.strip() or "0") for name in names)
    in_order = len(free) == len(names) == len(required) and (untitled or len(required) == 2)
    if len(missing) == len(required) and (free if listing else in_order):
        by_position = dict(zip(missing if places else choices if listing else required, free, strict=False))
        _tell_positions(by_position, names, shown, header)
        places |= by_position
        return {role: places[role] for role in choices if role in places}
    raise _which_columns(names, missing, free, shown, header)


def relation_place(names: Sequence[str], choices: Choices, shown: str) -> int | None:
    """The column of relations that `locate` would find if no choice were made for the relation, if there is one."""
    positions = _positions(names, choices)
    chosen = {role: _named(name, role, names, shown, positions) for role, name in choices.items() if name is not None}
    if len(names) == 3 and not chosen and all(_is_number(name) for name in names):
        return 1
    ends = chosen | _ends(names, chosen, shown)
    usual = _usual("relation", names)
    if usual is not None and usual not in ends.values():
        return usual
    titles = [at for at, name in enumerate(names) if plain_name(name) in EDGE_NAMES and at not in ends.values()]
    return titles[0] if {"head", "tail"} <= ends.keys() and len(titles) == 1 else None


def _which_columns(
    names: Sequence[str], missing: Sequence[str], free: Sequence[int], shown: str, header: bool
) -> SatkgcError:
    """Ask for the columns that are missing, with the flags to answer; where their number fits, filled in."""
    if len(names) == 2 and "relation" in missing:
        remedy = "say what every row means: --relation-name NAME"
        return SatkgcError("two columns leave none for the relation", where=shown, remedy=remedy)
    them = "which column is the " + " and which the ".join(missing) + "?"
    if len(missing) == len(free):
        columns = [names[place] if header else place for place in free]
        flags = column_flags(dict(zip(missing, columns, strict=True)))
        return SatkgcError(them, where=shown, remedy=f"if they stand in this order: {flags}")
    flags = " ".join(f"--{role} COLUMN" for role in missing)
    either = " (or, for all rows, --relation-name NAME)" if "relation" in missing else ""
    how = "by its name, or by its position from 0 if the first row is data"  # as a name it would be lost
    return SatkgcError(
        them, where=shown, remedy=f"name it: {flags}{either}, {how}; it has the columns {_list_columns(names)}"
    )


def column_flags(columns: Mapping[str, object]) -> str:
    """The flags of the command line that choose these columns."""
    return " ".join(f"--{role} {_quoted(_cut(str(name)))}" for role, name in columns.items())


def _quoted(name: str) -> str:
    return shlex.quote(name) if name.isprintable() else f"${name!r}"  # as shells write a line break, in one line


def _ends(names: Sequence[str], chosen: Mapping[str, int], shown: str) -> dict[str, int]:
    """The columns of heads and tails: a pair of usual names, or one of each where there is no pair."""
    plain = [plain_name(name) for name in names]
    sides = [role for role in ("head", "tail") if role not in chosen]
    if len(sides) == 2:
        for pairs in (NEO4J_ENDS, ENDS):
            there = [pair for pair in pairs if set(pair) <= set(plain)]
            if len(there) > 1:
                options = " or ".join(
                    column_flags({"head": names[plain.index(head)], "tail": names[plain.index(tail)]})
                    for head, tail in there
                )
                raise SatkgcError("which columns are head and tail?", where=shown, remedy=f"choose {options}")
            if there:
                return {"head": plain.index(there[0][0]), "tail": plain.index(there[0][1])}
    ends: dict[str, int] = {}
    for role in sides:
        side = 0 if role == "head" else 1
        usual = dict.fromkeys(pair[side] for pair in (*NEO4J_ENDS, *ENDS))
        free = [at for name in usual if name in plain and (at := plain.index(name)) not in chosen.values()]
        if len(free) == 1:
            ends[role] = free[0]
    return ends


def _edge_name(names: Sequence[str], places: Mapping[str, int], shown: str) -> dict[str, int]:
    """The column of relations that is called `type` or `label`, which says nothing without two ends."""
    plain = [plain_name(name) for name in names]
    there = [at for name in EDGE_NAMES if name in plain and (at := plain.index(name)) not in places.values()]
    if len(there) > 1:  # Gephi has both, and says "Directed" as the type
        options = " or ".join(column_flags({"relation": names[at]}) for at in there)
        raise SatkgcError("which column is the relation?", where=shown, remedy=f"choose {options}")
    return {"relation": there[0]} if there else {}


def _list_columns(names: Sequence[str]) -> str:
    """The names for a message, not too many of them."""
    shown = ", ".join(repr(_cut(name)) for name in names[:12])
    return f"{shown}{' …' if len(names) > 12 else ''}"


def _tell_positions(places: Mapping[str, int], names: Sequence[str], shown: str, header: bool) -> None:
    """Say which columns were taken without being chosen."""
    taken = ", ".join(f"{_cut(names[place])!r} as {role}" for role, place in places.items())
    log.warning("%s: columns taken by position: %s%s", shown, taken, "" if header else "; its first row counts as data")


def tell_unread(names: Sequence[str], places: Mapping[str, int], shown: str) -> None:
    """Say which columns of a table of entities or relations are not read, and what they would be of use for."""
    unread = [name for place, name in enumerate(names) if place not in places.values()]
    if not unread:
        return
    notes = [f"columns not read: {_list_columns(unread)}"]
    if "name" not in places:
        notes.insert(0, "no column of names is known, so that ids are the names; --label COLUMN names it")
    if any(plain_name(name) in KINDS for name in unread):
        notes.append("types are stated in a table of triples, with the relation rdf:type")
    log.warning("%s: %s", shown, "; ".join(notes))


def _tell_groups(places: Mapping[str, int], names: Sequence[str], shown: str) -> None:
    """Say where Neo4j's ids are of two groups: one that both have would be two nodes there, and is one entity here."""
    ends = [places.get(role) for role in ("head", "tail")]
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
    raise SatkgcError(
        f"there is no column {name!r} for the {role}", where=shown, remedy=f"it has the columns {_list_columns(names)}"
    )


def _positions(row: Sequence[str], choices: Choices) -> list[str]:
    """The numbers given for columns, which are positions; unless all of them stand in the first row, as its names."""
    numbers = [name for name in choices.values() if name is not None and _is_number(name)]
    return [] if all(number in row for number in numbers) else numbers


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _usual(role: str, names: Sequence[str]) -> int | None:
    plain = [plain_name(name) for name in names]
    return next((plain.index(usual) for usual in USUAL.get(role, ()) if usual in plain), None)


def plain_name(name: str) -> str:
    """A column's name as USUAL has it: small words joined by _, or what Neo4j says of it without its group."""
    name = name.strip()
    if match := _NEO4J.fullmatch(name.upper() if name.startswith(":") else name):
        return match[1]
    words = _CAMEL.sub("_", name).lower().removesuffix(":string")
    return re.sub(r"[\s\-]+", "_", words)
