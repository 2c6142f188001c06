"""A graph behind a SPARQL endpoint, asked for page by page.

A page is the part of a CONSTRUCT query's rows from one number to another, in the order of its variables. It is kept in
the cache as a file of N-Triples named after these numbers, so that an import that was stopped goes on after the last
one, with pages of another size if need be. The rows are counted before the first page and after the last.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shutil
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from rich.progress import Progress, TaskID

from satkgc.errors import SatkgcError
from satkgc.files import atomic_write, make_folder
from satkgc.kg.endpoint import Endpoint
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import rdf
from satkgc.kg.readers.columns import counted
from satkgc.kg.readers.construct import Construct
from satkgc.kg.readers.guards import TermGuard
from satkgc.kg.readers.options import ReadOptions, refuse_options
from satkgc.kg.readers.source import SourceFile
from satkgc.manifest import cache_folder
from satkgc.progress import duration, progress_bar

log = logging.getLogger("satkgc.kg")

COUNT = "rows.json"


def read_endpoint(source: str, options: ReadOptions) -> tuple[KnowledgeGraph, Path]:
    """The graph, and the folder of its pages: whoever keeps the graph removes it."""
    endpoint = Endpoint.of(source)
    refuse_options("sparql", options, endpoint.shown)
    rdf.require_pyoxigraph(endpoint.shown)
    folder = _folder(endpoint, options)
    files = []
    for number, query in enumerate(_queries(options)):
        pull = _Pull(endpoint, query, make_folder(folder / str(number)), options)
        files += [SourceFile(page, endpoint.shown) for page in pull.pages()]
    name = options.name or urlsplit(endpoint.url).hostname
    return rdf.read_as(endpoint.shown, files, replace(options, name=name, graphs=())), folder


def load_endpoint(source: str, options: ReadOptions) -> KnowledgeGraph:
    """The graph, without a trace of its pages."""
    graph, folder = read_endpoint(source, options)
    shutil.rmtree(folder, ignore_errors=True)
    return graph


def _folder(endpoint: Endpoint, options: ReadOptions) -> Path:
    """Where the pages of these queries are kept."""
    asked = "\n".join([endpoint.url, *(query.text for query in _queries(options))])
    return cache_folder() / "endpoints" / hashlib.sha256(asked.encode()).hexdigest()[:16]


def _queries(options: ReadOptions) -> Iterator[Construct]:
    """One for each named graph, or the one that was given."""
    if options.query is not None:
        if options.graphs:
            raise SatkgcError("--graph and --query are given", remedy="name the graph in the query: GRAPH <…> { … }")
        yield Construct.of(str(options.query))
        return
    yield from map(Construct.of_graph, options.graphs or (None,))


@dataclass(frozen=True)
class _Pull:
    """The pages of one query."""

    endpoint: Endpoint
    query: Construct
    folder: Path
    options: ReadOptions

    def pages(self) -> list[Path]:
        """All pages, those that are here already first; says so if the graph was changed meanwhile."""
        before, since = self._first_count()
        kept, start = _kept(self.folder)
        if kept:
            text = "%s: %s of %s rows are here already, the first for %s; remove %s to ask for all of them again"
            age = duration(time.time() - since)
            log.warning(text, self.endpoint.shown, f"{start:,}", f"{before:,}", age, self.folder)
        with progress_bar() as bar:
            task = bar.add_task(f"asking {urlsplit(self.endpoint.url).hostname}", total=before, completed=start)
            self._ask(start, before, bar, task)
        pages, _ = _kept(self.folder)
        self._compare(before, self._count(), pages)
        return pages

    def _ask(self, row: int, total: int, bar: Progress, task: TaskID) -> None:
        """Every page from a row on; of a plain query one more where the last was full, for the graph may have grown."""
        size, plain, last = self.options.page_size, self.query.plain, b""
        more = plain or row < total
        while more:
            statements, data = self._page(row, size)
            if plain and not statements:
                return
            if data and data == last:
                what = f"it gives the same {statements:,} statements for each page"
                remedy = "it does not do OFFSET: ask for all at once with --page-size"
                raise SatkgcError(what, where=self.endpoint.shown, remedy=remedy)
            # A plain query makes one statement of each row: fewer are all that this server gives at once.
            end, last = row + (min(statements, size) if plain else size), data
            for old in self.folder.glob(f"{row:012}-*.nt"):  # altered, or of another size
                old.unlink()
            with atomic_write(self.folder / f"{row:012}-{end:012}-{_sum(data)}.nt") as part:
                part.write_bytes(data)
            bar.advance(task, end - row)
            row = end
            more = row < total or (plain and statements == size and row < total + size)
            time.sleep(self.options.pause if more else 0)

    def _page(self, start: int, size: int) -> tuple[int, bytes]:
        """How many statements it has, and these as N-Triples."""
        import pyoxigraph

        data, kind = self.endpoint.construct(self.query.page(start, size))
        form = pyoxigraph.RdfFormat.from_media_type(kind)
        if form not in (pyoxigraph.RdfFormat.N_TRIPLES, pyoxigraph.RdfFormat.TURTLE):
            raise self.endpoint.no_answer(kind)
        try:
            triples = list(pyoxigraph.parse(TermGuard(io.BytesIO(data), self.endpoint.shown), form))  # type: ignore[arg-type]
        except SyntaxError as error:
            what = f"its answer for the rows from {start:,} on is not {form.name}: {error.args[0]}"
            remedy = "ask for fewer with --page-size: it may have given up in between"
            raise SatkgcError(what, where=self.endpoint.shown, remedy=remedy) from None
        return len(triples), pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES) or b""

    def _first_count(self) -> tuple[int, float]:
        """How many rows there were before the first page, and when that was."""
        file = self.folder / COUNT
        try:
            noted: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return int(noted["rows"]), float(noted["at"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            shutil.rmtree(self.folder)  # pages without their count are of no use
        rows, now = self._count(), time.time()
        if not rows:
            raise self._empty()
        make_folder(self.folder)
        note = {"endpoint": self.endpoint.shown, "query": self.query.text, "rows": rows, "at": now}
        note["time"] = datetime.now(UTC).isoformat(timespec="seconds")
        with atomic_write(file) as part:
            part.write_text(json.dumps(note, indent=2), encoding="utf-8")
        return rows, now

    def _count(self) -> int:
        try:
            return int(self.endpoint.select(self.query.count())[0]["n"])
        except (IndexError, KeyError, ValueError):
            raise self.endpoint.no_answer("something that is no count") from None

    def _empty(self) -> SatkgcError:
        if self.options.query is not None:
            return SatkgcError(
                "the query finds nothing there", where=self.endpoint.shown, remedy="try it there by hand"
            )
        rows = self.endpoint.select("SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } } LIMIT 5")
        names = ", ".join(row["g"] for row in rows if "g" in row)
        what = "there is nothing in this graph" if self.options.graphs else "there is nothing in the default graph"
        remedy = f"it has the graphs {names}: choose with --graph" if names else "the endpoint is empty"
        return SatkgcError(what, where=self.endpoint.shown, remedy=remedy)

    def _compare(self, before: int, after: int, pages: list[Path]) -> None:
        """Say so where pages cannot be of one state of the graph."""
        blank, others = _statements(pages)
        if blank and len(pages) > 1:
            text = "%s: %s of blank nodes, which are others on every page; --page-size %d brings all in one"
            log.warning(text, self.endpoint.shown, counted(blank, "statement"), max(before, after))
        counts = f"{before:,} rows before the first, {after:,} after the last"
        read = before
        if self.query.plain:
            read = blank + others
            counts += f", {read:,} different ones read"
        if not before == after == read:
            text = "%s: it changed between pages (%s): some may be missing; import it again to be sure"
            log.warning(text, self.endpoint.shown, counts)


def _kept(folder: Path) -> tuple[list[Path], int]:
    """The whole pages that follow one another from row 0 on, and the first row that is not there."""
    by_start = {int(page.stem.partition("-")[0]): page for page in sorted(folder.glob("[0-9]*-[0-9]*-*.nt"))}
    pages, row = [], 0
    while (page := by_start.get(row)) is not None:
        _, end, expected = page.stem.split("-")
        if _sum(page.read_bytes()) != expected:
            log.warning("%s: this page was altered: it is asked for again", page)
            break
        pages.append(page)
        row = int(end)
    return pages, row


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _statements(pages: list[Path]) -> tuple[int, int]:
    """How many are about blank nodes, whose labels mean nothing beyond a page; and how many different others."""
    blank, hashes = 0, array("q")
    for page in pages:
        with page.open("rb") as lines:
            for line in lines:
                if line.startswith(b"_:") or b" _:" in line:
                    blank += 1
                else:
                    hashes.append(hash(line))
    return blank, len(np.unique(np.array(hashes, np.int64)))
