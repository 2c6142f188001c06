"""Relations that are left out when a source is read: the graph is as if the source did not have their triples."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping, Sequence

from satkgc.errors import SatkgcError

log = logging.getLogger("satkgc.kg")

# For sources that declare none: `rdf:type` is what people call it, whatever the form.
PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}


def to_leave_out(
    wanted: Sequence[str],
    ids: Sequence[str],
    names: Sequence[str],
    counts: Sequence[int],
    shown: str,
    prefixes: Mapping[str, str] = PREFIXES,
) -> list[int]:
    """Which relations are meant, by id, by prefix and the end of an IRI, or by name; tells what that leaves out.

    Every relation that has a triple is in `ids`, with its name and its number of triples.
    """
    by_id = {id: place for place, id in enumerate(ids)}
    places: dict[int, None] = {}
    for text in wanted:
        prefix, _, end = text.partition(":")
        written_out = prefixes[prefix] + end if prefix in prefixes else text
        called = [by_id[id] for id in (text, written_out) if id in by_id][:1]
        called = called or [place for place, name in enumerate(names) if name == text]
        if len(called) > 1:
            several = " or ".join(repr(ids[place]) for place in called[:3])
            raise SatkgcError(
                f"{len(called)} relations are called {text!r}", where=shown, remedy=f"give the id of one: {several}"
            )
        if not called:
            known = {known.lower(): known for known in [*names, *ids]}
            near = [known[match] for match in difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.5)]
            raise SatkgcError(
                f"no triple has the relation {text!r}",
                where=shown,
                remedy=f"did you mean {', '.join(map(repr, near))}?" if near else "`satkgc kg inspect` lists them",
            )
        places[called[0]] = None
    if sum(counts[place] for place in places) == sum(counts):
        raise SatkgcError("no triple is left", where=shown, remedy="leave fewer relations out")
    log.warning("%s: triples left out: %s", shown, ", ".join(f"{counts[i]:,} of {ids[i]!r}" for i in places))
    return list(places)
