"""Planted duplicates that `satkgc duplicates` finds: precision at k and recall, beside exact normalised names.

    python bench/duplicates.py wordnet-sample --recipe quick --seeds 2 3 --json > duplicates.json
    python bench/duplicates.py --growth 1000 10000 100000 --json

A share of the entities gets a copy whose name is changed: a typo, other capitals, another order of words or a word
less, an abbreviated word; half of the copies have no description, the others half of its words. Of the triples of the
entity each one stays, moves to the copy, or, with the chance --stated-twice, is stated of both. A model is trained on
that graph. What the graph had twice before counts as wrong. Of entities of one name, the baseline lists all pairs, in
the order of names. --growth counts the pairs that are compared in synthetic graphs, without a model.
"""

from __future__ import annotations

import argparse
import json
import platform
import string
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import satkgc
import synthetic
from satkgc.completion.duplicates.find import candidate_pairs, compare_pairs
from satkgc.completion.duplicates.names import NameTable
from satkgc.completion.duplicates.neighbours import NeighbourTable
from satkgc.kg import Vocabulary

Pair = frozenset[str]


def perturb(name: str, rng: np.random.Generator) -> tuple[str, str]:
    """Another writing of a name, and the kind of change."""
    words, kinds = name.split(), ["typo", "case"]
    if len(words) > 1:
        kinds += ["order", "abbreviation"]
    kind = str(rng.choice(kinds))
    if kind == "case":
        return name.upper() if rng.random() < 0.5 else f"{name.title()}.", kind
    if kind == "order":
        return ", ".join([words[-1], " ".join(words[:-1])]), kind
    if kind == "abbreviation":
        longest = max(range(len(words)), key=lambda i: len(words[i]))
        other = int(rng.choice([i for i in range(len(words)) if i != longest]))
        return " ".join(w[0] + "." if i == other else w for i, w in enumerate(words)), kind
    at = int(rng.integers(len(name)))
    letter = str(rng.choice(list(string.ascii_lowercase)))
    changed = [name[:at] + name[at + 1 :], name[:at] + letter + name[at:], name[:at] + letter + name[at + 1 :]]
    swapped = name[:at] + name[at + 1 : at + 2] + name[at : at + 1] + name[at + 2 :]
    return str(rng.choice([*changed, swapped])) or name, kind


def plant(kg: satkgc.KnowledgeGraph, share: float, twice: float, seed: int) -> tuple[satkgc.KnowledgeGraph, dict]:
    """A graph with copies, and the kind of change of each pair."""
    rng = np.random.default_rng(seed)
    ids, names, texts = (
        column.to_pylist() for column in (kg.entities.ids, kg.entities.names, kg.entities.descriptions)
    )
    originals = np.sort(rng.choice(kg.num_entities, round(share * kg.num_entities), replace=False))
    copy, planted = dict(zip(originals.tolist(), range(len(ids), len(ids) + len(originals)), strict=True)), {}
    for i in originals.tolist():
        name, kind = perturb(names[i], rng)
        planted[frozenset((ids[i], f"copy:{i}"))] = kind
        words = texts[i].split()
        kept = np.sort(rng.choice(len(words), len(words) // 2, replace=False)) if rng.random() < 0.5 else []
        ids.append(f"copy:{i}")
        names.append(name)
        texts.append(" ".join(words[j] for j in kept))
    rows = []
    for triple in kg.train.tolist():
        for end in (0, 2):
            draw = rng.random()
            if triple[end] in copy and draw < twice:
                rows.append(list(triple))
            if triple[end] in copy and draw < (1 + twice) / 2:
                triple[end] = copy[triple[end]]
        rows.append(triple)
    entities = Vocabulary.build("entity", pa.array(ids), pa.array(names), pa.array(texts))
    train = np.unique(np.array(rows, np.int32), axis=0)
    return satkgc.KnowledgeGraph.from_arrays(kg.name, entities, kg.relations, train, kg.valid, kg.test), planted


def by_exact_names(kg: satkgc.KnowledgeGraph) -> list[Pair]:
    """The baseline: all pairs of entities whose normalised names are the same."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(NameTable(kg).sorted):
        groups.setdefault(name, []).append(i)
    pairs = [pair for name in sorted(groups) if name for pair in combinations(groups[name], 2)]
    return [frozenset(kg.entities.id(i) for i in pair) for pair in pairs]


def rate(pairs: list[Pair], planted: dict[Pair, str]) -> dict[str, Any]:
    """Precision at k, recall, and recall by the kind of change."""
    right = np.array([pair in planted for pair in pairs], bool)
    found, kinds = set(pairs), sorted(set(planted.values()))
    of = {kind: [pair for pair, own in planted.items() if own == kind] for kind in kinds}
    return {
        "pairs": len(pairs),
        "precision": {str(k): float(right[:k].mean()) for k in (20, 50, 100, len(planted)) if len(pairs) >= k},
        "precision of all": float(right.mean()) if len(pairs) else None,
        "recall at as many as planted": float(right[: len(planted)].sum() / len(planted)),
        "recall": float(right.sum() / len(planted)),
        "recall by change": {kind: round(sum(p in found for p in own) / len(own), 4) for kind, own in of.items()},
    }


def measure(kg: satkgc.KnowledgeGraph, recipe: str, share: float, twice: float, seed: int) -> dict[str, Any]:
    """One draw of duplicates."""
    graph, planted = plant(kg, share, twice, seed)
    with tempfile.TemporaryDirectory() as folder:
        completer = satkgc.train(graph, recipe=recipe, out=Path(folder) / "run").completer()
        began = time.process_time()
        found = completer.duplicates(n=100_000)
        seconds = time.process_time() - began
    return {
        "seed": seed,
        "planted": len(planted),
        "entities": graph.num_entities,
        "duplicates": rate([frozenset((one.entity, one.duplicate)) for one in found], planted),
        "exact normalised names": rate(by_exact_names(graph), planted),
        "cpu seconds": round(seconds, 1),
    }


def growth(size: int) -> dict[str, Any]:
    """How many pairs are compared in a synthetic graph of so many entities, 3 triples each, of names in two words."""
    rng = np.random.default_rng(0)
    names = synthetic.texts(synthetic.words(), size, 2, 3, rng)
    ids = pa.array([f"Q{i}" for i in range(size)])
    entities = Vocabulary.build("entity", ids, names, pa.array([""] * size))
    relations = Vocabulary.build("relation", *(pa.array([f"P{i}" for i in range(50)]),) * 2, pa.array([""] * 50))
    kg = satkgc.KnowledgeGraph.from_arrays("synthetic", entities, relations, synthetic.triples(size, 50, 3 * size))
    began = time.process_time()
    table, neighbours = NameTable(kg), NeighbourTable(kg)
    pairs = candidate_pairs(table, neighbours, None)
    compare_pairs(pairs, table, neighbours, None, 0.0)
    seconds = time.process_time() - began
    facts = {"entities": size, "pairs compared": len(pairs), "per entity": round(len(pairs) / size, 2)}
    return {**facts, "of all pairs": len(pairs) / (size * (size - 1) / 2), "cpu seconds": round(seconds, 1)}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="?", default="wordnet-sample")
    parser.add_argument("--recipe", default="quick")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--stated-twice", type=float, default=0.3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--growth", type=int, nargs="+", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = {"version": satkgc.__version__, "hardware": f"CPU, {platform.machine()}"}
    if options.growth:
        growth(200)  # compiles
        report = {"graph": "synthetic", **facts, "growth": [growth(size) for size in options.growth]}
    else:
        kg = satkgc.KnowledgeGraph.load(options.graph)
        chosen = {"recipe": options.recipe, "share": options.share, "stated twice": options.stated_twice}
        draws = [measure(kg, options.recipe, options.share, options.stated_twice, seed) for seed in options.seeds]
        report = {"graph": kg.name, **chosen, **facts, "draws": draws}
    print(json.dumps(report, indent=1) if options.json else report)


if __name__ == "__main__":
    main()
