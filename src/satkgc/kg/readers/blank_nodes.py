"""What becomes of blank nodes without a name: triples between the things that they join, by these rules.

A class expression of OWL, as what a class C is a subclass of or equivalent to, or an individual is of:
- a restriction on P to D (someValuesFrom, allValuesFrom, hasValue, onClass) says (C, P, D), for every class in D where
  it is a union or intersection; datatypes are no entities;
- an intersection says all that its parts say, and (C, subClassOf, A) of a named part A;
- C equivalent to a union says (A, subClassOf, C) of each named part, and to an enumeration (i, type, C).
A union as a domain or range says so of each named part. A list says (s, p, m) of each member m.

Any other node n with (s, p, n) and (n, q, o), a record of several values, says (s, p/q, o), where p/q is a relation of
its own, named after both; q alone is left away if it is rdf:value. The type of such a node is not told.

What no rule covers, complements, axioms about axioms, property chains, nodes that nothing points to, says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from satkgc.arrays import Bool, Int32
from satkgc.kg.readers.options import PREFIXES

RDF, RDFS, OWL = (PREFIXES[prefix] for prefix in ("rdf", "rdfs", "owl"))
TYPE, FIRST, REST, NIL, VALUE = (f"{RDF}{name}" for name in ("type", "first", "rest", "nil", "value"))
SUBCLASS, EQUIVALENT = f"{RDFS}subClassOf", f"{OWL}equivalentClass"
UNION, INTERSECTION, ONE_OF = f"{OWL}unionOf", f"{OWL}intersectionOf", f"{OWL}oneOf"
FILLERS = tuple(f"{OWL}{name}" for name in ("someValuesFrom", "allValuesFrom", "hasValue", "onClass"))
ENDS = (f"{RDFS}domain", f"{RDFS}range")
DATATYPES = (
    "http://www.w3.org/2001/XMLSchema#",
    f"{RDFS}Literal",
    f"{RDF}langString",
    f"{RDF}PlainLiteral",
    f"{OWL}rational",
)

MOST_REFERRERS = 8  # a node that more things point to is no record of one of them
DEPTH = 6  # of nodes in nodes

Links = dict[int, list[tuple[str, int]]]


class BlankNodes:
    """The nodes without a name of a graph, and the triples that they stand for.

    `triples` has nodes and relations as places in `keys` and `relations`; `nameless` marks nodes.
    """

    def __init__(self, triples: Int32, nameless: Bool, keys: Sequence[str], relations: Sequence[str]) -> None:
        self._nameless, self._keys = nameless, keys
        self._links: Links = defaultdict(list)
        self._referrers: dict[int, int] = defaultdict(int)
        self._loose = triples[nameless[triples[:, 0]] | nameless[triples[:, 2]]]
        self._relations = relations
        for head, relation, tail in self._loose.tolist():
            if nameless[head]:
                self._links[head].append((relations[relation], tail))
            if nameless[tail]:
                self._referrers[tail] += 1
        self.used: set[int] = set()  # those that say something

    def statements(self) -> Iterator[tuple[int, tuple[str, ...], int]]:
        """Head, relation and tail; a relation of several parts is composed."""
        for head, relation, tail in self._loose.tolist():
            if not self._nameless[head]:
                yield from self._say(head, self._relations[relation], tail)

    def left_out(self) -> int:
        """How many statements have a nameless node that says nothing."""
        return sum(
            not any(self._nameless[end] and end in self.used for end in (head, tail))
            for head, _, tail in self._loose.tolist()
        )

    def _say(self, head: int, relation: str, node: int) -> Iterator[tuple[int, tuple[str, ...], int]]:
        if relation in (SUBCLASS, EQUIVALENT, TYPE):
            yield from self._class(head, relation, node, set())
        elif relation in (UNION, INTERSECTION, ONE_OF):  # of a named class
            for part in self._members(node):
                yield from self._part(head, EQUIVALENT, relation, part, {node})
        elif relation in ENDS:
            yield from ((head, (relation,), part) for part in self._classes(node, set()))
        elif not relation.startswith(OWL):
            yield from self._record(head, (relation,), node, set())

    def _class(self, head: int, link: str, node: int, seen: set[int]) -> Iterator[tuple[int, tuple[str, ...], int]]:
        """What a class expression says of a class or individual."""
        if self._too_deep(node, seen):
            return
        links = dict(self._links[node])
        property = links.get(f"{OWL}onProperty")
        if property is not None and not self._nameless[property]:
            for filler in FILLERS:
                for part in self._classes(links[filler], seen) if filler in links else ():
                    self.used.add(node)
                    yield head, (self._keys[property],), part
        for kind in (UNION, INTERSECTION, ONE_OF):
            for part in self._members(links[kind]) if kind in links else ():
                for statement in self._part(head, link, kind, part, {*seen, node}):
                    self.used.add(node)
                    yield statement

    def _part(
        self, head: int, link: str, kind: str, part: int, seen: set[int]
    ) -> Iterator[tuple[int, tuple[str, ...], int]]:
        if kind == INTERSECTION:
            if self._nameless[part]:
                yield from self._class(head, SUBCLASS if link == EQUIVALENT else link, part, seen)
            else:
                yield head, (SUBCLASS if link == EQUIVALENT else link,), part
        elif link == EQUIVALENT and not self._nameless[part]:
            yield part, (SUBCLASS if kind == UNION else TYPE,), head

    def _classes(self, node: int, seen: set[int]) -> Iterator[int]:
        """The named classes or individuals in an expression of unions and intersections."""
        if not self._nameless[node]:
            if not self._keys[node].startswith(DATATYPES):
                yield node
        elif not self._too_deep(node, seen):
            for kind, value in self._links[node]:
                for part in self._members(value) if kind in (UNION, INTERSECTION, ONE_OF) else ():
                    for named in self._classes(part, {*seen, node}):
                        self.used.add(node)
                        yield named

    def _record(
        self, head: int, path: tuple[str, ...], node: int, seen: set[int]
    ) -> Iterator[tuple[int, tuple[str, ...], int]]:
        if self._too_deep(node, seen) or any(link.startswith(OWL) for link, _ in self._links[node]):
            return
        if any(link == FIRST for link, _ in self._links[node]):
            steps = [(path, member) for member in self._members(node)]
        else:
            steps = [(path if q == VALUE else (*path, q), o) for q, o in self._links[node] if q != TYPE]
        for longer, value in steps:
            if not self._nameless[value]:
                self.used.add(node)
                yield head, longer, value
                continue
            for statement in self._record(head, longer, value, {*seen, node}):
                self.used.add(node)
                yield statement

    def _members(self, node: int) -> Iterator[int]:
        """The members of an RDF list."""
        passed: set[int] = set()
        while self._nameless[node] and node not in passed:
            passed.add(node)
            links = dict(self._links[node])
            if FIRST in links:
                self.used.add(node)
                yield links[FIRST]
            node = links.get(REST, node)

    def _too_deep(self, node: int, seen: set[int]) -> bool:
        return node in seen or len(seen) >= DEPTH or self._referrers[node] > MOST_REFERRERS


def compose(path: Sequence[str], taken: Callable[[str], bool]) -> str:
    """An IRI for relations one after the other: the first, and the last part of each further one, or all of it."""
    from urllib.parse import quote

    short = "/".join([path[0], *(step.replace("#", "/").rstrip("/").rpartition("/")[2] for step in path[1:])])
    return "/".join([path[0], *(quote(step, safe="") for step in path[1:])]) if taken(short) else short
