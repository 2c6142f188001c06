"""A stream of RDF/XML that refuses entities which grow: the parser puts them in wherever they are named.

Ontologies declare entities to shorten IRIs, `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`. Those are short and
name no other entity. An entity made of entities can double its length with every line.
"""

from __future__ import annotations

import io
import re
from typing import IO

from satkgc.errors import SatkgcError

LONGEST = 256  # bytes of an entity's text
_START = b"<!ENTITY"
_WHOLE = re.compile(rb"<!ENTITY\s+(?:%\s+)?[^\s\"'<>]+\s+(?:\"([^\"]*)\"|'([^']*)'|SYSTEM|PUBLIC)")
_REFERENCE = re.compile(rb"[&%](?!#|lt;|gt;|amp;|quot;|apos;)\w")


class GuardedXml(io.RawIOBase):
    """Passes bytes on once the entity declarations in them have been looked at."""

    def __init__(self, stream: IO[bytes], shown: str) -> None:
        self._stream = stream
        self._shown = shown
        self._tail = b""  # what may be the start of a declaration

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        data = self._stream.read(size)
        seen = self._tail + data
        at = seen.find(_START)
        while at >= 0:
            found = _WHOLE.match(seen, at)
            text = (found[1] or found[2] or b"") if found else seen[at:]
            if len(text) > LONGEST + (0 if found else 2 * LONGEST) or (found and _REFERENCE.search(text)):
                raise SatkgcError(
                    "an XML entity is long or made of other entities: it may be made to fill the memory",
                    where=self._shown,
                    remedy="write its text out where it is used",
                )
            if not found:
                break
            at = seen.find(_START, found.end())
        self._tail = seen[at:] if at >= 0 else seen[-len(_START) :]
        return data

    def readable(self) -> bool:
        """Yes."""
        return True
