"""One door for every source: a catalogue name, a binary folder, or whatever the readers know."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.kg import store
from satkgc.kg.bolt import is_bolt
from satkgc.kg.endpoint import is_endpoint
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, Sources, is_pattern, is_url, read_graph

# These speak of sources without a split; where there is one already they are silent, not wrong.
SPLIT_OPTIONS = {"split", "valid", "test", "seed"}


def load(source: Sources, options: dict[str, Any]) -> KnowledgeGraph:
    """Open what `source` names: several sources as one graph, or an existing path first, then the catalogue."""
    check_options(options)
    if isinstance(source, list | tuple) and all(isinstance(one, str | Path) for one in source):
        if len(source) > 1 and store.is_graph_folder(Path(source[0])):
            return _with_more(Path(source[0]), source[1:], options)
        if len(source) != 1:
            return read_graph(source, ReadOptions(**options))
        source = source[0]
    if not isinstance(source, str | Path):
        raise _no_source(source)
    if is_url(source) or is_endpoint(source) or is_bolt(source) or is_pattern(source):
        return read_graph(source, ReadOptions(**options))
    path = Path(source)
    if not path.exists():
        return _from_catalogue(str(source), options)
    if path.is_dir() and store.is_graph_folder(path):
        _refuse(options.keys() - SPLIT_OPTIONS, source)
        return store.open_graph(path)
    return read_graph(path, ReadOptions(**options))


def check_options(options: dict[str, Any]) -> ReadOptions:
    """The options, if there are such."""
    known = {f.name for f in fields(ReadOptions)}
    for option in options.keys() - known:
        near = difflib.get_close_matches(option, known, n=1)
        raise SatkgcError(
            f"unknown option {option!r}", remedy=f"did you mean {near[0]!r}?" if near else f"known: {sorted(known)}"
        )
    return ReadOptions(**options)


def _with_more(folder: Path, sources: Sequence[str | Path], options: dict[str, Any]) -> KnowledgeGraph:
    """A graph that has been read, with the triples of further tables for training."""
    from satkgc.kg.readers.frames import add_tables

    return add_tables(store.open_graph(folder), sources, ReadOptions(**options))


def _no_source(source: object) -> SatkgcError:
    """What to do with a graph that some other library holds."""
    kind = f"{type(source).__module__}.{type(source).__name__}"
    library = kind.partition(".")[0]
    makers = {"pandas": "from_pandas", "polars": "from_pandas", "pyarrow": "from_pandas", "networkx": "from_networkx"}
    maker = (makers | {"rdflib": "from_rdflib"}).get(library, "from_pandas")
    return SatkgcError(f"{kind} is no file", remedy=f"use KnowledgeGraph.{maker}; load takes paths, patterns and URLs")


def _from_catalogue(source: str, options: dict[str, Any]) -> KnowledgeGraph:
    from satkgc.kg.catalogue import find_entry, load_entry

    entry = find_entry(source)
    _refuse(options.keys() - SPLIT_OPTIONS, source)
    return load_entry(entry)


def _refuse(options: set[str], source: str | Path) -> None:
    if options:
        raise SatkgcError(f"{', '.join(sorted(options))} cannot be chosen for a graph that has been read", where=source)
