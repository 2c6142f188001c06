"""The most likely missing triples of a graph: ask every sensible question, keep the best N, write them in order.

They go to TSV, CSV, Parquet or N-Triples, by the file's ending.
"""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from satkgc.arrays import Float32, Int32, Int64
from satkgc.completion.calibration import COMPETITORS
from satkgc.completion.cells import escape
from satkgc.completion.consistency import Consistency, Triple
from satkgc.completion.engine import Engine
from satkgc.completion.kept import keep, open_kept
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_new
from satkgc.kg import IRI, NOT_TSV, SPLITS, YES, KnowledgeGraph, RelationLogic, check_tsv_ids, tsv_id_error
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.completion")

BATCH = 1024  # questions asked at once
SINGLE = 0.95  # share of a relation's entities that have one answer, from which on it is taken to give no more
FEW = 10  # with fewer entities than this there is no telling
SHOWN = 5  # relations named in a message
SAVE_SECONDS = 15.0  # between two notes of how far it got
MOST = 10_000_000  # triples kept: what fits into memory with ease
MORE, MANY = 4, 1_000  # so many times as many, and more, are kept as are asked for where some will be dropped
COLUMNS = ["head", "relation", "tail", "head_name", "relation_name", "tail_name", "score", "probability"]
DESCRIPTIONS = ["head_description", "tail_description"]
SCHEMA = pa.schema(
    [(name, pa.string()) for name in COLUMNS[:6]]
    + [("score", pa.float32()), ("probability", pa.float32())]
    + [(name, pa.string()) for name in DESCRIPTIONS]
)
ACCEPT = "accept"  # an empty column of a table, for whoever looks through it
SAFE = "!~*'()"  # as the web page writes ids
OTHER = "write .csv or .parquet"  # where an id cannot stand in TSV
ENDINGS = (".tsv", ".csv", ".parquet", ".nt")
Row = tuple[str, str, str, str, str, str, float, float | None, str, str]


@dataclass(frozen=True, eq=False)
class BestTriples:
    """The N best triples so far, best first."""

    triples: Int32  # (n, 3)
    scores: Float32  # (n,)
    values: Float32  # (n,) what they are ordered by: the probability, or the score where a run has no calibration

    def merge(self, triples: Int32, scores: Float32, values: Float32, n: int, sizes: tuple[int, int]) -> BestTriples:
        """With more triples; of one that both its questions bring up, the higher value counts."""
        triples = np.concatenate([self.triples, triples])
        scores, values = np.concatenate([self.scores, scores]), np.concatenate([self.values, values])
        key = _key(triples, *sizes)
        order = np.lexsort((key, -scores, -values))
        _, first = np.unique(key[order], return_index=True)  # the best of each triple, by key
        order = order[np.sort(first)][:n]
        return BestTriples(triples[order], scores[order], values[order])

    def without(self, keys: Int64, sizes: tuple[int, int]) -> BestTriples:
        """Those that are none of these, by their numbers."""
        kept = ~np.isin(_key(self.triples, *sizes), keys)
        return BestTriples(self.triples[kept], self.scores[kept], self.values[kept])


FIELDS = tuple(BestTriples.__dataclass_fields__)
NONE = BestTriples(np.empty((0, 3), np.int32), np.empty(0, np.float32), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False)
class Limits:
    """Which answers count."""

    batch: int  # entities that are asked at once
    most: int  # triples that are kept
    min_probability: float | None
    typed: bool
    single: frozenset[int]  # directed relations that give one answer, which those that have it keep
    either: Int32 | None  # one of these is at one end

    def ends(self, engine: Engine, directed: int) -> tuple[Int32 | None, Int32 | None]:
        """The only entities that may be answers, and those that may not."""
        size = engine.kg.num_relations
        other = (directed + size) % (2 * size)
        seen = _members(engine, other) if self.typed or other in self.single else None
        return seen if self.typed else None, seen if other in self.single else None


AskElsewhere = Callable[[Limits, Sequence[tuple[int, int]], Path, str], Iterator[BestTriples]]
"""Gets the limits, batches (directed relation, first entity), a folder of its own and a key of the settings."""


def propose(
    engine: Engine,
    out: Path,
    n: int,
    relations: Sequence[int],
    min_probability: float | None = None,
    signature: str = "",
    second_answers: bool = False,
    typed: bool = False,
    logic: Sequence[RelationLogic] | None = None,
    decided: Sequence[Triple] = (),
    type: str | None = None,
    ask: AskElsewhere | None = None,
) -> int:
    """Write the `n` most likely triples that the graph does not hold; returns how many there are.

    For every relation, tails are asked for of each entity that is its head somewhere, and heads of each that is
    its tail somewhere; without `second_answers`, not of those that have the one answer that such a relation gives.
    With `logic` those are dropped that it has implied or impossible, and one of two that say the same. How
    far it got is kept beside the output, so that a call that was stopped goes on. If `typed`, answers are only such as
    are the relation's tail, or head, somewhere; with a `type`, given by id or name, one end of a triple is of it.
    Triples that somebody has `decided` on already are left out.
    With `ask` the questions are asked elsewhere, in any order, and what is done is kept in a folder beside the output.
    """
    check_proposals_file(out, n)
    _check_ids(out, engine.kg)
    if min_probability is not None and engine.calibration.entities is None:
        raise SatkgcError("this run has no probabilities", remedy="leave the least probability out")
    size = engine.kg.num_relations
    members = None if type is None else engine.type_members(type)
    single = set() if second_answers else single_answered(engine.kg)
    directions = [
        d
        for r in relations
        for d, other in ((r, r + size), (r + size, r))
        if d not in single  # or all entities of the question have their answer
        and not (typed and other in single)  # or all that may be answers are one already
    ]
    _log_left_out(engine.kg, relations, {d % size for d in directions}, typed)
    work = [(d, start) for d in directions for start in range(0, len(_members(engine, d)), BATCH)]
    settings = {"run": signature, "n": n, "relations": list(relations), "least": min_probability, "batch": BATCH}
    settings |= {"second_answers": second_answers, "typed": typed, "logic": str(logic), "type": type}
    most = n if logic is None else min(MOST, MORE * n + MANY)  # to drop some of
    state, asked = out.with_name(out.name + ".state.npz"), json.dumps(settings)
    kept = open_kept(state, "proposal", asked, FIELDS)
    done, best = (0, NONE) if kept is None or ask is not None else (kept[0], BestTriples(**kept[1]))
    sizes = _sizes(engine)
    keys = _key(np.array(decided, np.int32).reshape(-1, 3), *sizes)
    best = best.without(keys, sizes)  # what was decided since it was stopped
    limits = Limits(BATCH, most, min_probability, typed, frozenset(single), members)
    shards, key = out.with_name(out.name + ".shards"), hashlib.sha256(asked.encode()).hexdigest()[:16]

    def ask_here(limits: Limits, batches: Sequence[tuple[int, int]], folder: Path, key: str) -> Iterator[BestTriples]:
        return (ask_batch(engine, *batch, limits, best) for batch in batches)  # `best` as it is by then

    with progress_bar() as bar:
        task = bar.add_task("proposing", total=len(work), completed=done)
        saved = time.monotonic()
        for part in (ask or ask_here)(limits, work[done:], shards, key):
            new = part.without(keys, sizes)
            best = best.merge(new.triples, new.scores, new.values, most, sizes)
            done += 1
            bar.advance(task)
            if ask is None and time.monotonic() - saved > SAVE_SECONDS:
                keep(state, asked, done, vars(best))
                saved = time.monotonic()
    if logic is not None:
        if second_answers:
            logic = [replace(one, functional=False, inverse_functional=False) for one in logic]
        best = _consistent(engine, best, n, logic, out)
    count = write_triples(out, _rows(engine, best), for_spreadsheet=True)
    state.unlink(missing_ok=True)
    shutil.rmtree(shards, ignore_errors=True)
    if not count:
        conditions = [] if min_probability is None else [f"at least {min_probability:.4g} likely"]
        conditions += [] if type is None else [f"with an entity of the type {type!r}"]
        conditions += ["typed"] * typed + ["no second answers"] * (not second_answers)
        log.warning("%s: no triple is all that was asked for: %s", out, ", ".join(["new", *conditions]))
    return count


def _consistent(engine: Engine, best: BestTriples, n: int, logic: Sequence[RelationLogic], out: Path) -> BestTriples:
    kept, dropped = Consistency(engine.kg, logic).keep(best.triples, n)
    if dropped:
        told = ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in dropped.most_common())
        log.warning("%s: left out: %s; --implied keeps them", out, told)
    return BestTriples(best.triples[kept], best.scores[kept], best.values[kept])


def check_proposals_file(out: Path, n: int) -> None:
    """Refuse what cannot be written, before anything is loaded."""
    check_ending(check_new(out))
    if not 1 <= n <= MOST:
        raise SatkgcError(f"n is {n}", remedy=f"ask for 1 to {MOST:,} triples")


def _log_left_out(kg: KnowledgeGraph, relations: Sequence[int], used: set[int], typed: bool) -> None:
    """Say which relations are not asked at all, since their entities have the one answer that there is."""
    left_out = [kg.relations.id(r) for r in relations if r not in used]
    if not left_out:
        return
    named = ", ".join(map(repr, left_out[:SHOWN])) + (", …" if len(left_out) > SHOWN else "")
    why = f"the entities at {'an end' if typed else 'both ends'} of {named} have their one answer already"
    remedy = "--second-answers asks for more" + (", as may leaving --typed out" if typed else "")
    if not used:
        raise SatkgcError(f"nothing is left to ask: {why}", remedy=remedy)
    log.warning("%s of %s relations left out: %s; %s", f"{len(left_out):,}", f"{len(relations):,}", why, remedy)


def _members(engine: Engine, directed: int) -> Int32:
    """The entities of which a directed relation is asked: those that have it somewhere."""
    size = engine.kg.num_relations
    return engine.names.members(directed % size, "head" if directed < size else "tail", None)


def single_answered(kg: KnowledgeGraph) -> set[int]:
    """The directed relations that have one answer for nearly every entity that has any."""
    known = np.concatenate([kg.split(split) for split in SPLITS]).astype(np.int64)
    result: set[int] = set()
    for shift, entity, answer in ((0, 0, 2), (kg.num_relations, 2, 0)):
        size = kg.num_entities
        triples = np.unique((known[:, 1] * size + known[:, entity]) * size + known[:, answer])  # one number each: quick
        pairs, answers = np.unique(triples // size, return_counts=True)
        entities = np.bincount(pairs // size, minlength=kg.num_relations)
        single = np.bincount(pairs // size, weights=answers == 1, minlength=kg.num_relations)
        result |= set((np.flatnonzero((entities >= FEW) & (single >= SINGLE * entities)) + shift).tolist())
    return result


def ask_batch(engine: Engine, directed: int, start: int, limits: Limits, best: BestTriples = NONE) -> BestTriples:
    """The answers of a batch of entities that count and could be among the best so far, in any order."""
    size, entities = engine.kg.num_relations, _members(engine, directed)[start : start + limits.batch]
    entities = entities[engine.answerable([(entity, directed) for entity in entities.tolist()])]
    queries = [(entity, directed) for entity in entities.tolist()]
    competitors = engine.competitors(queries, engine.encode(queries))
    shape = len(queries), min(COMPETITORS, len(engine.retriever))
    scores, ids = np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int32)
    for i, near in enumerate(competitors):
        scores[i, : len(near.ids)], ids[i, : len(near.ids)] = near.scores, near.ids
    values = scores
    if engine.calibration.entities is not None:
        values = engine.calibration.entities.probability(scores, scores, True).astype(np.float32)
    keep = np.isfinite(scores) & (values >= (best.values[-1] if len(best.values) == limits.most else -np.inf))
    if limits.min_probability is not None:
        keep &= values >= limits.min_probability
    allow, exclude = limits.ends(engine, directed)
    if allow is not None:
        keep &= np.isin(ids, allow)
    if exclude is not None:
        keep &= ~np.isin(ids, exclude)
    if limits.either is not None:
        keep &= np.isin(ids, limits.either) | np.isin(entities, limits.either)[:, None]
    row, column = np.nonzero(keep)
    ends = (entities[row], ids[row, column]) if directed < size else (ids[row, column], entities[row])
    triples = np.stack([ends[0], np.full(len(row), directed % size, np.int32), ends[1]], 1)
    return BestTriples(triples, scores[row, column], values[row, column])


def _sizes(engine: Engine) -> tuple[int, int]:
    """How many relations and entities there are, to number triples."""
    return engine.kg.num_relations, engine.kg.num_entities + len(engine.names.added)


def _key(triples: Int32, num_relations: int, num_entities: int) -> Int64:
    """One number for each triple, in their order by head, relation, tail."""
    wide = triples.astype(np.int64)
    return (wide[:, 0] * num_relations + wide[:, 1]) * num_entities + wide[:, 2]


def _rows(engine: Engine, best: BestTriples) -> Iterator[list[Row]]:
    """Ids and names, some thousands at a time: they are never all in memory."""
    names, relations, calibrated = engine.names, engine.kg.relations, engine.calibration.entities is not None
    for start in range(0, len(best.triples), 8192):
        part = slice(start, start + 8192)
        batch: list[Row] = []
        for (h, r, t), score, value in zip(
            best.triples[part].tolist(), best.scores[part], best.values[part], strict=True
        ):
            ids = names.id(h), relations.id(r), names.id(t)
            words = names.name(h), relations.name(r), names.name(t)
            texts = names.describe(h).description, names.describe(t).description
            batch.append((*ids, *words, float(score), float(value) if calibrated else None, *texts))
        yield batch


def check_ending(out: Path) -> None:
    """Refuse a file whose ending is none of those that can be written."""
    if out.suffix not in ENDINGS:
        raise SatkgcError(f"cannot tell the form of {out.name!r}", remedy=f"end its name in {', '.join(ENDINGS)}")


def _check_ids(out: Path, kg: KnowledgeGraph) -> None:
    """Refuse a form in which the graph's ids cannot be written, before hours of work and not after them."""
    for vocabulary in (kg.entities, kg.relations):
        if out.suffix == ".tsv":
            check_tsv_ids(vocabulary, out, OTHER)


def write_triples(out: Path, batches: Iterable[list[Row]], *, for_spreadsheet: bool = False) -> int:
    """Write rows, a batch at a time, and put the file in place when it is whole; returns how many there were.

    Tables `for_spreadsheet` have an empty column of acceptance, and texts that would be formulas are escaped; `accept`
    undoes it. In other tables all rows are accepted.
    """
    check_ending(out)
    if for_spreadsheet and out.suffix in (".tsv", ".csv"):
        batches = ([_escaped(row) for row in batch] for batch in batches)
    with atomic_write(out) as part:
        if out.suffix in (".tsv", ".csv"):
            return _delimited(part, batches, out, "" if for_spreadsheet else YES[0])
        return {".parquet": _parquet, ".nt": _ntriples}[out.suffix](part, batches, out)


def iri(kind: str, id: str) -> str:
    """An id as an IRI: as it is where it is one, else below `urn:satkgc:`, from where it can be read back."""
    return id if IRI.fullmatch(id) else f"urn:satkgc:{kind}:{quote(id, safe=SAFE)}"


def _delimited(part: Path, batches: Iterable[list[Row]], out: Path, verdict: str) -> int:
    count = 0
    tsv: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}  # as all TSV is read
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", **(tsv if out.suffix == ".tsv" else {}))
        writer.writerow([*COLUMNS, ACCEPT, *DESCRIPTIONS])
        for rows in batches:
            cells = (_tsv_cells(row, out) for row in rows) if out.suffix == ".tsv" else rows
            writer.writerows(
                [*row[:6], f"{row[6]:.6f}", "" if row[7] is None else f"{row[7]:.6f}", verdict, *row[8:]]
                for row in cells
            )
            count += len(rows)
    return count


def _escaped(row: Row) -> Row:
    head, relation, tail, of_head, of_relation, of_tail, *texts = map(escape, (*row[:6], *row[8:]))
    return head, relation, tail, of_head, of_relation, of_tail, *row[6:8], texts[0], texts[1]


def _tsv_cells(row: Row, out: Path) -> Row:
    """A row whose names are cells of TSV, and whose ids are so already."""
    for kind, id in zip(("entity", "relation", "entity"), row[:3], strict=True):
        if re.search(NOT_TSV, id):
            raise tsv_id_error(kind, id, out, OTHER)
    head, relation, tail, of_head, of_tail = (" ".join(text.split()) for text in (*row[3:6], *row[8:]))
    return *row[:3], head, relation, tail, *row[6:8], of_head, of_tail


def _parquet(part: Path, batches: Iterable[list[Row]], out: Path) -> int:
    count = 0
    with pq.ParquetWriter(part, SCHEMA) as writer:
        for rows in batches:
            columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[]] * len(SCHEMA)
            writer.write_table(pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA))
            count += len(rows)
    return count


def _ntriples(part: Path, batches: Iterable[list[Row]], out: Path) -> int:
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for rows in batches:
            file.writelines(
                f"<{iri('entity', h)}> <{iri('relation', r)}> <{iri('entity', t)}> .\n" for h, r, t, *_ in rows
            )
            count += len(rows)
    return count
