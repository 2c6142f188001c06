"""Pairs that a person accepted: as owl:sameAs, as a map from duplicates to what is kept, or merged in a graph."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from satkgc.completion.duplicates.table import DEGREES, PAIR
from satkgc.completion.proposals import ACCEPT, iri
from satkgc.completion.reviewed_table import cell, check_table, number, reviewed_records
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_new
from satkgc.kg import NOT_TSV, KnowledgeGraph, expand, is_graph_folder, merge_entities, tsv_id_error

ENDINGS = (".nt", ".tsv")


@dataclass(frozen=True)
class AcceptedPair:
    """Ids of two entities that are one, the one to keep first, and how many neighbours each has."""

    entity: str
    duplicate: str
    degrees: tuple[float, float] = (0, 0)


def is_duplicates_file(file: Path) -> bool:
    """Whether a table is one of `satkgc duplicates`, by its header."""
    if file.suffix not in (".tsv", ".csv") or not file.is_file():
        return False
    with file.open("rb") as lines:
        header = lines.readline(1 << 16).decode("utf-8-sig", "replace")
    return set(PAIR) <= set(re.split(r"[,;\t|]", header.strip().replace('"', "")))


def accepted_pairs(reviewed: Path, column: str = ACCEPT) -> tuple[list[AcceptedPair], int]:
    """The pairs that a reviewed table says yes to, and how many it has."""
    check_table(reviewed)
    pairs, total = [], 0
    for record, yes, where in reviewed_records(reviewed, PAIR, column, "duplicates"):
        total += 1
        entity, duplicate = (cell(record, name) for name in PAIR)
        if not (entity.strip() and duplicate.strip()) or entity == duplicate:
            raise SatkgcError("not a pair of two entities", where=where, remedy="give it two ids, or remove the row")
        if yes:
            first, second = (number(record, name, where) or 0 for name in DEGREES)
            pairs.append(AcceptedPair(entity, duplicate, (first, second)))
    if not pairs:
        remedy = "write yes where two entities are one, and save it"
        raise SatkgcError(f"no row says yes in column {column!r}", where=reviewed, remedy=remedy)
    return pairs, total


def merge_map(pairs: Sequence[AcceptedPair]) -> dict[str, str]:
    """From each duplicate to the entity that is kept of its group: all that pairs join, directly or not.

    Kept is, of those that no pair has as a duplicate, or else of all, the one with most neighbours, then the first.
    """
    group: dict[str, list[str]] = {}
    degree: dict[str, float] = {}
    for pair in pairs:
        for id, count in zip((pair.entity, pair.duplicate), pair.degrees, strict=True):
            group.setdefault(id, [id])
            degree[id] = max(count, degree.get(id, 0))
        one, other = group[pair.entity], group[pair.duplicate]
        if one is not other:
            one, other = (one, other) if len(one) >= len(other) else (other, one)
            one += other
            group.update(dict.fromkeys(other, one))
    duplicates = {pair.duplicate for pair in pairs}
    place = {id: i for i, id in enumerate(group)}
    kept = {
        members[0]: min(members, key=lambda id: (id in duplicates, -degree[id], place[id]))
        for members in group.values()
    }
    return {id: kept[members[0]] for id, members in group.items() if id != kept[members[0]]}


def accept_duplicates(reviewed: str | Path, out: str | Path, column: str = ACCEPT) -> tuple[int, int]:
    """Write what was accepted: how many pairs those are, and of how many.

    `.nt`: a statement owl:sameAs for each pair. `.tsv`: a line for each entity that goes, its id and that of the
    entity which is kept.
    """
    reviewed, out = Path(reviewed), Path(out)
    if out.suffix not in ENDINGS:
        what = f"cannot tell the form of {out.name!r}"
        raise SatkgcError(what, remedy="end its name in .nt (sameAs) or .tsv (a map)")
    check_new(out)
    pairs, total = accepted_pairs(reviewed, column)
    same = expand("owl:sameAs")
    with atomic_write(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        if out.suffix == ".nt":
            ends = ((iri("entity", pair.duplicate), iri("entity", pair.entity)) for pair in pairs)
            file.writelines(f"<{one}> <{same}> <{other}> .\n" for one, other in ends)
        else:
            rows = merge_map(pairs).items()
            for id in (id for row in rows for id in row if re.search(NOT_TSV, id)):
                raise tsv_id_error("entity", id, out, "write .nt")
            csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None).writerows(
                rows
            )
    return len(pairs), total


def merge_duplicates(reviewed: str | Path, graph: str | Path, column: str = ACCEPT) -> tuple[int, KnowledgeGraph]:
    """Merge what was accepted in a graph, which is replaced in one step: how many entities went, and the graph.

    Pairs of which the graph has not both are left out, so that a table can be applied twice.
    """
    pairs, _ = accepted_pairs(Path(reviewed), column)
    graph = Path(graph)
    if (graph.parent / "config.json").exists():
        raise SatkgcError("this is the graph of a run, whose model knows no other", where=graph, remedy="name another")
    if not is_graph_folder(graph):
        raise SatkgcError("no graph here", where=graph, remedy="give one that `satkgc kg import` wrote")
    kg = KnowledgeGraph.load(graph)
    find = kg.entities.find
    known = [pair for pair in pairs if find(pair.entity) is not None and find(pair.duplicate) is not None]
    into = {kg.entities.index(id): kg.entities.index(kept) for id, kept in merge_map(known).items()}
    return len(into), merge_entities(kg, into).save(graph, overwrite=True) if into else kg
