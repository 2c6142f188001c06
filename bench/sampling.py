"""How fast subgraphs and batches are drawn: on the benchmarks against networkx, and on graphs of growing size.

    python bench/sampling.py --json                    # WN18RR and FB15k-237, where SATKGC_DATA holds them
    python bench/sampling.py --part scale --plot docs/images/sampling-scale.png    # 100 thousand to 20 million triples

The baseline is the walk written plainly over a networkx MultiGraph. Both sides run in this process on one core, from
the same centres, until they have found the same number of distinct triples; `speedup` compares distinct triples a
second. `batch_ms` is the median of whole batches: centre, walk, selection, visit counts, exact hops; on the growing
graphs `without_hops` has the same for models that need none. `tables_gib` is what the sampler keeps besides the graph.
Times are those of the thread, so that what else the machine does counts for neither side.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa

import synthetic
from satkgc import KnowledgeGraph, SatkgcError
from satkgc.kg import Vocabulary
from satkgc.sampling import Needs, Sampler, SamplingConfig, SubgraphSampler, make_sampler

WIKIDATA5M = {"entities": 4_594_485, "relations": 822, "triples": 20_614_279}


def multigraph(kg: KnowledgeGraph) -> nx.MultiGraph:
    """The training graph, each triple an edge with its number as the key."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(kg.num_entities))
    graph.add_edges_from((h, t, i) for i, (h, _, t) in enumerate(kg.train.tolist()))
    return graph


def plain_walk(graph: nx.MultiGraph, centre: list[int], config: SamplingConfig, rng: random.Random) -> set[int]:
    """BRWR from a centre triple, as one would write it down."""
    ends = [centre[0], centre[2]]
    start = rng.choices(ends, [1 / len(graph[v]) for v in ends])[0]
    found: set[int] = set()
    u = start
    for _ in range(100 * config.subgraph_triples):
        if rng.random() < config.restart:
            u = start
            continue
        neighbours = list(graph.neighbors(u))
        v = rng.choices(neighbours, [1 / len(graph[w]) for w in neighbours])[0]
        found.add(rng.choice(list(graph[u][v])))
        if len(found) == config.subgraph_triples:
            break
        u = v
    return found


def against_networkx(name: str, distinct: int, walks: int) -> dict[str, Any]:
    """Triples a second of both, and the time of whole batches."""
    kg = KnowledgeGraph.load(name)
    config = SamplingConfig(subgraph_triples=distinct)
    sampler = make_sampler(kg, config, 0, Needs(hops=True))
    assert isinstance(sampler, SubgraphSampler)
    graph, rng = multigraph(kg), random.Random(0)
    sampler.draw(0)  # compiled before the clock runs
    ours = theirs = 0.0
    our_triples = their_triples = 0
    for i, centre in enumerate(np.random.default_rng(0).choice(len(kg.train), walks).tolist()):
        began = time.thread_time()
        their_triples += len(plain_walk(graph, kg.train[centre].tolist(), config, rng))
        theirs += time.thread_time() - began
        for repeat in range(20):  # one is too short to time, and lengths vary
            began = time.thread_time()
            our_triples += len(sampler.subgraph(centre, 20 * i + repeat))
            ours += time.thread_time() - began
    return {
        "distinct_triples": distinct,
        "triples_per_s": our_triples / ours,
        "networkx_triples_per_s": their_triples / theirs,
        "speedup": our_triples / ours / (their_triples / theirs),
        "walk_ms": 1000 * ours / (20 * walks),
        **batches(sampler, 100),
    }


def batches(sampler: Sampler, count: int) -> dict[str, float]:
    """Milliseconds of a batch."""
    times = []
    for step in range(1, count + 1):
        began = time.thread_time()
        sampler.draw(step)
        times.append(1000 * (time.thread_time() - began))
    return {"batch_ms": statistics.median(times), "batch_ms_p95": float(np.percentile(times, 95))}


def synthetic_graph(triples: int) -> KnowledgeGraph:
    """A graph with Wikidata5M's proportions."""
    share = triples / WIKIDATA5M["triples"]
    entities = int(WIKIDATA5M["entities"] * share)
    ids = synthetic.ids("Q", np.arange(entities))
    relations = synthetic.ids("P", np.arange(WIKIDATA5M["relations"]))
    return KnowledgeGraph.from_arrays(
        f"synthetic-{triples}",
        Vocabulary.build("entity", ids, ids, pa.nulls(entities, pa.string()).fill_null("")),
        Vocabulary.build("relation", relations, relations, pa.nulls(len(relations), pa.string()).fill_null("")),
        synthetic.triples(entities, WIKIDATA5M["relations"], triples),
    )


def at_size(triples: int) -> dict[str, Any]:
    """Time and memory on a synthetic graph."""
    kg = synthetic_graph(triples)
    assert kg.adjacency is not None  # built here, as part of the graph
    began = time.thread_time()
    sampler = make_sampler(kg, SamplingConfig(), 0, Needs(hops=True))
    ready = time.thread_time() - began
    assert isinstance(sampler, SubgraphSampler)
    sampler.draw(0)
    parts = (sampler, sampler.schedule, sampler._search)
    kept = [array for part in parts for array in vars(part).values() if isinstance(array, np.ndarray)]
    figures = {
        "triples": triples,
        "entities": kg.num_entities,
        "ready_s": ready,
        "tables_gib": sum(array.nbytes for array in kept) / 2**30,
        **batches(sampler, 50),
    }
    return {**figures, "without_hops": batches(make_sampler(kg, SamplingConfig(), 0), 50)}


def plot(path: Path, rows: list[dict[str, Any]]) -> None:
    """Milliseconds a batch over the size of the graph."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    sizes = [row["triples"] for row in rows]
    for label, parts in (("with exact hops", rows), ("without", [row["without_hops"] for row in rows])):
        (line,) = axes.plot(sizes, [part["batch_ms"] for part in parts], marker="o", label=label)
        p95 = [part["batch_ms_p95"] for part in parts]
        axes.plot(sizes, p95, linestyle=":", color=line.get_color(), label="95th percentile")
    axes.axhline(50, color="grey", linewidth=1, linestyle="--", label="50 ms")
    axes.set(xscale="log", xlabel="training triples", ylabel="milliseconds a batch")
    axes.set(title="512 triples from a walk of 10,000, on one core")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run the parts asked for and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("graphs", "scale", "all"), default="all")
    parser.add_argument("--graphs", nargs="+", default=["WN18RR", "FB15k-237"])
    parser.add_argument("--distinct", type=int, default=10_000, help="distinct triples of a walk")
    parser.add_argument("--walks", type=int, default=8, help="walks by networkx")
    sizes = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, WIKIDATA5M["triples"]]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="triples of the growing graphs")
    parser.add_argument("--plot", type=Path, help="draw the time a batch over the size of the graph")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in options.graphs if options.part != "scale" else []:
        try:
            figures[name] = against_networkx(name, options.distinct, options.walks)
        except SatkgcError as error:
            figures[name] = {"skipped": str(error)}
    if options.part != "graphs":
        figures["scale"] = [at_size(size) for size in options.sizes]
        if options.plot:
            plot(options.plot, figures["scale"])
    print(json.dumps(figures, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
