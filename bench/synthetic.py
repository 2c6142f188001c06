"""A seeded graph of any size with power-law degrees and texts, as two Parquet files.

    python bench/synthetic.py OUT --entities 4600000 --triples 20600000 --relations 822

writes OUT/triples.parquet (head, relation, tail) and OUT/entities.parquet (id, name, description).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS = 1 << 18
BLOCK = 1 << 25  # triples made at once
SYLLABLES = ["ba", "den", "fir", "go", "hal", "ki", "lor", "mu", "na", "per", "qui", "ros", "sta", "tel", "vu", "zan"]


def triples(entities: int, relations: int, count: int, seed: int = 0) -> np.ndarray:
    """Distinct (count, 3) triples: nearly every entity is a head, and few entities are most of the tails."""
    return np.concatenate(list(blocks(entities, relations, count, seed)))


def blocks(entities: int, relations: int, count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """The same in parts of at most BLOCK triples, each with heads of its own, so that no triple is in two of them."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(entities)  # ranks are spread over the ids
    parts = -(-count // BLOCK)
    for part in range(parts):
        wanted, kept = count * (part + 1) // parts - count * part // parts, np.empty(0, np.int64)
        while len(kept) < wanted:
            extra = int(1.05 * (wanted - len(kept))) + 16
            first = np.arange(part, min(entities, parts * extra), parts) if not len(kept) else np.empty(0, np.int64)
            drawn = place[(entities * rng.random(extra - len(first)) ** 1.5).astype(np.int64)]
            head = np.concatenate([first, np.minimum(drawn - drawn % parts + part, entities - parts + part)])
            tail = place[(entities * rng.random(extra) ** 3).astype(np.int64)]
            relation = (relations * rng.random(extra) ** 3).astype(np.int64)
            kept = np.unique(np.concatenate([kept, (head * relations + relation) * entities + tail]))
        kept = rng.permutation(kept)[:wanted]
        head, rest = np.divmod(kept, relations * entities)
        yield np.stack([head, *np.divmod(rest, entities)], 1).astype(np.int32)


def words(seed: int = 0, count: int = 5000) -> pa.Array:
    """Made-up words."""
    rng = np.random.default_rng(seed)
    return pa.array(["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(count)])


def texts(vocabulary: pa.Array, rows: int, shortest: int, longest: int, rng: np.random.Generator) -> pa.Array:
    """So many texts, each of that many words, the frequent words first in the vocabulary."""
    lengths = rng.integers(shortest, longest + 1, rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    picks = (len(vocabulary) * rng.random(int(lengths.sum())) ** 4).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(picks))), " ")


def ids(prefix: str, numbers: np.ndarray) -> pa.Array:
    """Q17, P4 …"""
    digits = pc.cast(pa.array(numbers), pa.string())
    return pc.binary_join_element_wise(prefix, digits, "")


def write(
    out: Path, entities: int, relations: int, count: int, seed: int = 0, description: tuple[int, int] = (8, 32)
) -> None:
    """Write both Parquet files, in batches; descriptions have so many words, at least and at most."""
    out.mkdir(parents=True, exist_ok=True)
    rng, vocabulary = np.random.default_rng(seed + 1), words(seed)
    text = pa.schema([("id", pa.string()), ("name", pa.string()), ("description", pa.string())])
    with pq.ParquetWriter(out / "entities.parquet", text, compression="snappy") as writer:
        for start in range(0, entities, ROWS):
            numbers = np.arange(start, min(start + ROWS, entities))
            columns = [ids("Q", numbers), texts(vocabulary, len(numbers), 1, 4, rng)]
            columns.append(texts(vocabulary, len(numbers), *description, rng))
            writer.write_batch(pa.record_batch(columns, schema=text))
    edges = pa.schema([("head", pa.string()), ("relation", pa.string()), ("tail", pa.string())])
    with pq.ParquetWriter(out / "triples.parquet", edges, compression="snappy") as writer:
        for rows in blocks(entities, relations, count, seed):
            for start in range(0, len(rows), ROWS):
                head, relation, tail = rows[start : start + ROWS].T
                columns = [ids("Q", head), ids("P", relation), ids("Q", tail)]
                writer.write_batch(pa.record_batch(columns, schema=edges))


def main() -> None:
    """Parse and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--entities", type=int, default=4_600_000)
    parser.add_argument("--relations", type=int, default=822)
    parser.add_argument("--triples", type=int, default=20_600_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(given.out, given.entities, given.relations, given.triples, given.seed)


if __name__ == "__main__":
    main()
