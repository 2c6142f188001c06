"""RDF in any of its forms, plain or packed with gzip or zstd, read as a stream by pyoxigraph.

A statement whose object is an IRI is a triple of the graph; its predicate is the relation, `rdf:type` like any other.
Statements that give names and descriptions (NAMES, DESCRIPTIONS) become texts. Other literals have no place in the
graph; they are left out and counted. Named graphs are read as one, unless some are chosen.

An entity is what a triple joins, and what has a name or description and is not used as a predicate. A blank node is
an entity if the file names it, and is then called _:b0, _:b1 … in order of appearance, for its label means nothing
outside of the file. Blank nodes without a name (lists, restrictions, records of several values) would be entities
without text: their triples are left out and counted, as are statements about statements.
"""

from __future__ import annotations

import difflib
import io
import logging
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from satkgc.arrays import Int32
from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.assemble import finish
from satkgc.kg.readers.options import PREFIXES, ReadOptions, excluded_relations
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.vocabulary import Vocabulary, name_from_id

log = logging.getLogger("satkgc.kg")

FEW = 5  # examples in a message
ENDLESS = "a literal or IRI that does not end, or has more than 16 MiB"  # the most that pyoxigraph holds
BLOCK = 1 << 20  # bytes of statements looked at again at once, to find the broken ones
LONGEST_IRI = 8_192  # characters; a prefix of a megabyte would make every entity one
LONGEST_ENTITY = 256  # bytes of an XML entity's text

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
# The best first, where one language offers several.
NAMES = (
    f"{_RDFS}label", f"{_SKOS}prefLabel", "http://schema.org/name", "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)  # fmt: skip
DESCRIPTIONS = (
    "http://schema.org/description", "https://schema.org/description", f"{_RDFS}comment",
    "http://purl.org/dc/terms/description", f"{_SKOS}definition",
)  # fmt: skip

_ENTITY_START = b"<!ENTITY"
_ENTITY = re.compile(rb"<!ENTITY\s+(?:%\s+)?[^\s\"'<>]+\s+(?:\"([^\"]*)\"|'([^']*)'|SYSTEM|PUBLIC)")
_REFERENCE = re.compile(rb"[&%](?!#|lt;|gt;|amp;|quot;|apos;)\w")


def read(files: Sequence[SourceFile], options: ReadOptions) -> KnowledgeGraph:
    """Read RDF files as one graph; the form of each is told by its ending."""
    if find_spec("pyoxigraph") is None:
        raise SatkgcError("RDF needs pyoxigraph", where=files[0].shown, remedy="pip install 'satkgc[rdf]'")
    shown = files[0].shown if len(files) == 1 else f"{files[0].shown} and {len(files) - 1:,} more"
    nodes = _Nodes(shown, options)
    quads = (quad for file in files for quad in _quads(file, nodes.prefixes))
    for quad in _of_graphs(quads, options.graphs, shown):
        nodes.add(quad)
    return nodes.graph(options.name or Path(files[0].stem).stem, options)


def _quads(file: SourceFile, prefixes: dict[str, str]) -> Iterator[Any]:
    """The statements of a file; the prefixes that it declares are added to `prefixes`."""
    import pyoxigraph

    ending = Path(file.stem).suffix.lower().removeprefix(".")
    form = pyoxigraph.RdfFormat.from_extension("rdf" if ending == "owl" else ending)
    assert form is not None  # `read_graph` knows which endings there are
    with file.open() as stream:
        xml = form == pyoxigraph.RdfFormat.RDF_XML
        reader = cast(IO[bytes], XmlEntityGuard(stream, file.shown)) if xml else stream
        try:
            # Relative IRIs are resolved against the file's name alone, so that ids do not depend on where it lies.
            parser = pyoxigraph.parse(reader, form, base_iri=f"file:///{quote(file.stem)}", rename_blank_nodes=True)
            yield from parser
            prefixes.update(getattr(parser, "prefixes", {}))  # not every version tells
        except (SyntaxError, MemoryError) as error:
            if isinstance(error, MemoryError) and "buffer" not in str(error):
                raise
            raise _refusal(file, form, error, stream.tell()) from None


def _of_graphs(quads: Iterator[Any], graphs: Sequence[str], shown: str) -> Iterator[Any]:
    """The statements of these named graphs, or all of them where none is chosen; refuses one that has no statement."""
    if not graphs:
        yield from quads
        return
    counts: Counter[str] = Counter()
    for quad in quads:
        graph = getattr(quad.graph_name, "value", "")  # the default graph has none
        counts[graph] += 1
        if graph in graphs:
            yield quad
    for graph in graphs:
        if graph not in counts:
            near = difflib.get_close_matches(graph, filter(None, counts), n=3, cutoff=0.5)
            remedy = (
                f"did you mean {' or '.join(near)}?" if near else f"it has {len(counts.keys() - {''}):,} named graphs"
            )
            raise SatkgcError(f"no statement is in the graph {graph}", where=shown, remedy=remedy)
    if rest := counts.total() - sum(counts[graph] for graph in set(graphs)):
        log.warning("%s: left out: %s of other graphs", shown, f"{rest:,} statement{'' if rest == 1 else 's'}")


def _refusal(file: SourceFile, form: Any, error: SyntaxError | MemoryError, read: int) -> SatkgcError:
    """What is wrong with a file, and where; `read` bytes of it were read."""
    where = f"{file.shown}: before byte {read:,}"
    what = ENDLESS
    if form.file_extension in ("nt", "nq") and (broken := list(islice(_broken_lines(file, form), FEW + 1))):
        where, what = file.at(broken[0][0]), broken[0][1]
        more = [str(line) for line, _ in broken[1:FEW]] + ["…"] * (len(broken) > FEW)
        what += f" ({'so is line' if len(more) == 1 else 'so are lines'} {', '.join(more)})" if more else ""
    elif isinstance(error, SyntaxError):
        what = _message(error)
        if "remote contexts" in what:
            what = "its @context is on the network, where nothing is fetched from"
            return SatkgcError(what, where=file.shown, remedy="write the context into the file")
        where = where if error.lineno is None else file.at(error.lineno)
    return SatkgcError(f"not {form.name}: {what}", where=where, remedy="correct it there")


def _broken_lines(file: SourceFile, form: Any) -> Iterator[tuple[int, str]]:
    """The lines of a file of one statement a line that are none, and why; in one go, only the first would be told."""
    first = 1
    with file.open() as stream:
        while block := stream.read(BLOCK) + stream.readline(32 * BLOCK):
            lines = block.splitlines(keepends=True)
            if _fault(block, form):  # line by line takes five times as long
                for number, line in enumerate(lines, first):
                    if fault := _fault(line, form):
                        yield number, fault
            first += len(lines)


def _fault(text: bytes, form: Any) -> str | None:
    import pyoxigraph

    try:
        for _ in pyoxigraph.parse(text, form):
            pass
    except SyntaxError as error:
        return _message(error).replace("end of file", "end of the line")
    except MemoryError:
        return ENDLESS
    return None


def _message(error: SyntaxError) -> str:
    text = " ".join(str(error.args[0]).split())
    return text if error.lineno is None else f"column {error.offset}: {text.partition(': ')[2] or text}"


class _Nodes:
    """All that is kept of the statements: nodes by number, triples of numbers, texts."""

    def __init__(self, shown: str, options: ReadOptions) -> None:
        from pyoxigraph import BlankNode, Literal, NamedNode

        self._kinds = NamedNode, BlankNode, Literal
        self.prefixes = dict(PREFIXES)
        self._shown = shown
        self._nodes: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._triples = array("i")  # head, relation, tail, head, …
        self._names = _BestTexts(NAMES, options.languages)
        self._descriptions = _BestTexts(DESCRIPTIONS, options.languages)
        self._literals: Counter[str] = Counter()  # by predicate
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
        for texts in (self._names, self._descriptions):
            if predicate in texts.predicates:
                if isinstance(object, literal):
                    texts.offer(self._number(subject), predicate, object.value, object.language)
                return
        if isinstance(object, literal):
            self._literals[predicate] += 1
        elif not isinstance(object, (named, blank)):
            self._quoted += 1
        else:
            relation = self._index(predicate, self._relations)
            self._triples.extend((self._number(subject), relation, self._number(object)))

    def _number(self, node: Any) -> int:
        return self._index(node.value if isinstance(node, self._kinds[0]) else f"_:{node.value}", self._nodes)

    def _index(self, key: str, known: dict[str, int]) -> int:
        number = known.get(key)
        if number is None:
            if len(key) > LONGEST_IRI:
                raise SatkgcError(f"an IRI of {len(key):,} characters", where=self._shown, remedy="shorten it")
            number = known[key] = len(known)
        return number

    def graph(self, name: str, options: ReadOptions) -> KnowledgeGraph:
        """Choose the entities, number them and put the graph together."""
        keys = list(self._nodes)
        triples = np.array(self._triples, np.int32).reshape(-1, 3)
        relation_keys = list(self._relations)
        if options.exclude:
            counts = np.bincount(triples[:, 1], minlength=len(relation_keys)).tolist()
            names = [self._name(key) for key in relation_keys]
            excluded = excluded_relations(options.exclude, relation_keys, names, counts, self._shown, self.prefixes)
            triples = triples[~np.isin(triples[:, 1], excluded)]
        named = np.fromiter((bool(self._names.of(i)) for i in range(len(keys))), bool, len(keys))
        nameless = np.fromiter((key.startswith("_:") for key in keys), bool, len(keys)) & ~named
        loose = nameless[triples[:, 0]] | nameless[triples[:, 2]]
        triples = triples[~loose]
        self._tell(name, int(loose.sum()))
        if not len(triples):
            raise SatkgcError(
                "no statement in it joins two entities", where=self._shown, remedy="give a file with links between IRIs"
            )
        chosen = np.fromiter(
            ((named[i] or bool(self._descriptions.of(i))) and key not in self._relations for i, key in enumerate(keys)),
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

    def _vocabulary(self, kind: str, keys: list[str]) -> Vocabulary:
        names = [self._name(key) for key in keys]
        descriptions = [self._descriptions.of(self._nodes.get(key, 2**31)) for key in keys]
        blank = iter(range(len(keys)))
        ids = [f"_:b{next(blank)}" if key.startswith("_:") else key for key in keys]
        columns = [pa.array(column, pa.large_string()) for column in (ids, names, descriptions)]
        return Vocabulary.build(kind, *columns)

    def _name(self, key: str) -> str:
        return self._names.of(self._nodes.get(key, 2**31)) or name_from_id(key)

    def _literal_predicates(self) -> str:
        """The predicates of most of the literals."""
        most = [f"{count:,} of {predicate}" for predicate, count in self._literals.most_common(FEW)]
        return ", ".join([*most, "…"] if len(self._literals) > FEW else most)

    def _tell(self, name: str, loose: int) -> None:
        left_out = [
            f"{count:,} {what}"
            for count, what in (
                (self._literals.total(), f"literals ({self._literal_predicates()})"),
                (loose, "triples of blank nodes without a name"),
                (self._quoted, "statements about statements"),
            )
            if count
        ]
        if left_out:
            log.warning("%s: left out of the graph: %s", name, ", ".join(left_out))
        counts = self._names.by_language + self._descriptions.by_language
        plain = self._languages == ReadOptions.languages and not any(counts)  # nobody asked, and no label speaks of any
        if self._languages and not plain and not self._names.any_preferred() and not self._descriptions.any_preferred():
            there = ", ".join(f"{count:,} {tag or 'without a language'}" for tag, count in counts.most_common(FEW))
            preferred = ", ".join(tag or "no language" for tag in self._languages)
            log.warning("%s: no name or description is in %s; there are %s", name, preferred, there or "none at all")


class _BestTexts:
    """The best text so far of each node: by language, then by predicate, then the first."""

    def __init__(self, predicates: Sequence[str], languages: Sequence[str]) -> None:
        self.predicates = {predicate: rank for rank, predicate in enumerate(predicates)}
        self._languages = [language.lower() for language in languages]
        self.by_language: Counter[str] = Counter()  # texts by language, in lower case
        self._texts: list[str] = []  # by node
        self._ranks = array("i")

    def offer(self, node: int, predicate: str, text: str, language: str | None) -> None:
        """Take the text if it is better than what the node has."""
        text = " ".join(text.split())
        if not text:
            return
        missing = node + 1 - len(self._texts)
        if missing > 0:
            self._texts += [""] * missing
            self._ranks.extend([2**31 - 1] * missing)
        language = (language or "").lower()
        self.by_language[language] += 1
        rank = self._language_rank(language) * len(self.predicates) + self.predicates[predicate]
        if rank < self._ranks[node]:
            self._texts[node], self._ranks[node] = text, rank

    def of(self, node: int) -> str:
        """The text of a node, or an empty string."""
        return self._texts[node] if node < len(self._texts) else ""

    def any_preferred(self) -> bool:
        """Whether any text so far is in a preferred language."""
        return any(self._language_rank(language) < 2 * len(self._languages) for language in self.by_language)

    def _language_rank(self, language: str) -> int:
        """Preferred languages in order, each before its regional forms; then none, then any."""
        for place, preferred in enumerate(self._languages):
            if language == preferred:
                return 2 * place
            if preferred and language.startswith(f"{preferred}-"):
                return 2 * place + 1
        return 2 * len(self._languages) + bool(language)


class XmlEntityGuard(io.RawIOBase):
    """Passes bytes on once the entity declarations in them have been looked at, and refuses entities that grow.

    Ontologies declare entities to shorten IRIs, `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`. Those are short and
    name no other entity. An entity made of entities can double its length with every line, and the parser puts it in
    wherever it is named.
    """

    def __init__(self, stream: IO[bytes], shown: str) -> None:
        self._stream = stream
        self._shown = shown
        self._tail = b""  # what may be the start of a declaration

    def read(self, size: int = -1) -> bytes:
        """As a file's."""
        data = self._stream.read(size)
        seen = self._tail + data
        at = seen.find(_ENTITY_START)
        while at >= 0:
            match = _ENTITY.match(seen, at)
            text = (match[1] or match[2] or b"") if match else seen[at:]
            if len(text) > LONGEST_ENTITY + (0 if match else 2 * LONGEST_ENTITY) or (match and _REFERENCE.search(text)):
                raise SatkgcError(
                    "an XML entity is long or made of other entities: it may be made to fill the memory",
                    where=self._shown,
                    remedy="write its text out where it is used",
                )
            if not match:
                break
            at = seen.find(_ENTITY_START, match.end())
        self._tail = seen[at:] if at >= 0 else seen[-len(_ENTITY_START) :]
        return data

    def readable(self) -> bool:
        """Yes."""
        return True
