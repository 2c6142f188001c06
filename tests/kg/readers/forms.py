"""A small graph written in every form that the readers know, by means other than the package's."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from satkgc.kg import KnowledgeGraph

Triple = tuple[str, str, str]
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@dataclass
class Source:
    """What a file says: ids are IRIs, so that RDF can say it too."""

    splits: dict[str, list[Triple]]
    entities: dict[str, tuple[str, str]]  # id → name, description
    relations: dict[str, str] = field(default_factory=dict)

    @property
    def triples(self) -> list[Triple]:
        return [triple for rows in self.splits.values() for triple in rows]


def said(graph: KnowledgeGraph) -> Source:
    """A graph back in words, to compare with."""

    def rows(split: str) -> list[Triple]:
        return [
            (graph.entities.id(h), graph.relations.id(r), graph.entities.id(t))
            for h, r, t in graph.split(split).tolist()
        ]

    entities = {
        graph.entities.id(i): (graph.entities.name(i), graph.entities.description(i)) for i in range(graph.num_entities)
    }
    relations = {graph.relations.id(i): graph.relations.name(i) for i in range(graph.num_relations)}
    return Source({split: rows(split) for split in ("train", "valid", "test")}, entities, relations)


def folder(source: Source, path: Path) -> Path:
    path.mkdir()
    for name, text in tsv_files(source).items():
        (path / name).write_bytes(text.encode())
    return path


def tsv_files(source: Source) -> dict[str, str]:
    files = {f"{split}.tsv": lines(rows) for split, rows in source.splits.items() if rows}
    files["entities.tsv"] = lines([(id, *texts) for id, texts in source.entities.items()])
    files["relations.tsv"] = lines(list(source.relations.items()))
    return files


def lines(rows: list[tuple[str, ...]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def tar(source: Source, path: Path) -> Path:
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        for name, text in tsv_files(source).items():
            member = tarfile.TarInfo(f"graph/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def zipped(source: Source, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in tsv_files(source).items():
            archive.writestr(name, text)
    return path


def tables(source: Source, path: Path, ending: str) -> dict[str, Path]:
    """triples, entities and relations as three tables with a header."""
    rows = [(*triple, split) for split, triples in source.splits.items() for triple in triples]
    content = {
        "triples": (["head", "relation", "tail", "split"], rows),
        "entities": (["id", "name", "description"], [(id, *texts) for id, texts in source.entities.items()]),
        "relations": (["id", "label"], list(source.relations.items())),
    }
    paths = {}
    for name, (columns, cells) in content.items():
        paths[name] = path / f"{name}.{ending}"
        if ending == "parquet":
            arrays = [pa.array([row[i] for row in cells], pa.string()) for i in range(len(columns))]
            pq.write_table(pa.table(arrays, names=columns), paths[name])
        elif ending == "csv":
            with paths[name].open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([columns, *cells])
        else:
            paths[name].write_text(lines([tuple(columns), *cells]), encoding="utf-8", newline="\n")
    return paths


def nt(source: Source) -> str:
    rows = [f"<{h}> <{r}> <{t}> ." for h, r, t in source.triples]
    for id, (name, description) in source.entities.items():
        rows += [f"<{id}> <{LABEL}> {nt_text(name)}@en ."] if name else []
        rows += [f"<{id}> <{COMMENT}> {nt_text(description)} ."] if description else []
    rows += [f"<{id}> <{LABEL}> {nt_text(name)} ." for id, name in source.relations.items()]
    return "\n".join(rows) + "\n"


def nt_text(value: str) -> str:
    return '"' + "".join(c if c.isalnum() or c == " " else f"\\U{ord(c):08x}" for c in value) + '"'


def json_ld(source: Source) -> str:
    nodes: list[dict[str, object]] = [{"@id": h, r: {"@id": t}} for h, r, t in source.triples]
    nodes += [
        {"@id": id, LABEL: {"@value": name, "@language": "en"}, COMMENT: description}
        for id, (name, description) in source.entities.items()
    ]
    nodes += [{"@id": id, LABEL: name} for id, name in source.relations.items()]
    return json.dumps(nodes)


def rdf_xml(source: Source) -> str:
    out = [f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">']
    for h, r, t in source.triples:
        space, _, local = r.rpartition("/")
        out.append(
            f"<rdf:Description rdf:about={quoteattr(h)}>"
            f"<x:{local} xmlns:x={quoteattr(space + '/')} rdf:resource={quoteattr(t)}/></rdf:Description>"
        )
    texts = [(id, name, description) for id, (name, description) in source.entities.items()]
    for id, name, description in [*texts, *((id, name, "") for id, name in source.relations.items())]:
        texts_of = f"rdfs:label={quoteattr(name)} rdfs:comment={quoteattr(description)}"
        out.append(f"<rdf:Description rdf:about={quoteattr(id)} {texts_of}/>")
    return "\n".join([*out, "</rdf:RDF>"])


def rdf_files(source: Source, path: Path) -> list[Path]:
    """Every form of RDF; N-Triples is also Turtle, N-Quads and TriG."""
    plain = nt(source).encode()
    contents = {
        "g.nt": plain, "g.nq": plain, "g.ttl": plain, "g.trig": plain,
        "g.rdf": rdf_xml(source).encode(), "g.owl": rdf_xml(source).encode(), "g.jsonld": json_ld(source).encode(),
        "g.nt.gz": gzip.compress(plain), "g.ttl.zst": pa.compress(plain, codec="zstd", asbytes=True),
    }  # fmt: skip
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return [path / name for name in contents]


@st.composite
def sources(draw: st.DrawFn) -> Source:
    """Graphs whose names hold whatever a line of text can, quotes and commas too."""
    cell = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs", "Cn", "Co")), max_size=8)
    words = st.lists(cell.filter(bool), min_size=1, max_size=3).map(" ".join)
    ids = draw(st.lists(cell.filter(bool), min_size=2, max_size=8, unique=True))
    entities = {f"http://e.org/{quote(id, safe='')}": (draw(words), draw(st.just("") | words)) for id in ids}
    relations = {f"http://r.org/r{i}": draw(words) for i in range(draw(st.integers(1, 3)))}
    one = st.sampled_from(sorted(entities))
    triple = st.tuples(one, st.sampled_from(sorted(relations)), one)
    train = draw(st.lists(triple, min_size=1, max_size=12, unique=True))
    seen = {r for _, r, _ in train}
    rest = draw(st.lists(triple.filter(lambda t: t[1] in seen), max_size=6, unique=True))
    cut = draw(st.integers(0, len(rest)))
    return Source(
        {"train": train, "valid": rest[:cut], "test": rest[cut:]},
        entities,
        {r: name for r, name in relations.items() if r in seen},
    )
