"""Streams that look at what passes, and stop what no parser would survive: entities that grow, deep nesting."""

from __future__ import annotations

import io
import re
from typing import IO
from xml.parsers import expat

from satkgc.errors import SatkgcError

LONGEST_ENTITY = 256  # bytes of an XML entity's text
FREE_EXPANSION = 16 << 20  # bytes that entities may grow to …
MOST_EXPANSION = 20  # … and beyond it this many times the bytes read; ontologies stay below 5
AFTER_ERROR = 64 << 10  # bytes
DEEPEST = 1_000  # elements within elements, or triple terms within triple terms

_ENTITY_START = b"<!ENTITY"
_ENTITY = re.compile(rb"<!ENTITY\s+(?:%\s+)?([^\s\"'<>]+)\s+(?:\"([^\"]*)\"|'([^']*)'|SYSTEM|PUBLIC)")
_REFERENCE = re.compile(rb"[&%](?!#|lt;|gt;|amp;|quot;|apos;)\w")
_TERM = re.compile(rb"<<\(|\)>>")
_HALF = re.compile(rb"(?:<<?|\)>?)\Z")


class Guard(io.RawIOBase):
    """Passes bytes on once they have been looked at."""

    def __init__(self, stream: IO[bytes], shown: str) -> None:
        self._stream, self._shown = stream, shown

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        data = self._stream.read(size)
        return self._look(data)

    def readable(self) -> bool:
        """Yes."""
        return True

    def _look(self, data: bytes) -> bytes:
        raise NotImplementedError

    def _too_deep(self) -> SatkgcError:
        what = f"nested more than {DEEPEST:,} deep: it may be made to use up the memory"
        return SatkgcError(what, where=self._shown, remedy="write it flat")


class XmlGuard(Guard):
    """Of RDF/XML: refuses entities that grow, and elements that lie too deep.

    Ontologies declare entities to shorten IRIs, `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`. Those are short and
    name no other entity. An entity made of entities can double its length with every line, and the parser puts it in
    wherever it is named.
    """

    def __init__(self, stream: IO[bytes], shown: str) -> None:
        super().__init__(stream, shown)
        self._tail = b""  # what may be the start of a declaration
        self._entities: dict[bytes, int] = {}  # lengths, by the way they are named
        self._count = self._grown = self._depth = 0
        self._left: int | None = None  # bytes that still pass, after what is no XML: the reader says what is wrong
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = lambda name, attributes: self._step(1)
        self._parser.EndElementHandler = lambda name: self._step(-1)

    def _look(self, data: bytes) -> bytes:
        self._look_at_entities(data)
        if self._left is None:
            try:
                self._parser.Parse(data)
            except expat.ExpatError:
                self._left = AFTER_ERROR
        else:
            data, self._left = data[: self._left], max(0, self._left - len(data))
        return data

    def _look_at_entities(self, data: bytes) -> None:
        seen = self._tail + data
        at = seen.find(_ENTITY_START)
        while at >= 0:
            match = _ENTITY.match(seen, at)
            text = (match[2] or match[3] or b"") if match else seen[at:]
            if len(text) > LONGEST_ENTITY + (0 if match else 2 * LONGEST_ENTITY) or (match and _REFERENCE.search(text)):
                raise self._grows("an XML entity is long or made of other entities")
            if not match:
                break
            self._entities[b"&" + match[1] + b";"] = len(text)
            at = seen.find(_ENTITY_START, match.end())
        self._tail = seen[at:] if at >= 0 else seen[-len(_ENTITY_START) :]
        self._count += len(data)
        self._grown += sum(length * data.count(name) for name, length in self._entities.items())
        if self._grown > FREE_EXPANSION + MOST_EXPANSION * self._count:
            raise self._grows("XML entities grow to many times the file's size")

    def _step(self, by: int) -> None:
        self._depth += by
        if self._depth > DEEPEST:
            raise self._too_deep()

    def _grows(self, what: str) -> SatkgcError:
        remedy = "write its text out where it is used"
        return SatkgcError(f"{what}: it may be made to fill the memory", where=self._shown, remedy=remedy)


class TermGuard(Guard):
    """Of N-Triples and Turtle and their kin: refuses triple terms, `<<( s p o )>>`, that lie too deep."""

    def __init__(self, stream: IO[bytes], shown: str) -> None:
        super().__init__(stream, shown)
        self._tail, self._depth = b"", 0  # half a token, and how deep it is
        self._hash = False  # whether the line so far may have a comment

    def _look(self, data: bytes) -> bytes:
        seen = self._tail + data
        half = _HALF.search(seen)
        self._tail = half[0] if half else b""
        *lines, rest = seen[: len(seen) - len(self._tail)].split(b"\n")
        if self._depth or b"<<(" in seen:
            for line in lines:
                self._follow(line)
                # A statement ends; no comment, which may stand within a term, is taken for the end of one.
                if line.rstrip().endswith(b".") and not self._hash and b"#" not in line:
                    self._depth = 0
                self._hash = False
            self._follow(rest)
        self._hash = b"#" in rest or (self._hash and not lines)
        return data

    def _follow(self, line: bytes) -> None:
        for match in _TERM.finditer(line):
            self._depth = self._depth + 1 if match[0] == b"<<(" else max(0, self._depth - 1)
            if self._depth > DEEPEST:
                raise self._too_deep()
