"""Readers: one for each form in which people hold graphs, chosen by what the source is called."""

from __future__ import annotations

from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers.options import ReadOptions

__all__ = ["ReadOptions", "read"]

ARCHIVES = (".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar", ".zip")
TABLES = (".csv", ".tsv", ".parquet")
RDF = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".xml", ".owl", ".jsonld", ".json")
COMPRESSED = (".gz", ".zst")


def read(source: Path, options: ReadOptions | None = None) -> KnowledgeGraph:
    """Read a folder, an archive of one, a table of triples or an RDF file into a graph."""
    source, options = Path(source), options or ReadOptions()
    if not source.exists():
        raise SatkgcError(
            "there is no such file or folder", where=source, remedy="check the path; satkgc kg list names known graphs"
        )
    name = source.name.lower()
    if source.is_dir():
        from satkgc.kg.readers import folder

        return folder.read(source, options)
    if name.endswith(ARCHIVES):
        from satkgc.kg.readers import archive

        return archive.read(source, options)
    plain = name.removesuffix(".gz").removesuffix(".zst")
    if plain.endswith(TABLES) and not (plain != name and plain.endswith(".parquet")):  # it packs its own columns
        from satkgc.kg.readers import table

        return table.read(source, options)
    if plain.endswith(RDF):
        from satkgc.kg.readers import rdf

        return rdf.read(source, options)
    raise SatkgcError(
        "this kind of file is not known",
        where=source,
        remedy=f"give a folder, or a file that ends in {' '.join(TABLES + RDF)} (also .gz, .zst) {' '.join(ARCHIVES)}",
    )
