"""Statements of the graph that the model doubts: each is asked as if it were missing, from both ends.

What the model reads of the graph leaves the statement out (`Model.score_held_out`). What it has learnt of a training
triple stays, so that it is the doubts that tell something: a high probability may be memory. A statement is as likely
as the less likely of its ends, or as low as the lower rank where a run has no calibration. What the other statements
contradict comes first.
"""

from __future__ import annotations

import csv
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from satkgc.arrays import Bool, Float32, Float64, Int32, Int64
from satkgc.completion.answer import Doubt, DoubtfulEnd
from satkgc.completion.calibration import COMPETITORS
from satkgc.completion.cells import escape
from satkgc.completion.engine import Engine
from satkgc.completion.kept import keep, open_kept
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_new
from satkgc.models import Questions
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.completion")

BATCH = 256  # statements judged at once
MOST = 100_000  # statements listed
SAVE_SECONDS = 15.0  # between two notes of how far it got


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What the model says of triples; the first column of a pair is the tail's question, the second the head's."""

    triples: Int32  # (n, 3)
    scores: Float32  # (n, 2)
    ranks: Int64  # (n, 2) among all entities that are no other known answer, from 1
    probabilities: Float32  # (n, 2) NaN without calibration
    others: Int32  # (n, 2) the best answer that the graph does not have, -1 where there is none
    other_probabilities: Float32  # (n, 2)
    contradicted: Bool  # (n,) by the graph's logic

    @classmethod
    def join(cls, parts: Sequence[Verdicts]) -> Verdicts:
        """One after another."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))

    @property
    def belief(self) -> Float64:
        """The less, the greater the doubt: the lower probability of both ends, or less the lower rank.  # (n,)"""
        if np.isnan(self.probabilities).any():
            return -self.ranks.max(1).astype(float)
        return self.probabilities.min(1).astype(float)

    def worst(self, n: int) -> Verdicts:
        """At most n: those contradicted first, then by doubt."""
        order = np.lexsort((*self.triples.T[::-1], self.belief, ~self.contradicted))[:n]
        return Verdicts(*(getattr(self, name)[order] for name in FIELDS))


FIELDS = tuple(Verdicts.__dataclass_fields__)


def judge(engine: Engine, triples: Int32) -> Verdicts:
    """Ask for both ends of triples."""
    size, kg = engine.kg.num_relations, engine.kg
    parts = []
    for source, target, shift in ((0, 2, 0), (2, 0, size)):
        entities, answers = (np.ascontiguousarray(triples[:, column]) for column in (source, target))
        questions = Questions(entities, (triples[:, 1] + shift).astype(np.int32))
        queries = list(zip(entities.tolist(), questions.relations.tolist(), strict=True))
        exclude = [np.union1d(engine.exclude(query), answer) for query, answer in zip(queries, answers, strict=True)]
        k = min(COMPETITORS, kg.num_entities)
        ranked = engine.retriever.rank(questions, answers, exclude, k)
        first = _fitting(engine, queries, ranked.ids)[:, None]
        ids, best = np.take_along_axis(ranked.ids, first, 1), np.take_along_axis(ranked.best, first, 1)
        ids[(first < 0) | (first > 0) & (best < ranked.scores[:, None])] = -1  # nothing better that the types allow
        own, other = (np.full(len(triples), np.nan, np.float32) for _ in range(2))
        if (calibration := engine.calibration.entities) is not None:
            own = calibration.probability(ranked.scores[:, None], ranked.best, False)[:, 0].astype(np.float32)
            with np.errstate(invalid="ignore"):  # where the graph has every answer there is no other: NaN
                other = calibration.probability(best, ranked.best, True)[:, 0].astype(np.float32)
        parts.append((ranked.scores, ranked.ranks, own, ids[:, 0], other))
    contradicted = [engine.consistency.contradiction(*triple) is not None for triple in triples.tolist()]
    scores, ranks, own, ids, other = (np.stack(pair, 1) for pair in zip(*parts, strict=True))
    return Verdicts(triples, scores, ranks, own, ids, other, np.array(contradicted, bool))


def _fitting(engine: Engine, queries: list[tuple[int, int]], ids: Int32) -> Int64:
    """Places of the best answers that types allow, -1 where none of them are.  # (Q, k) → (Q,)"""
    places, size = np.full(len(ids), -1), engine.kg.num_relations
    for row, ((entity, directed), candidates) in enumerate(zip(queries, ids.tolist(), strict=True)):
        for place, other in enumerate(candidates):
            head, tail = (entity, other) if directed < size else (other, entity)
            if other >= 0 and engine.consistency.mistyped(head, directed % size, tail) is None:
                places[row] = place
                break
    return places


def doubt_statement(engine: Engine, head: int, relation: int, tail: int) -> Doubt:
    """What speaks against one statement, whether the graph has it or not."""
    for entity in (head, tail):
        if entity >= engine.kg.num_entities:
            what = f"{engine.names.name(entity)!r} is not of the graph that the model was trained on"
            raise SatkgcError(what, remedy="ask for evidence instead")
    for query in ((head, relation), (tail, relation + engine.kg.num_relations)):
        engine.check_query(query)
    return _doubt(engine, judge(engine, np.array([[head, relation, tail]], np.int32)), 0)


def find_doubts(
    engine: Engine,
    split: str,
    n: int,
    relations: Sequence[int] | None,
    state: Path | None = None,
    signature: str = "",
    entity: int | None = None,
    most: int | None = None,
) -> list[Doubt]:
    """The `n` statements of a split, or of some of its relations or of one entity, that are doubted most.

    They are judged in an order drawn once, so that those left out of a path model's graph together have little to do
    with each other. How far it got is kept in the file `state`, if there is one, so that a call that was stopped goes
    on.
    """
    triples = engine.kg.split(split)
    if relations is not None:
        triples = triples[np.isin(triples[:, 1], relations)]
    if entity is not None:
        triples = triples[(triples[:, [0, 2]] == entity).any(1)]
    if most is not None and len(triples) > most:
        what = f"there are {len(triples):,} such statements, and at most {most:,} are looked at"
        raise SatkgcError(what, remedy="name a relation, or check them all with `satkgc check`")
    triples = _without_unknown(engine, triples)
    if not len(triples):
        raise SatkgcError(f"{engine.kg.name} has no such {split} triples", remedy="choose another split or relation")
    triples = triples[np.random.default_rng(0).permutation(len(triples))]
    of = [None if relations is None else sorted(relations), *([] if entity is None else [entity])]
    asked = json.dumps([signature, split, n, *of, BATCH])
    kept = None if state is None else open_kept(state, "check", asked, FIELDS)
    done, worst = (0, None) if kept is None else (kept[0], Verdicts(**kept[1]))
    saved = time.monotonic()
    with progress_bar() as bar:
        task = bar.add_task("checking", total=len(triples), completed=done)
        while done < len(triples):
            some = triples[done : done + BATCH]
            worst = Verdicts.join([*([] if worst is None else [worst]), judge(engine, some)]).worst(n)
            done += len(some)
            bar.advance(task, len(some))
            if state is not None and time.monotonic() - saved > SAVE_SECONDS:
                keep(state, asked, done, vars(worst))
                saved = time.monotonic()
    assert worst is not None
    return [_doubt(engine, worst, row) for row in range(len(worst.triples))]


def _without_unknown(engine: Engine, triples: Int32) -> Int32:
    """Without those of which the model has learnt nothing, as after an update, unless others contradict them."""
    heads, relations, tails = np.ascontiguousarray(triples.T)
    knows, inverse = engine.model.knows_questions, relations + np.int32(engine.kg.num_relations)
    kept = knows(Questions(heads, relations)) & knows(Questions(tails, inverse))
    for row in np.flatnonzero(~kept).tolist():
        kept[row] = engine.consistency.contradiction(*triples[row].tolist()) is not None
    if count := int((~kept).sum()):
        text = "left out: %s of which the model has learnt nothing"
        log.warning(text, f"{count:,} statement{'s' * (count > 1)}")
    return triples[kept]


def check_doubts_file(out: Path, n: int) -> None:
    """Refuse what cannot be written, before anything is loaded."""
    if check_new(out).suffix not in (".csv", ".json"):
        raise SatkgcError(f"cannot tell the form of {out.name!r}", remedy="end its name in .csv or .json")
    check_count(n)


def check_count(n: int) -> None:
    """Refuse a count of statements that nobody reads."""
    if not 1 <= n <= MOST:
        raise SatkgcError(f"n is {n}", remedy=f"ask for 1 to {MOST:,} statements")


def write_doubts(out: Path, doubts: Sequence[Doubt]) -> None:
    """As a table for a spreadsheet, or as JSON, by the file's ending."""
    with atomic_write(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        if out.suffix == ".json":
            json.dump([asdict(doubt) for doubt in doubts], file, ensure_ascii=False, indent=1)
            file.write("\n")
            return
        rows = [_cells(doubt) for doubt in doubts]
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _cells(doubt: Doubt) -> dict[str, str]:
    flat = {name: value for name, value in asdict(doubt).items() if not isinstance(value, dict)}
    flat["objection"] = "" if doubt.objection is None else doubt.objection.kind
    for name, end in (("tail", doubt.asked_tail), ("head", doubt.asked_head)):
        flat |= {f"{name}_{part}": value for part, value in asdict(end).items()}
    return {name: _cell(value) for name, value in flat.items()}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return escape(value) if isinstance(value, str) else f"{value:.6f}" if isinstance(value, float) else str(value)


def _doubt(engine: Engine, verdicts: Verdicts, row: int) -> Doubt:
    names, relations = engine.names, engine.kg.relations
    h, r, t = verdicts.triples[row].tolist()
    tail, head = (_end(engine, verdicts, row, end) for end in range(2))
    conflict = engine.consistency.contradiction(h, r, t) if verdicts.contradicted[row] else None
    objection = None if conflict is None else conflict.objection(names.name, relations.name)
    return Doubt(
        head=names.id(h),
        head_name=names.name(h),
        relation=relations.id(r),
        relation_name=relations.name(r),
        tail=names.id(t),
        tail_name=names.name(t),
        probability=None if tail.probability is None else float(verdicts.belief[row]),
        asked_tail=tail,
        asked_head=head,
        objection=objection,
        reason=f"{objection.kind.replace('_', ' ')}: {objection.reason}"
        if objection
        else _reason(engine, (h, r, t), tail, head),
    )


def _end(engine: Engine, verdicts: Verdicts, row: int, end: int) -> DoubtfulEnd:
    other, probability = int(verdicts.others[row, end]), float(verdicts.probabilities[row, end])
    there, calibrated = other >= 0, not np.isnan(probability)
    return DoubtfulEnd(
        float(verdicts.scores[row, end]),
        int(verdicts.ranks[row, end]),
        probability if calibrated else None,
        engine.names.id(other) if there else None,
        engine.names.name(other) if there else None,
        float(verdicts.other_probabilities[row, end]) if there and calibrated else None,
    )


def _reason(engine: Engine, triple: tuple[int, int, int], tail: DoubtfulEnd, head: DoubtfulEnd) -> str:
    """What the model would rather say at the less likely end."""
    (h, r, t), names = triple, engine.names
    is_tail = (tail.probability or 0, -tail.rank) <= (head.probability or 0, -head.rank)
    end, answer = (tail, t) if is_tail else (head, h)
    relation = engine.kg.relations.name(r)
    question = f"{names.name(h)} – {relation} – ?" if is_tail else f"? – {relation} – {names.name(t)}"
    if end.instead is None or end.rank == 1:
        return f"to {question} it is answer {end.rank:,}"
    chance = "" if end.instead_probability is None else f" ({end.instead_probability:.0%})"
    return f"to {question} the model says {end.instead_name}{chance}, and {names.name(answer)} is answer {end.rank:,}"
