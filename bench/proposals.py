"""How many of a run's proposals say nothing new or close a cycle, with the graph's logic and without; networkx judges.

    python bench/proposals.py runs/mine --n 200

A row is *mirrored* if the graph or a better row has it turned round under the symmetric or inverse relation, *implied*
if the graph and better rows lead from its head to its tail in the hierarchy, *cyclic* if they lead back.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx

import satkgc
from satkgc.kg import SPLITS, relation_logic


def judge(kg: satkgc.KnowledgeGraph, rows: list[tuple[int, int, int]]) -> Counter[str]:
    """What is wrong with rows, best first."""
    logic = relation_logic(kg)
    held = {tuple(t) for split in SPLITS for t in kg.split(split).tolist()}
    trees = {r: nx.DiGraph() for r, one in enumerate(logic) if one.hierarchy}

    def add(h: int, r: int, t: int) -> None:
        held.add((h, r, t))
        if r in trees:
            trees[r].add_edge(h, t)
        inverse = logic[r].inverse
        if inverse in trees:
            trees[inverse].add_edge(t, h)

    for triple in list(held):
        add(*triple)
    found = Counter[str]()
    for h, r, t in rows:
        mirror = r if logic[r].symmetric else logic[r].inverse
        found["mirrored"] += mirror is not None and (t, mirror, h) in held
        if r in trees and h in trees[r] and t in trees[r]:
            found["implied"] += nx.has_path(trees[r], h, t)
            found["cyclic"] += nx.has_path(trees[r], t, h)
        add(h, r, t)
    return found


def measure(run: satkgc.Run, n: int) -> dict[str, Any]:
    """Counts of both ways to propose."""
    completer, kg = run.completer(), run.kg
    figures: dict[str, Any] = {"graph": kg.name, "recipe": run.config.recipe, "entities": kg.num_entities}
    with tempfile.TemporaryDirectory() as folder:
        for name, implied in (("with the logic", False), ("without it (--implied)", True)):
            file = Path(folder) / f"{implied}.csv"
            completer.propose(file, n, implied=implied, second_answers=True)
            with file.open(newline="", encoding="utf-8") as lines:
                table = list(csv.DictReader(lines))
            parts = (kg.entities, kg.relations, kg.entities)
            ids = [[p.index(row[c]) for p, c in zip(parts, ("head", "relation", "tail"), strict=True)] for row in table]
            rows = [(h, r, t) for h, r, t in ids]
            counts = judge(kg, rows)
            figures[name] = {
                "rows": len(rows),
                **{kind: int(counts[kind]) for kind in ("mirrored", "implied", "cyclic")},
            }
    return figures


def main() -> None:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="+")
    parser.add_argument("--n", type=int, default=200)
    options = parser.parse_args()
    print(json.dumps([measure(satkgc.Run.load(run), options.n) for run in options.run], indent=1))


if __name__ == "__main__":
    main()
