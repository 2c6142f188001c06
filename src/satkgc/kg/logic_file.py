"""What relations mean, as TOML: one table for each relation that means something, to be edited by a person."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.logic import PROPERTIES, RelationLogic

LISTS = ("implies", "domain", "range")
ALL = (*PROPERTIES, "inverse", *LISTS)


def describe_logic(kg: KnowledgeGraph, logic: Iterable[RelationLogic]) -> list[dict[str, Any]]:
    """Each property of each relation, with the other relations or types that it speaks of, and by what it is known."""
    return [
        {"id": kg.relations.id(r), "property": name, "others": _others(kg, one, name), "by": by}
        for r, one in enumerate(logic)
        for name, by in one.why.items()
    ]


def _others(kg: KnowledgeGraph, logic: RelationLogic, name: str) -> list[str]:
    if name == "inverse":
        return [] if logic.inverse is None else [kg.relations.id(logic.inverse)]
    vocabulary = kg.relations if name == "implies" else kg.entities
    return [vocabulary.id(i) for i in getattr(logic, name)] if name in LISTS else []


END = "# the end"  # what is cut short lacks it


def write_logic(kg: KnowledgeGraph, logic: Iterable[RelationLogic], file: Path) -> None:
    """Write the properties as TOML, one table for each relation that has any, to be edited."""
    lines = [
        "# What relations mean. Change what is wrong. As relations.toml in a run folder it is what its answers go by.\n"
    ]
    for r, one in enumerate(logic):
        if one.plain:
            continue
        lines.append(f"\n[[relation]]\nid = {_text(kg.relations.id(r))}\n")
        for name in ALL:
            if getattr(one, name) not in (False, None, ()):
                others = [_text(id) for id in _others(kg, one, name)]
                value = "true" if name in PROPERTIES else others[0] if name == "inverse" else f"[{', '.join(others)}]"
                lines.append(f"{name} = {value}  # {one.why.get(name, '')}\n")
    with atomic_write(file) as part:
        part.write_text("".join(lines) + f"\n{END}\n", encoding="utf-8")


def _text(id: str) -> str:
    return json.dumps(id, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_logic(kg: KnowledgeGraph, file: Path, *, whole: bool = False) -> list[RelationLogic]:
    """What `write_logic` wrote, after somebody edited it; relations that are not in it have no properties. Where it
    must be `whole`, a file that was cut short is not taken for an edited one."""
    try:
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text).get("relation", [])
    except OSError as error:
        raise SatkgcError(f"cannot be read ({error.strerror})", where=file, remedy="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SatkgcError(f"not TOML: {error}", where=file, remedy="correct it there") from None
    if whole and END not in text:
        remedy = f"restore it, or write {END!r} as its last line, or remove it: it is found anew then"
        raise SatkgcError("this file was cut short", where=file, remedy=remedy)
    logic = [RelationLogic() for _ in range(kg.num_relations)]
    try:
        for table in tables:
            relation = kg.relations.index(table.pop("id"))
            inverse = table.pop("inverse", None)
            implies, domain, types = (table.pop(name, []) for name in LISTS)
            unknown = table.keys() - set(PROPERTIES)
            if unknown or not all(isinstance(value, bool) for value in table.values()):
                raise SatkgcError(f"{min(unknown or table)} is no property", remedy=f"known: {', '.join(ALL)}")
            logic[relation] = RelationLogic(
                **table,
                inverse=None if inverse is None else kg.relations.index(inverse),
                implies=tuple(map(kg.relations.index, implies)),
                domain=tuple(map(kg.entities.index, domain)),
                range=tuple(map(kg.entities.index, types)),
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise SatkgcError(f"not what `satkgc kg inspect --logic` writes ({error})", where=file) from None
    except SatkgcError as error:
        raise SatkgcError(error.what, where=file, remedy=error.remedy) from None
    return logic
