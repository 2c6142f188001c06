"""Named graphs of RDF: the statements of those that are wanted."""

from __future__ import annotations

import difflib
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from satkgc.errors import SatkgcError

log = logging.getLogger("satkgc.kg")


def of_graphs(quads: Iterator[Any], wanted: Sequence[str], shown: str) -> Iterator[Any]:
    """The statements of the wanted graphs, or all of them where none is named; refuses one that has no statement."""
    if not wanted:
        yield from quads
        return
    met: Counter[str] = Counter()
    for quad in quads:
        graph = getattr(quad.graph_name, "value", "")  # the default graph has none
        met[graph] += 1
        if graph in wanted:
            yield quad
    for graph in wanted:
        if graph not in met:
            near = difflib.get_close_matches(graph, filter(None, met), n=3, cutoff=0.5)
            remedy = f"did you mean {' or '.join(near)}?" if near else f"it has {len(met.keys() - {''}):,} named graphs"
            raise SatkgcError(f"no statement is in the graph {graph}", where=shown, remedy=remedy)
    if rest := met.total() - sum(met[graph] for graph in set(wanted)):
        log.warning("%s: left out: %s of other graphs", shown, f"{rest:,} statement{'' if rest == 1 else 's'}")
