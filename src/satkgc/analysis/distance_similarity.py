"""The paper's distance–similarity table: are entities that are near in the graph near in the vector space?

    python -m satkgc.analysis.distance_similarity RUN

The mean cosine of the entity vectors of all pairs of entities at distance 1, 2, … in the training graph.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from satkgc.analysis.hops import blocks_of_hops, choose_sources
from satkgc.arrays import Float32, Float64
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph


def distance_similarity(
    kg: KnowledgeGraph, vectors: Float32, sources: int | None = 2_000, most: int = 8, seed: int = 0
) -> Float64:
    """Mean cosine at distance 1 … `most`, from at most `sources` entities to all; NaN where there is no pair.

    `vectors` (E, d) are of length one.
    """
    total, count = np.zeros(most + 1), np.zeros(most + 1, np.int64)
    for block, hops in blocks_of_hops(kg.adjacency, choose_sources(kg.num_entities, sources, seed)):
        cosines = vectors[block] @ vectors.T  # (b, E)
        near = (hops >= 0) & (hops <= most)
        total += np.bincount(hops[near], cosines[near], most + 1)
        count += np.bincount(hops[near], minlength=most + 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)[1:]


def main() -> None:
    """Print the table of a run as JSON."""
    from satkgc.analysis.plots import entity_vectors, open_run

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    try:
        kg, towers, texts = open_run(parser.parse_args().run)
    except SatkgcError as error:
        parser.exit(2, f"error: {error}\n")
    means = distance_similarity(kg, entity_vectors(kg, towers, texts))
    print(json.dumps({str(hops): float(mean) for hops, mean in enumerate(means, 1) if not np.isnan(mean)}))


if __name__ == "__main__":
    main()
