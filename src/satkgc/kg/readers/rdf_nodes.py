"""RDF statements as a graph.

A statement whose object is an IRI is a triple of the graph; its predicate is the relation, `rdf:type` like any other.
Statements that give names, other names and descriptions become texts (`rdf_texts.py`). Other literals go behind the
description where they are asked for (`literals.py`); else they are left out and counted.

An entity is what a triple joins, and what has a text and is not used as a predicate. A blank node is an entity if the
file names it, and is then called _:b0, _:b1 … in order of appearance, for its label means nothing outside of the file.
Blank nodes without a name (lists, restrictions, records of several values) become triples between the things that they
join where a rule of `blank_nodes.py` says how; the rest is left out and counted, as are statements about statements.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from satkgc.arrays import Bool, Int32
from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import finish
from satkgc.kg.readers.blank_nodes import BlankNodes, compose
from satkgc.kg.readers.columns import counted, with_other_names
from satkgc.kg.readers.literals import Literals
from satkgc.kg.readers.options import PREFIXES, ReadOptions, excluded_relations
from satkgc.kg.readers.rdf_texts import RdfTexts
from satkgc.kg.vocabulary import Vocabulary, name_from_id

log = logging.getLogger("satkgc.kg")

FEW = 5  # examples in a message
LONGEST_IRI = 8_192  # characters; a prefix of a megabyte would make every entity one


class RdfNodes:
    """All that is kept of the statements: nodes by number, triples of numbers, texts."""

    def __init__(self, shown: str, options: ReadOptions) -> None:
        from pyoxigraph import BlankNode, Literal, NamedNode

        self._kinds = NamedNode, BlankNode, Literal
        self.prefixes = dict(PREFIXES)
        self.shown = shown
        self._nodes: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._triples = array("i")  # head, relation, tail, head, …
        self._texts = RdfTexts(options)
        self._composed: dict[str, tuple[str, ...]] = {}  # relations made of several
        self._values = Literals(options)
        self._literals: Counter[str] = Counter()  # those left out, by predicate
        self._no_texts: Counter[str] = Counter()  # what should be a text and is a node, by predicate
        self._quoted = 0
        self._languages = options.languages

    def add(self, quad: Any) -> None:
        """Take one statement in."""
        named, blank, literal = self._kinds
        subject, object = quad.subject, quad.object
        predicate = quad.predicate.value
        if not isinstance(subject, (named, blank)):
            self._quoted += 1
            return
        if (role := self._texts.role(predicate, self.prefixes)) is not None:
            if isinstance(object, literal):
                self._add_text(subject, role, object)
            else:
                self._no_texts[predicate] += 1
            return
        if isinstance(object, literal):
            wanted = self._values.wants(predicate, self.prefixes)
            if not (wanted and self._offer(subject, predicate, object)):
                self._literals[predicate] += 1
        elif not isinstance(object, (named, blank)):
            self._quoted += 1
        else:
            self._add_triple(subject, predicate, object)

    def _add_text(self, subject: Any, role: tuple[str, int], literal: Any) -> None:
        self._texts.offer(self._number(subject), role, literal.value, literal.language)

    def _add_triple(self, subject: Any, predicate: str, object: Any) -> None:
        relation = self._index(predicate, self._relations)
        self._triples.extend((self._number(subject), relation, self._number(object)))

    def _offer(self, subject: Any, predicate: str, object: Any) -> bool:
        number = self._number(subject)
        return self._values.offer(number, predicate, object.value, object.datatype.value, object.language)

    def _number(self, node: Any) -> int:
        return self._index(self._key(node), self._nodes)

    def _key(self, node: Any) -> str:
        return node.value if isinstance(node, self._kinds[0]) else f"_:{node.value}"

    def _index(self, key: str, known: dict[str, int]) -> int:
        number = known.get(key)
        if number is None:
            self._check_length(key)
            number = known[key] = len(known)
        return number

    def _check_length(self, key: str) -> None:
        if len(key) > LONGEST_IRI:
            raise SatkgcError(f"an IRI of {len(key):,} characters", where=self.shown, remedy="shorten it")

    def graph(self, name: str, options: ReadOptions) -> KnowledgeGraph:
        """Choose the entities, number them and put the graph together."""
        self._texts.refuse_unused([*self._literals, *self._relations], self.shown)
        self._values.refuse_unused([*self._literals, *self._values.predicates], self.shown)
        keys = list(self._nodes)
        triples = np.array(self._triples, np.int32).reshape(-1, 3)
        named = np.fromiter((bool(self._texts.names.of(i)) for i in range(len(keys))), bool, len(keys))
        nameless = np.fromiter((key.startswith("_:") for key in keys), bool, len(keys)) & ~named
        triples = self._without_nameless(name, triples, nameless, keys)
        relation_keys = list(self._relations)
        if options.exclude:
            counts = np.bincount(triples[:, 1], minlength=len(relation_keys)).tolist()
            there = [place for place, count in enumerate(counts) if count]
            ids, names = [relation_keys[i] for i in there], [self._name(relation_keys[i]) for i in there]
            places = excluded_relations(
                options.exclude, ids, names, [counts[i] for i in there], self.shown, self.prefixes
            )
            triples = triples[~np.isin(triples[:, 1], [there[place] for place in places])]
        if not len(triples):
            raise SatkgcError(
                "no statement in it joins two entities", where=self.shown, remedy="give a file with links between IRIs"
            )
        chosen = np.fromiter(
            (self._texts.has_text(i) and key not in self._relations for i, key in enumerate(keys)),
            bool,
            len(keys),
        )
        chosen[triples[:, [0, 2]].ravel()] = True
        chosen &= ~nameless
        numbers = np.cumsum(chosen, dtype=np.int32) - 1
        used, relation = np.unique(triples[:, 1], return_inverse=True)
        compact = np.stack([numbers[triples[:, 0]], relation.astype(np.int32), numbers[triples[:, 2]]], axis=1)
        entities = self._vocabulary("entity", [keys[i] for i in np.flatnonzero(chosen)])
        relations = self._vocabulary("relation", [relation_keys[i] for i in used])
        splits: dict[str, Int32] = {"train": compact}
        return finish(name, entities, relations, splits, {}, options)

    def _without_nameless(self, name: str, triples: Int32, nameless: Bool, keys: list[str]) -> Int32:
        """The triples of nodes that are entities, and those that the other nodes stand for."""
        relation_keys = list(self._relations)
        loose = nameless[triples[:, 0]] | nameless[triples[:, 2]]
        if not loose.any():
            self._tell(name, 0, 0)
            return triples
        blank = BlankNodes(triples, nameless, keys, relation_keys)
        made = array("i")
        for head, path, tail in blank.statements():
            made.extend((head, self._index(self._relation(path), self._relations), tail))
        self._tell(name, blank.left_out(), len(made) // 3)
        return np.concatenate([triples[~loose], np.array(made, np.int32).reshape(-1, 3)])

    def _relation(self, path: tuple[str, ...]) -> str:
        """The id of a relation made of several."""
        if len(path) == 1:
            return path[0]
        key = compose(path, lambda short: self._composed.get(short, path) != path or self._is_node(short))
        self._composed[key] = path
        return key

    def _is_node(self, key: str) -> bool:
        return key in self._nodes

    def _vocabulary(self, kind: str, keys: list[str]) -> Vocabulary:
        names = [self._name(key) for key in keys]
        numbers = [self._nodes.get(key, 2**31) for key in keys]
        texts = self._texts
        called = {predicate: self._name(predicate) for predicate in self._values.predicates}
        described = [self._values.described(i, texts.descriptions.of(i), called) for i in numbers]
        descriptions = [
            with_other_names(text, texts.other_names(i)) for i, text in zip(numbers, described, strict=True)
        ]
        blank = iter(range(len(keys)))
        ids = [f"_:b{next(blank)}" if key.startswith("_:") else key for key in keys]
        columns = [pa.array(column, pa.large_string()) for column in (ids, names, descriptions)]
        return Vocabulary.build(kind, *columns)

    def _name(self, key: str) -> str:
        if key in self._composed:
            return " ".join(self._name(step) for step in self._composed[key])
        return self._texts.names.of(self._nodes.get(key, 2**31)) or name_from_id(key)

    def _predicates(self, counts: Counter[str]) -> str:
        """The predicates of most of what was left out."""
        most = [f"{count:,} of {predicate}" for predicate, count in counts.most_common(FEW)]
        return ", ".join([*most, "…"] if len(counts) > FEW else most)

    def _tell(self, name: str, loose: int, made: int) -> None:
        left_out = [
            f"{count:,} {what}"
            for count, what in (
                (self._literals.total(), f"literals ({self._predicates(self._literals)})"),
                (
                    self._no_texts.total(),
                    f"names and descriptions that are no text ({self._predicates(self._no_texts)})",
                ),
                (loose, "triples of blank nodes without a name"),
                (self._quoted, "statements about statements"),
            )
            if count
        ]
        if left_out:
            log.warning("%s: left out of the graph: %s", name, ", ".join(left_out))
        if self._values.cut:
            log.warning("%s: %s cut short or left out of long descriptions", name, counted(self._values.cut, "literal"))
        if made:
            log.warning("%s: %s made of blank nodes", name, counted(made, "triple"))
        counts = self._texts.by_language
        plain = self._languages == ReadOptions.languages and not any(counts)  # nobody asked, and no label speaks of any
        if self._languages and not plain and not self._texts.any_preferred():
            there = ", ".join(f"{count:,} {tag or 'without a language'}" for tag, count in counts.most_common(FEW))
            preferred = ", ".join(tag or "no language" for tag in self._languages)
            log.warning("%s: no name or description is in %s; there are %s", name, preferred, there or "none at all")
