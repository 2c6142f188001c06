"""One door for every source: a catalogue name, a binary folder, or whatever the readers know."""

from __future__ import annotations

import difflib
from dataclasses import fields
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.kg import store
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read_graph

# These speak of sources without a split; where there is one already they are silent, not wrong.
SPLIT_OPTIONS = {"split", "valid", "test", "seed"}


def load(source: str | Path, options: dict[str, Any]) -> KnowledgeGraph:
    """Open what `source` names: an existing path first, then the catalogue."""
    known = {f.name for f in fields(ReadOptions)}
    for option in options.keys() - known:
        near = difflib.get_close_matches(option, known, n=1)
        raise SatkgcError(
            f"unknown option {option!r}", remedy=f"did you mean {near[0]!r}?" if near else f"known: {sorted(known)}"
        )
    path = Path(source)
    if not path.exists():
        return _from_catalogue(str(source), options)
    if path.is_dir() and store.is_graph_folder(path):
        _refuse(options.keys() - SPLIT_OPTIONS, source)
        return store.open_graph(path)
    return read_graph(path, ReadOptions(**options))


def _from_catalogue(source: str, options: dict[str, Any]) -> KnowledgeGraph:
    from satkgc.kg.catalogue import find_entry, load_entry

    entry = find_entry(source)
    _refuse(options.keys() - SPLIT_OPTIONS, source)
    return load_entry(entry)


def _refuse(options: set[str], source: str | Path) -> None:
    if options:
        raise SatkgcError(f"{', '.join(sorted(options))} cannot be chosen for a graph that has been read", where=source)
