"""RDF in any of its forms, plain or packed with gzip or zstd, read as a stream by pyoxigraph.

`rdf_nodes.py` makes a graph of the statements. Named graphs are read as one, unless some are chosen.
"""

from __future__ import annotations

import difflib
import io
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.guards import TermGuard, XmlGuard
from satkgc.kg.readers.large import memory_to_read, tell_obstacle
from satkgc.kg.readers.options import ReadOptions
from satkgc.kg.readers.owl_syntaxes import rdf_xml, syntax_of
from satkgc.kg.readers.rdf_nodes import RdfNodes
from satkgc.kg.readers.source import SourceFile
from satkgc.kg.readers.staging import staging

log = logging.getLogger("satkgc.kg")

FEW = 5  # examples in a message
ENDLESS = "a literal or IRI that does not end, or has more than 16 MiB"  # the most that pyoxigraph holds
BLOCK = 1 << 20  # bytes of statements looked at again at once, to find the broken ones
PREFIX_EVERY = 100  # statements, at most, between two looks at the prefixes that a file declares


def read(files: Sequence[SourceFile], options: ReadOptions) -> KnowledgeGraph:
    """Read RDF files as one graph; the form of each is told by its ending."""
    shown = files[0].shown if len(files) == 1 else f"{files[0].shown} and {len(files) - 1:,} more"
    return read_as(shown, files, options)


def read_as(shown: str, files: Sequence[SourceFile], options: ReadOptions) -> KnowledgeGraph:
    """Read RDF files that messages call by one name."""
    require_pyoxigraph(shown)
    name = options.name or Path(files[0].stem).stem
    if (memory := memory_to_read(files, options)) is not None:
        if not options.literals:
            from satkgc.kg.readers.large_rdf import StagedNodes

            with staging(memory, options.spill, shown) as area:
                return _read(StagedNodes(shown, options, area), files, options).graph(name, options)
        tell_obstacle("literals", shown, options)
    return _read(RdfNodes(shown, options), files, options).graph(name, options)


def _read(nodes: RdfNodes, files: Sequence[SourceFile], options: ReadOptions) -> RdfNodes:
    shown = nodes.shown
    quads = (quad for file in files for quad in _quads(file, nodes.prefixes))
    for quad in _of_graphs(quads, options.graphs, shown):
        nodes.add(quad)
    return nodes


def read_statements(
    data: bytes, ending: str, prefixes: dict[str, str], name: str, options: ReadOptions
) -> KnowledgeGraph:
    """Statements that another library wrote, as N-Triples or N-Quads."""
    require_pyoxigraph("the graph")
    import pyoxigraph

    nodes = RdfNodes("the graph", options)
    nodes.prefixes.update(prefixes)
    try:
        quads = iter(pyoxigraph.parse(data, pyoxigraph.RdfFormat.from_extension(ending)))
        for quad in _of_graphs(quads, options.graphs, "the graph"):
            nodes.add(quad)
    except SyntaxError as error:
        raise SatkgcError(f"not RDF: {_message(error)}", where="the graph", remedy="correct it there") from None
    return nodes.graph(name, options)


def require_pyoxigraph(shown: str) -> None:
    """Refuse to begin without it."""
    if find_spec("pyoxigraph") is None:
        raise SatkgcError("RDF needs pyoxigraph", where=shown, remedy="pip install 'satkgc[rdf]'")


def _quads(file: SourceFile, prefixes: dict[str, str]) -> Iterator[Any]:
    """The statements of a file; the prefixes that it declares are added to `prefixes`."""
    import pyoxigraph

    ending = Path(file.stem).suffix.lower().removeprefix(".")
    syntax = syntax_of(file)
    form = pyoxigraph.RdfFormat.from_extension("rdf" if ending == "owl" or syntax else ending)
    assert form is not None  # `read_graph` knows which endings there are
    with io.BytesIO(rdf_xml(file, syntax)) if syntax else file.open() as stream:
        guard = XmlGuard if form == pyoxigraph.RdfFormat.RDF_XML else TermGuard
        reader = cast(IO[bytes], guard(stream, file.shown))
        try:
            # Relative IRIs are resolved against the file's name alone, so that ids do not depend on where it lies.
            parser = pyoxigraph.parse(reader, form, base_iri=f"file:///{quote(file.stem)}", rename_blank_nodes=True)
            predicates: set[Any] = set()
            for number, quad in enumerate(parser):
                if number % PREFIX_EVERY == 0 or quad.predicate not in predicates:
                    predicates.add(quad.predicate)
                    prefixes.update(getattr(parser, "prefixes", {}))  # so far; not every version tells
                yield quad
            prefixes.update(getattr(parser, "prefixes", {}))
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
