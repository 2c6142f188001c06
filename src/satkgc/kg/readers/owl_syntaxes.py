"""Ontologies in other syntaxes (functional, Manchester, OWL/XML, OBO), turned into RDF/XML by py-horned-owl."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, cast

from satkgc.errors import SatkgcError
from satkgc.kg.readers.source import SourceFile

SYNTAXES = {".ofn": "functional syntax", ".omn": "Manchester syntax", ".owx": "OWL/XML", ".obo": "OBO"}

DEEPEST = 200  # of brackets in brackets: its parser calls itself for each, and ends the program if that is too deep
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|<[^<>]*+>|(?P<open>[({])|(?P<close>[)}])', re.DOTALL)
_TAGS = re.compile(rb"<[!?][^<>]*+>|(?P<close></)|(?P<open><)[^<>]*+(?<!/)>")
HEAD = 1 << 14  # bytes that tell the syntax of a file that ends in .owl


def syntax_of(file: SourceFile) -> str | None:
    """The ending of the syntax that a file is in, if it is one of these; .owl may be any, and its first words tell."""
    ending = "." + file.stem.lower().rpartition(".")[2]
    if ending != ".owl":
        return ending if ending in SYNTAXES else None
    with file.open() as stream:
        head = stream.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    if re.match(rb"(\s|#[^\n]*\n)*(Prefix|Ontology)\s*\(", head):
        return ".ofn"
    if re.match(rb"(\s|#[^\n]*\n)*(Prefix|Ontology)\s*:", head):
        return ".omn"
    return ".owx" if re.search(rb"<Ontology\s", head) and b"<rdf:RDF" not in head else None


def rdf_xml(file: SourceFile, ending: str) -> bytes:
    """The ontology as RDF/XML."""
    if find_spec("pyhornedowl") is None:
        raise SatkgcError(
            f"{SYNTAXES[ending]} needs py-horned-owl",
            where=file.shown,
            remedy="pip install 'satkgc[owl]', or convert it with ROBOT: robot convert -i FILE -o FILE.ttl",
        )
    import pyhornedowl

    with file.open() as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = file.at(data.count(b"\n", 0, error.start) + 1)
        raise SatkgcError("the text is not UTF-8", where=where, remedy="save it as UTF-8") from None
    _refuse_depth(data, file, ending)
    try:
        ontology = pyhornedowl.open_ontology_from_string(text, serialization=cast(Any, ending[1:]))
        return str(ontology.save_to_string("rdf")).encode()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        place = re.search(r"line_col: \w+\(\((\d+), (\d+)\)", str(error))
        where = file.at(int(place[1])) if place else file.shown
        column = f" at column {place[2]}" if place else ""
        remedy = "correct it there, or convert it with ROBOT: robot convert -i FILE -o FILE.ttl"
        raise SatkgcError(f"not OWL in {SYNTAXES[ending]}{column}", where=where, remedy=remedy) from None


def _refuse_depth(data: bytes, file: SourceFile, ending: str) -> None:
    depth = 0
    for token in (_TAGS if ending == ".owx" else _BRACKETS).finditer(data):
        depth += (token["open"] is not None) - (token["close"] is not None)
        if depth > DEEPEST:
            where = file.at(data.count(b"\n", 0, token.start()) + 1)
            raise SatkgcError("brackets too deep in brackets", where=where, remedy="give what is inside a name")
