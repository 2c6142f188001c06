"""A CONSTRUCT query, cut into pages and counted. The rest of it is left to the endpoint, which knows its dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.endpoint import check_iri

# What may hold anything: IRIs, strings, comments.
_OPAQUE = re.compile(
    r"<[^<>\s]*>|\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*", re.DOTALL
)
_HEAD = re.compile(r"\bCONSTRUCT\b\s*(?:\{(?P<template>[^{}]*)\})?", re.IGNORECASE)
_REMEDY = "write CONSTRUCT { … } WHERE { … }, with ORDER BY if you like, and nothing after it"


@dataclass(frozen=True)
class Construct:
    """CONSTRUCT { template } WHERE { pattern } ORDER BY …"""

    text: str
    head: tuple[int, int]  # where CONSTRUCT and its template stand
    end: int  # behind the pattern
    variables: tuple[str, ...]
    ordered: bool  # by itself
    plain: bool = False  # whether each row is one statement, and another one

    @classmethod
    def of_graph(cls, graph: str | None = None) -> Construct:
        """All statements of a named graph, or of the default one."""
        pattern = "?s ?p ?o" if graph is None else f"GRAPH <{check_iri(graph, 'the graph')}> {{ ?s ?p ?o }}"
        return replace(cls.of(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {pattern} }}"), plain=True)

    @classmethod
    def of(cls, query: str) -> Construct:
        """From a text, or the name of a file that has it."""
        where = None
        if "{" not in query:
            where, query = query, _text(Path(query))
        bare = _OPAQUE.sub(lambda match: " " * len(match[0]), query)
        head, end = _HEAD.search(bare), bare.rfind("}") + 1
        if head is None or end <= head.start():
            raise SatkgcError("this is no CONSTRUCT query", where=where, remedy=_REMEDY)
        tail = bare[end:].upper().split()
        if wrong := [word for word in tail if word in ("LIMIT", "OFFSET", "GROUP", "HAVING", "VALUES")]:
            what = f"{wrong[0]} stands after the pattern, where pages are asked for"
            raise SatkgcError(what, where=where, remedy=_REMEDY)
        template = head["template"]
        names = re.findall(r"[?$](\w+)", bare[head.end() : end] if template is None else template)
        if not names:
            raise SatkgcError("this query has no variable", where=where, remedy=_REMEDY)
        return cls(query, head.span(), end, tuple(dict.fromkeys(names)), bool(tail))

    def page(self, start: int, size: int) -> str:
        """The query for so many rows from one on, in an order that stays the same."""
        order = "" if self.ordered else f"ORDER BY {' '.join(f'?{name}' for name in self.variables)} "
        return f"{self.text}\n{order}LIMIT {size} OFFSET {start}"

    def count(self) -> str:
        """The query for how many rows there are."""
        start, end = self.head
        return f"{self.text[:start]}SELECT (COUNT(*) AS ?n) {self.text[end : self.end]}"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read the query ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        raise SatkgcError(what, where=file, remedy="give a file with a CONSTRUCT query") from None
