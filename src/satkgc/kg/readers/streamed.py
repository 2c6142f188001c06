"""A large Parquet table of triples, numbered while it is read: its strings are never in memory all at once.

The way for tables whose entities are listed. It takes only what needs no explaining: wherever an id is empty or not
listed, a split has no known name or the file is damaged, it answers None, and the careful way says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from satkgc.arrays import Int32
from satkgc.kg.readers.columns import SPLIT_VALUES
from satkgc.kg.readers.source import most_unpacked

ROWS = 1 << 17
SPLITS = {value: split for split, values in SPLIT_VALUES.items() for value in values}


def number(
    source: Path, columns: Mapping[str, str], entities: pa.Array, relations: pa.Array | None
) -> tuple[dict[str, Int32], pa.Array] | None:
    """The triples by split as indices into `entities` and relations, and the relations, as found if not given.

    `columns` names the columns of head, relation, tail and, if there is one, split.
    """
    names = {role: pyarrow.dataset.field(name).cast(pa.large_string()) for role, name in columns.items()}
    # As expressions, because Arrow then builds one hash table, and looks up in several threads while it reads.
    wanted = names | {role: pc.index_in(names[role], value_set=entities) for role in ("head", "tail")}
    found = {} if relations is None else {id: i for i, id in enumerate(relations.to_pylist())}
    listed = relations is not None
    parts: dict[str, list[Int32]] = {}
    left = most_unpacked(source)
    try:
        table = pyarrow.dataset.dataset(source, format="parquet")
        for batch in table.scanner(columns=wanted, batch_size=ROWS).to_batches():
            relation = _codes(batch["relation"], found, grow=not listed)
            if batch["head"].null_count or batch["tail"].null_count or relation is None:
                return None
            rows = np.stack([batch["head"].to_numpy(), relation, batch["tail"].to_numpy()], 1)  # (n, 3)
            left -= rows.nbytes
            if left < 0:
                return None
            if "split" not in columns:
                parts.setdefault("train", []).append(rows)
                continue
            split = pc.utf8_lower(pc.utf8_trim_whitespace(batch["split"]))
            for value in pc.unique(split).to_pylist():
                if value not in SPLITS:
                    return None
                mask = pc.equal(split, value).to_numpy(zero_copy_only=False)
                parts.setdefault(SPLITS[value], []).append(rows[mask])
    except (pa.ArrowException, OSError, ValueError):  # the last for what is not UTF-8
        return None
    if "train" not in parts or "" in found:
        return None
    # In the order of the splits, whichever comes first in the file; each part is let go as it is joined.
    triples = {split: np.concatenate(parts.pop(split)) for split in SPLIT_VALUES if split in parts}
    trained = np.bincount(triples["train"][:, 1], minlength=len(found)) > 0
    if not all(trained[rows[:, 1]].all() for rows in triples.values()):
        return None
    return triples, relations if listed else pa.array(list(found), pa.large_string())


def _codes(column: pa.Array, found: dict[str, int], grow: bool) -> Any:
    """The numbers of a column of few distinct values; None where one is missing and may not be added."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if column.null_count or not (grow or found.keys() >= set(values)):
        return None
    numbers = np.array([found.setdefault(value, len(found)) for value in values], np.int32)
    return numbers[encoded.indices.to_numpy()]
