"""What the graph's logic is worth on held-out triples: filtered ranks with and without it.

    python bench/logic.py runs/demo --split test > logic.json

Relations mean what the training triples show of them, and only those count as known to the logic. Of each question the
100 best candidates are held against it, other known answers left out as always. *push* puts candidates with an
objection behind the other ones of the hundred, *drop* takes them out, the right answer too where it has one, whose
reciprocal rank is then 0.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

import satkgc
from satkgc.completion.answer import ObjectionKind
from satkgc.completion.consistency import CONTRADICTIONS, Consistency
from satkgc.kg import describe_logic, relation_logic
from satkgc.models import Questions
from satkgc.progress import progress_bar

BEST = 100  # candidates of a question that are looked at
BATCH = 128
KINDS: tuple[str, ...] = get_args(ObjectionKind)


def listed(run: satkgc.Run, split: str) -> list[tuple[int, list[str | None]]]:
    """Of each question: the right answer's place among its candidates, from 0, and the objections to the best."""
    kg, completer = run.kg, run.completer()
    engine = completer._engine
    entities = completer.vectors().T if engine.retriever.vectors is engine.retriever else None
    judge = Consistency(kg, relation_logic(kg), kg.known_facts)
    triples = kg.split(split)
    size = kg.num_relations
    asked = [(h, r, t) for h, r, t in triples.tolist()] + [(t, r + size, h) for h, r, t in triples.tolist()]
    results = []
    with progress_bar() as bar, torch.inference_mode():
        task = bar.add_task("questions", total=len(asked))
        for start in range(0, len(asked), BATCH):
            part = asked[start : start + BATCH]
            if entities is None:
                questions = Questions(*(np.array([q[i] for q in part], np.int32) for i in (0, 1)))
                scores = engine.model.score(questions).float().cpu().numpy()
            else:
                scores = engine.encode([q[:2] for q in part]).vectors @ entities
            for row, (entity, directed, answer) in zip(scores, part, strict=True):
                known = kg.known_all.answers(entity, directed)
                row[known[known != answer]] = -np.inf
                place = int((row > row[answer]).sum())
                best = np.argsort(-row, kind="stable")[:BEST].tolist()
                if place < BEST:
                    best.remove(answer) if answer in best else best.pop()
                    best.insert(place, answer)
                found = [
                    judge.conflict(entity, directed, e)
                    if directed < size
                    else judge.conflict(e, directed - size, entity)
                    for e in best
                    if np.isfinite(row[e])
                ]
                results.append((place, [None if one is None else one.kind for one in found]))
                bar.advance(task)
    return results


def metrics(results: Iterable[tuple[int, list[str | None]]], kinds: Iterable[str], drop: bool) -> dict[str, float]:
    """Filtered ranks where candidates with an objection of these kinds are pushed behind, or dropped."""
    reciprocal, chosen = [], set(kinds)
    for place, objections in results:
        against = [one in chosen for one in objections]
        rank: float = place + 1
        if place < len(objections):
            better = sum(against[:place])
            if not against[place]:
                rank = 1 + place - better
            else:
                rank = np.inf if drop else 1 + len(against) - sum(against) + better
        elif drop:
            rank -= sum(against)
        reciprocal.append(1 / rank)
    values = np.array(reciprocal)
    hits = {f"hits@{k}": float((values >= 1 / k).mean()) for k in (1, 3, 10)}
    return {"mrr": float(values.mean()), **hits}


def measure(run: satkgc.Run, split: str) -> dict[str, Any]:
    """All that is compared, of one run and split."""
    results = listed(run, split)
    right = Counter(found[place] for place, found in results if place < len(found))
    wrong = Counter(one for place, found in results for i, one in enumerate(found[:10]) if i != place)
    variants: dict[str, Any] = {"as they are": metrics(results, (), False)}
    variants |= {f"push {kind}": metrics(results, [kind], False) for kind in KINDS}
    variants["push contradictions"] = metrics(results, CONTRADICTIONS, False)
    variants["drop contradictions"] = metrics(results, CONTRADICTIONS, True)
    variants["drop all"] = metrics(results, KINDS, True)
    return {
        "graph": run.kg.name,
        "recipe": run.config.recipe,
        "split": split,
        "questions": len(results),
        "right answers among the 100 best, by objection": {str(kind): n for kind, n in right.most_common()},
        "wrong ones among the 10 best, by objection": {str(kind): n for kind, n in wrong.most_common()},
        "variants": {name: {k: round(v, 4) for k, v in one.items()} for name, one in variants.items()},
        "logic": [f"{one['id']} {one['property']}" for one in describe_logic(run.kg, relation_logic(run.kg))],
    }


def main() -> None:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="+")
    parser.add_argument("--split", default="valid", choices=("valid", "test"))
    options = parser.parse_args()
    print(json.dumps([measure(satkgc.Run.load(run), options.split) for run in options.run], indent=1))


if __name__ == "__main__":
    main()
