"""A thesaurus in SKOS made of WN18RR's nouns, to try proposals on a hierarchy: broader, narrower, related, texts.

    python bench/thesaurus.py --concepts 2400 > thesaurus.ttl

Concepts are a subtree of the hypernyms, breadth first from one entity; every pair is written both ways, as thesauri do,
but for one in ten, which has one way alone. One concept in ten has a second broader one, at the depth of its first.
"""

from __future__ import annotations

import argparse
import json

import networkx as nx
import numpy as np

from satkgc import KnowledgeGraph

HEAD = """@prefix : <http://example.org/thesaurus/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""


def thesaurus(kg: KnowledgeGraph, concepts: int, seed: int = 0) -> str:
    """Turtle of that many concepts."""
    find = kg.relations.index
    up = {find(name) for name in ("_hypernym", "_instance_hypernym")}
    triples = np.concatenate([kg.split(split) for split in ("train", "valid", "test")]).tolist()
    tree = nx.DiGraph((h, t) for h, r, t in triples if r in up and h != t)
    root = max((e for e in tree if not tree.out_degree(e)), key=lambda e: len(nx.ancestors(tree, e)))
    chosen = list(nx.bfs_tree(tree.reverse(copy=False), root))[:concepts]
    depth = nx.single_source_shortest_path_length(tree.reverse(copy=False), root)
    kept = tree.subgraph(chosen)
    rng = np.random.default_rng(seed)
    broader = {(h, t) for h in chosen for t in list(kept.successors(h))[:1]}
    graph = nx.DiGraph(broader)
    for h in [h for h in chosen[1:] if rng.random() < 0.1]:
        level = [e for e in chosen if depth[e] == depth[h] - 1 and not graph.has_edge(h, e)]
        if level:
            broader.add((h, level[int(rng.integers(len(level)))]))
    lines = [HEAD]
    for e in chosen:
        name, words = (
            json.dumps(text, ensure_ascii=False) for text in (kg.entities.name(e), kg.entities.description(e))
        )
        lines.append(f":c{e} a skos:Concept ; skos:prefLabel {name}@en ; skos:definition {words}@en .\n")
    for h, t in sorted(broader):
        one_way = rng.random()
        lines += [f":c{h} skos:broader :c{t} .\n"] if one_way >= 0.05 else []
        lines += [f":c{t} skos:narrower :c{h} .\n"] if one_way < 0.95 else []
    inside = set(chosen)
    side = {find(name) for name in ("_derivationally_related_form", "_also_see", "_has_part", "_member_meronym")}
    related = sorted(
        {(min(h, t), max(h, t)) for h, r, t in triples if r in side and h in inside and t in inside and h != t}
    )
    lines += [f":c{a} skos:related :c{b} . :c{b} skos:related :c{a} .\n" for a, b in related]
    return "".join(lines)


def main() -> None:
    """Print Turtle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concepts", type=int, default=2400)
    options = parser.parse_args()
    print(thesaurus(KnowledgeGraph.load("WN18RR"), options.concepts))


if __name__ == "__main__":
    main()
