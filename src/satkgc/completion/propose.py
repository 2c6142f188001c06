"""The most likely missing triples of a graph: ask every sensible question, keep the best N, write them in order."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from satkgc.arrays import Float32, Int32, Int64
from satkgc.completion.asking import Asker
from satkgc.completion.calibration import RIVALS
from satkgc.completion.triples_out import Row, check_ending, check_graph, write_triples
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, check_writable
from satkgc.kg import KnowledgeGraph
from satkgc.progress import progress_bar

log = logging.getLogger("satkgc.completion")

BATCH = 1024  # questions asked at once
SINGLE = 0.95  # share of a relation's entities that have one answer, from which on it is taken to give no more
FEW = 10  # with fewer entities than this there is no telling
SHOWN = 5  # relations named in a message
SAVE_SECONDS = 15.0  # between two notes of how far it got
MOST = 10_000_000  # triples kept: what fits into memory with ease


@dataclass(frozen=True, eq=False)
class Best:
    """The N best triples so far, best first; where a run has no calibration, `worth` is the score."""

    triples: Int32  # (n, 3)
    scores: Float32  # (n,)
    worth: Float32  # (n,)

    def merge(self, triples: Int32, scores: Float32, worth: Float32, n: int, keys: tuple[int, int]) -> Best:
        """With more triples; of one that both its questions bring up, the higher worth counts."""
        triples = np.concatenate([self.triples, triples])
        scores, worth = np.concatenate([self.scores, scores]), np.concatenate([self.worth, worth])
        key = _key(triples, *keys)
        order = np.lexsort((key, -scores, -worth))
        _, first = np.unique(key[order], return_index=True)  # the best of each triple, by key
        order = order[np.sort(first)][:n]
        return Best(triples[order], scores[order], worth[order])


def propose(
    asker: Asker,
    out: Path,
    n: int,
    relations: Sequence[int],
    min_probability: float | None = None,
    signature: str = "",
    second_answers: bool = False,
    typed: bool = False,
) -> int:
    """Write the `n` most likely triples that the graph does not hold; returns how many there are.

    For every relation, tails are asked for of each entity that is its head somewhere, and heads of each that is
    its tail somewhere; without `second_answers`, not of those that have the one answer that such a relation gives. How
    far it got is kept beside the output, so that a call that was stopped goes on. If `typed`, answers are only such as
    are the relation's tail, or head, somewhere.
    """
    check_out(out, n)
    check_graph(out, asker.kg)
    if min_probability is not None and asker.calibration is None:
        raise SatkgcError("this run has no probabilities", remedy="leave the least probability out")
    size = asker.kg.num_relations
    single = set() if second_answers else single_answered(asker.kg)
    asked = [
        d
        for r in relations
        for d, other in ((r, r + size), (r + size, r))
        if d not in single  # whoever is asked has an answer
        and not (typed and other in single)  # whoever may be an answer is one already
    ]
    _tell_left_out(asker.kg, relations, {d % size for d in asked}, typed)
    work = [(d, start) for d in asked for start in range(0, len(_askers(asker, d)), BATCH)]
    settings = {"run": signature, "n": n, "relations": list(relations), "least": min_probability, "batch": BATCH}
    settings |= {"second_answers": second_answers, "typed": typed}
    state = _State(out.with_name(out.name + ".state.npz"), json.dumps(settings))
    done, best = state.open()
    with progress_bar() as bar:
        task = bar.add_task("proposing", total=len(work), completed=done)
        saved = time.monotonic()
        for directed, start in work[done:]:
            other = (directed + size) % (2 * size)
            seen = _askers(asker, other)
            outside = seen if other in single else None
            best = _ask(asker, directed, start, best, n, min_probability, seen if typed else None, outside)
            done += 1
            bar.advance(task)
            if time.monotonic() - saved > SAVE_SECONDS:
                state.save(done, best)
                saved = time.monotonic()
    count = write_triples(out, _rows(asker, best))
    state.file.unlink(missing_ok=True)
    if not count:
        limits = [] if min_probability is None else [f"at least {min_probability:.4g} likely"]
        limits += ["typed"] * typed + ["no second answers"] * (not second_answers)
        log.warning("%s: no triple is all that was asked for: %s", out, ", ".join(["new", *limits]))
    return count


def check_out(out: Path, n: int) -> None:
    """Refuse what cannot be written, before anything is loaded."""
    check_ending(check_writable(out))
    if not 1 <= n <= MOST:
        raise SatkgcError(f"n is {n}", remedy=f"ask for 1 to {MOST:,} triples")
    if out.exists():
        raise SatkgcError("the file is there already", where=out, remedy="choose another name, or remove it")


def _tell_left_out(kg: KnowledgeGraph, relations: Sequence[int], asked: set[int], typed: bool) -> None:
    """Say which relations are not asked at all, since their entities have the one answer that there is."""
    left_out = [kg.relations.id(r) for r in relations if r not in asked]
    if not left_out:
        return
    named = ", ".join(map(repr, left_out[:SHOWN])) + (", …" if len(left_out) > SHOWN else "")
    why = f"the entities at {'an end' if typed else 'both ends'} of {named} have their one answer already"
    remedy = "--second-answers asks for more" + (", as may leaving --typed out" if typed else "")
    if not asked:
        raise SatkgcError(f"nothing is left to ask: {why}", remedy=remedy)
    log.warning("%s of %s relations left out: %s; %s", f"{len(left_out):,}", f"{len(relations):,}", why, remedy)


def _askers(asker: Asker, directed: int) -> Int32:
    """The entities of which a directed relation is asked."""
    size = asker.kg.num_relations
    return asker.names.members(directed % size, "head" if directed < size else "tail", None)


def single_answered(kg: KnowledgeGraph) -> set[int]:
    """The directed relations that have one answer for nearly every entity that has any."""
    known = np.concatenate([kg.train, kg.valid, kg.test]).astype(np.int64)
    found: set[int] = set()
    for shift, asked, answer in ((0, 0, 2), (kg.num_relations, 2, 0)):
        size = kg.num_entities
        triples = np.unique((known[:, 1] * size + known[:, asked]) * size + known[:, answer])  # one number each: quick
        pairs, answers = np.unique(triples // size, return_counts=True)
        entities = np.bincount(pairs // size, minlength=kg.num_relations)
        single = np.bincount(pairs // size, weights=answers == 1, minlength=kg.num_relations)
        found |= set((np.flatnonzero((entities >= FEW) & (single >= SINGLE * entities)) + shift).tolist())
    return found


def _ask(
    asker: Asker,
    directed: int,
    start: int,
    best: Best,
    n: int,
    least: float | None,
    inside: Int32 | None,
    outside: Int32 | None,
) -> Best:
    """`inside` are the entities that may be answers; those `outside` have their one answer and are none again."""
    size = asker.kg.num_relations
    queries = [(int(entity), directed) for entity in _askers(asker, directed)[start : start + BATCH]]
    rivals = asker.rivals(queries, asker.encode(queries))
    width = min(RIVALS, len(asker.index))
    scores, ids = np.full((len(queries), width), -np.inf, np.float32), np.zeros((len(queries), width), np.int32)
    for i, near in enumerate(rivals):
        scores[i, : len(near.ids)], ids[i, : len(near.ids)] = near.scores, near.ids
    worth = scores
    if asker.calibration is not None:
        worth = asker.calibration.probability(scores, scores, True).astype(np.float32)
    floor = best.worth[-1] if len(best.worth) == n else -np.inf
    keep = np.isfinite(scores) & (worth >= floor) & (worth >= (-np.inf if least is None else least))
    if inside is not None:
        keep &= np.isin(ids, inside)
    if outside is not None:
        keep &= ~np.isin(ids, outside)
    row, column = np.nonzero(keep)
    subject = np.array([entity for entity, _ in queries], np.int32)[row]
    relation = np.full(len(row), directed % size, np.int32)
    ends = (subject, ids[row, column]) if directed < size else (ids[row, column], subject)
    triples = np.stack([ends[0], relation, ends[1]], 1)
    return best.merge(triples, scores[row, column], worth[row, column], n, (size, len(asker.index)))


def _key(triples: Int32, num_relations: int, num_entities: int) -> Int64:
    """One number for each triple, in their order by head, relation, tail."""
    wide = triples.astype(np.int64)
    return (wide[:, 0] * num_relations + wide[:, 1]) * num_entities + wide[:, 2]


def _rows(asker: Asker, best: Best) -> Iterator[list[Row]]:
    """Ids and names, some thousands at a time: they are never all in memory."""
    names, relations, told = asker.names, asker.kg.relations, asker.calibration is not None
    for start in range(0, len(best.triples), 8192):
        part = slice(start, start + 8192)
        batch: list[Row] = []
        for (h, r, t), score, worth in zip(
            best.triples[part].tolist(), best.scores[part], best.worth[part], strict=True
        ):
            ids = names.id(h), relations.id(r), names.id(t)
            words = names.name(h), relations.name(r), names.name(t)
            batch.append((*ids, *words, float(score), float(worth) if told else None))
        yield batch


class _State:
    """How far a proposal got, in a file beside its output."""

    def __init__(self, file: Path, asked: str) -> None:
        self.file, self.asked = file, asked

    def open(self) -> tuple[int, Best]:
        """What was saved, if it is of the same question."""
        if not self.file.exists():
            return 0, Best(np.empty((0, 3), np.int32), np.empty(0, np.float32), np.empty(0, np.float32))
        with np.load(self.file, allow_pickle=False) as stored:
            if str(stored["asked"]) != self.asked:
                raise SatkgcError(
                    "an unfinished proposal with other settings is here",
                    where=self.file,
                    remedy="repeat those settings to finish it, or remove the file",
                )
            return int(stored["done"]), Best(stored["triples"], stored["scores"], stored["worth"])

    def save(self, done: int, best: Best) -> None:
        with atomic_write(self.file) as part, part.open("wb") as file:
            np.savez(file, asked=self.asked, done=done, triples=best.triples, scores=best.scores, worth=best.worth)
