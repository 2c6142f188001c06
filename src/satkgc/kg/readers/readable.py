"""Names for what has none: an id or IRI turned into words."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pyarrow as pa

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|[^\s/])")
# Between a small letter or digit and a capital that starts a word, and before the last capital of a run: DNASequence.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def readable(id: str) -> str:
    """`http://x.org/birthPlace` → birth place, `/people/person` → people person, `new_york` → new york; never empty."""
    end = iri_end(id) if _IRI.match(id) else id
    words = " ".join(end.replace("_", " ").replace("/", " ").split())
    if " " not in words:
        words = _split_camel(words)
    return words or id


def iri_end(iri: str) -> str:
    """The last part of an IRI that holds anything: after its # or / or :, percent-escapes undone."""
    for part in reversed(re.split(r"[#/:]", iri)):
        if part:
            return unquote(part)
    return iri


def _split_camel(word: str) -> str:
    parts = _CAMEL.split(word)
    if len(parts) > 1 and word[0].islower():  # camelCase, of properties: birthPlace is "birth place", not "birth Place"
        parts = [part if part.isupper() and len(part) > 1 else part.lower() for part in parts]
    return " ".join(parts)


def readable_names(ids: pa.Array) -> pa.Array:
    """`readable` of a whole column."""
    return pa.array((readable(id) for id in ids.to_pylist()), pa.large_string(), size=len(ids))
