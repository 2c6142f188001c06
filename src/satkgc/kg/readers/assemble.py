"""From columns of text, whatever file they came from, to a graph of indices: all checks on content are here."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.adjacency import as_triples
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.inspect import warn_of_leaks
from satkgc.kg.kernels import drop_duplicates
from satkgc.kg.readers.columns import Listing, Triples, Where, blank, counted, refuse_empty, trimmed
from satkgc.kg.readers.listing import check_listing
from satkgc.kg.readers.options import ReadOptions, excluded_relations
from satkgc.kg.split import split_graph
from satkgc.kg.vocabulary import Vocabulary, name_from_id, names_from_ids

log = logging.getLogger("satkgc.kg")


def assemble(
    name: str,
    splits: Mapping[str, Triples],
    entities: Listing | None,
    relations: Listing | None,
    options: ReadOptions,
    held_out: Mapping[str, tuple[pa.ChunkedArray, Where]] | None = None,
) -> KnowledgeGraph:
    """Check everything, number entities and relations (as listed, else in order of appearance), drop duplicates."""
    if options.exclude:
        splits, relations = _exclude(splits, relations, options)
    for triples in splits.values():
        for column, what in ((triples.head, "head"), (triples.relation, "relation"), (triples.tail, "tail")):
            refuse_empty(column, f"the {what} of this triple", triples.where)
    entity_codes, entity_vocabulary = _number(
        "entity", {s: [t.head, t.tail] for s, t in splits.items()}, splits, entities, options
    )
    relation_codes, relation_vocabulary = _number(
        "relation", {s: [t.relation] for s, t in splits.items()}, splits, relations, options
    )
    arrays: dict[str, Int32] = {}
    for split in splits:
        (head, tail), (relation,) = entity_codes.pop(split), relation_codes.pop(split)
        arrays[split] = np.stack([head, relation, tail], axis=1)  # (T, 3)
    check_relations_trained(arrays, relation_vocabulary, {split: t.where for split, t in splits.items()})
    return finish(
        name,
        entity_vocabulary,
        relation_vocabulary,
        arrays,
        _held_out(held_out or {}, entity_vocabulary, arrays["train"]),
        options,
    )


def finish(
    name: str,
    entities: Vocabulary,
    relations: Vocabulary,
    splits: Mapping[str, Int32],
    held_out: Mapping[str, Int32],
    options: ReadOptions,
) -> KnowledgeGraph:
    """Drop duplicates within a split, make the graph, and split it where its source does not; else look for leaks."""
    triples: dict[str, Int32] = {}
    for split, rows in splits.items():
        triples[split] = drop_duplicates(rows, len(entities), len(relations))
        if dropped := len(rows) - len(triples[split]):
            log.warning("%s: %s dropped from %s", name, counted(dropped, "duplicate triple"), split)
    train, valid, test, inference = (as_triples(triples.get(split, [])) for split in SPLITS)
    graph = KnowledgeGraph(name, entities, relations, train, valid, test, inference, held_out)
    if len(graph.valid) or len(graph.test):
        warn_of_leaks(graph)
    return split_graph(graph, options.split, options.valid, options.test, options.seed)


def _exclude(
    splits: Mapping[str, Triples], listing: Listing | None, options: ReadOptions
) -> tuple[dict[str, Triples], Listing | None]:
    """The triples and the listing without the excluded relations; before any check, for they may fail it."""
    cells = [chunk.cast(pa.large_string()) for triples in splits.values() for chunk in triples.relation.chunks]
    counts = pc.value_counts(pa.chunked_array(cells, pa.large_string()).drop_null())
    shown = splits["train"].where(0).rpartition(":")[0]  # the file, without a line
    by_id = dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
    excluded = excluded_ids(by_id, listing, options, shown)
    result: dict[str, Triples] = {}
    for split, triples in splits.items():
        mask, where = _others(triples.relation, triples.where, excluded)
        head, relation, tail = (column.filter(mask) for column in (triples.head, triples.relation, triples.tail))
        result[split] = Triples(head, relation, tail, where)
    return result, listing and exclude_from_listing(listing, excluded)


def excluded_ids(counts: Mapping[str, int], listing: Listing | None, options: ReadOptions, shown: str) -> list[str]:
    """The ids of the relations to exclude; `counts` has the triples of each relation."""
    listed: dict[str, str] = {}
    if listing is not None and listing.names is not None:
        listed = dict(zip(listing.ids.to_pylist(), trimmed(listing.names).to_pylist(), strict=True))
    ids = list(counts)
    names = [listed.get(id) or name_from_id(id) for id in ids]
    return [ids[place] for place in excluded_relations(options.exclude, ids, names, list(counts.values()), shown)]


def exclude_from_listing(listing: Listing, excluded: Sequence[str]) -> Listing:
    """A table of relations without some of them."""
    mask, where = _others(listing.ids, listing.where, excluded)
    names, descriptions = (
        None if column is None else column.filter(mask) for column in (listing.names, listing.descriptions)
    )
    return Listing(listing.ids.filter(mask), names, descriptions, listing.shown, where)


def _others(ids: pa.ChunkedArray, where: Where, excluded: Sequence[str]) -> tuple[pa.ChunkedArray, Where]:
    mask = pc.invert(pc.is_in(ids, value_set=pa.array(excluded, ids.type)))
    rows = np.flatnonzero(mask.to_numpy())
    return mask, lambda row: where(int(rows[row]))


def _number(
    kind: str,
    columns: Mapping[str, list[pa.ChunkedArray]],
    splits: Mapping[str, Triples],
    listing: Listing | None,
    options: ReadOptions,
) -> tuple[dict[str, list[Int32]], Vocabulary]:
    """The index of every cell, and the vocabulary; one hash table over all columns of all splits."""
    flat = [column.cast(pa.large_string()) for parts in columns.values() for column in parts]
    cells = pa.chunked_array([chunk for column in flat for chunk in column.chunks], pa.large_string())
    ids = names = descriptions = None
    if listing is not None:
        ids, names, descriptions = check_listing(kind, listing, options)
    if ids is None or options.unlisted == "add":
        seen = pc.unique(cells)
        if ids is not None:
            new = seen.filter(pc.invert(pc.is_in(seen, ids)))
            if len(new):
                message = "%s taken in that the listing does not have, such as %a"
                log.warning(message, counted(len(new), f"{kind} id"), new[0].as_py())
            names = pa.concat_arrays([names, names_from_ids(new)])
            descriptions = pa.concat_arrays([descriptions, blank(len(new))])
            ids = pa.concat_arrays([ids, new])
        else:
            ids, names, descriptions = seen, names_from_ids(seen), blank(len(seen))
    warn_of_likes(kind, ids)
    codes = pc.index_in(cells, value_set=ids)
    if codes.null_count:
        assert listing is not None
        _refuse_unlisted(kind, columns, splits, ids, listing)
    numbers = codes.to_numpy().astype(np.int32, copy=False)
    result: dict[str, list[Int32]] = {}
    at = 0
    for split, parts in columns.items():
        result[split] = []
        for column in parts:
            result[split].append(numbers[at : at + len(column)])
            at += len(column)
    return result, Vocabulary.build(kind, ids, names, descriptions)


def warn_of_likes(kind: str, ids: pa.Array) -> None:
    """Tell of ids that look the same and are not: with spaces around them, or letters put together differently."""
    plain = pc.utf8_normalize(pc.utf8_trim_whitespace(ids), form="NFC")
    if len(pc.unique(plain)) == len(ids):
        return
    groups = pc.value_counts(plain)
    several = groups.filter(pc.greater(groups.field("counts"), 1))
    alike = ids.filter(pc.equal(plain, several[0]["values"])).to_pylist()[:2]
    log.warning(
        "%s of several %s ids that look the same, such as %a and %a: different ones to a program",
        counted(len(several), "group"),
        kind,
        *alike,
    )


def _refuse_unlisted(
    kind: str, columns: Mapping[str, list[pa.ChunkedArray]], splits: Mapping[str, Triples], ids: Any, listing: Listing
) -> None:
    for split, parts in columns.items():
        unlisted = [pc.invert(pc.is_in(column.cast(pa.large_string()), ids)) for column in parts]
        rows = [row for column in unlisted if (row := pc.index(column, True).as_py()) >= 0]
        if rows:
            row = min(rows)
            id = next(parts[i][row].as_py() for i, column in enumerate(unlisted) if column[row].as_py())
            raise SatkgcError(
                f"{kind} {id!r} is not listed in {listing.shown}",
                where=splits[split].where(row),
                remedy="list it there, or take unlisted ones in with --unlisted add",
            )


def check_relations_trained(arrays: Mapping[str, Int32], relations: Vocabulary, wheres: Mapping[str, Where]) -> None:
    """Refuse a relation that only other splits than train have."""
    trained = np.zeros(len(relations), bool)
    trained[arrays["train"][:, 1]] = True
    for split in arrays.keys() - {"train"}:
        unseen = np.flatnonzero(~trained[arrays[split][:, 1]])
        if len(unseen):
            row = int(unseen[0])
            raise SatkgcError(
                f"relation {relations.id(arrays[split][row, 1])!r} is in {split} but never in train "
                f"({len(unseen):,} such triples)",
                where=wheres[split](row),
                remedy="nothing can be learnt about it: move some of its triples to train, or take them out",
            )


def _held_out(
    lists: Mapping[str, tuple[pa.ChunkedArray, Where]], entities: Vocabulary, train: Int32
) -> dict[str, Int32]:
    """The entities that an inductive graph keeps out of training, by split."""
    trained = np.zeros(len(entities), bool)
    trained[train[:, [0, 2]].ravel()] = True
    result: dict[str, Int32] = {}
    for split, (ids, where) in lists.items():
        codes = pc.index_in(ids.cast(pa.large_string()), value_set=entities.ids)
        if codes.null_count:
            row = pc.index(pc.is_null(codes), True).as_py()
            raise SatkgcError(f"entity {ids[row].as_py()!r} is in no list and no triple", where=where(row))
        numbers = codes.to_numpy().astype(np.int32)
        if len(seen := np.flatnonzero(trained[numbers])):
            row = int(seen[0])
            raise SatkgcError(
                f"entity {ids[row].as_py()!r} is held out for {split} but occurs in train",
                where=where(row),
                remedy="take it out of this list, or its triples out of train",
            )
        result[split] = np.unique(numbers)
        result[split].flags.writeable = False
    return result
