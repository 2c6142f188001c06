"""The formats in which the benchmarks are published, turned into the TSV folder that our reader knows.

One function a publisher. Each takes the published files by name and writes train, valid, test and entities.tsv (and
relations.tsv where relations have texts of their own) into an empty folder. Only entities that occur in a triple are
listed: the published texts cover more; where there are no texts at all, none is listed.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.compute as pc

from satkgc.errors import SatkgcError
from satkgc.kg.readers.delimited import Delimited
from satkgc.kg.readers.source import SourceFile

Files = Mapping[str, Path]
SPLITS = ("train", "valid", "test")


def simkgc_wordnet(files: Files, out: Path) -> None:
    """WN18RR: `id, __name_POS_n, gloss` a line."""
    ids = _copy_triples([files[f"{split}.txt"] for split in SPLITS], out)
    rows = (line.split("\t") for line in _lines(files["wordnet-mlj12-definitions.txt"]))
    texts = {row[0]: (row[1].removeprefix("__").rsplit("_", 2)[0].replace("_", " "), row[2]) for row in rows}
    _write_entities(out, ids, texts)


def simkgc_freebase(files: Files, out: Path) -> None:
    """FB15k-237: names with underscores, and descriptions quoted as in N-Triples: `"text"@en`."""
    ids = _copy_triples([files[f"{split}.txt"] for split in SPLITS], out)
    _write_entities(out, ids, _freebase_texts(files))


def blp_freebase(files: Files, out: Path) -> None:
    """FB15k-237 split by entities: a triple goes to test if it touches a test entity, else to valid if a valid one.

    Valid's entities are those of KNN-KG's file of valid texts; its file of test texts has test's and some of valid's.
    """
    valid, test = (_pairs(files[f"entity2textlong_{split}.txt"]).keys() for split in ("dev", "test"))
    held_out = {"test": test - valid, "valid": set(valid)}
    ids: dict[str, None] = {}
    parts: dict[str, list[str]] = {split: [] for split in SPLITS}
    for source in SPLITS:
        for line in _lines(files[f"{source}.txt"]):
            head, _, tail = line.split("\t")
            ids.update({head: None, tail: None})
            target = next((split for split, members in held_out.items() if {head, tail} & members), "train")
            parts[target].append(line)
    for split, lines in parts.items():
        _write_lines(out / f"{split}.tsv", lines)
    for split, members in held_out.items():
        _write_lines(out / f"{split}_entities.tsv", sorted(members))
    _write_entities(out, ids, _freebase_texts(files))


def pkgc(files: Files, out: Path) -> None:
    """FB15k-237N: labels and definitions, one file each."""
    ids = _copy_triples([files[f"{split}.txt"] for split in SPLITS], out)
    names = _pairs(files["entity2label.txt"])
    definitions = _pairs(files["entity2definition.txt"])
    _write_entities(out, ids, {id: (name, definitions.get(id, "")) for id, name in names.items()})


def kg_bert(files: Files, out: Path) -> None:
    """UMLS: names and long descriptions, one file each, and texts of the relations."""
    ids = _copy_triples([files["train.tsv"], files["dev.tsv"], files["test.tsv"]], out)
    names = _pairs(files["entity2text.txt"])
    long = _pairs(files["entity2textlong.txt"])
    _write_entities(out, ids, {id: (name, long.get(id, "")) for id, name in names.items()})
    _write_lines(out / "relations.tsv", map("\t".join, _pairs(files["relation2text.txt"]).items()))


def wikidata5m(files: Files, out: Path) -> None:
    """Wikidata5M: the first alias is the name; a relation without aliases keeps its id, so that no triple is lost."""
    triples = next(path for name, path in files.items() if name.endswith("ductive.tar.gz"))
    _unpack(triples, {f"_{split}.txt": out / f"{split}.tsv" for split in SPLITS})
    aliases = {"wikidata5m_entity.txt": out / "aliases", "wikidata5m_relation.txt": out / "relation_aliases"}
    _unpack(files["wikidata5m_alias.tar.gz"], aliases)
    members = {split: _triple_ids([out / f"{split}.tsv"], (0, 2)) for split in SPLITS}
    names = {id: "" for split in SPLITS for id in members[split]}
    if "inductive" in triples.name:
        trained = set(members["train"])
        for split in SPLITS[1:]:
            _write_lines(out / f"{split}_entities.tsv", (id for id in members[split] if id not in trained))
    for line in _lines(out / "aliases"):
        id, _, rest = line.partition("\t")
        if id in names:
            names[id] = _words(rest.partition("\t")[0])
    with (out / "entities.tsv").open("w", encoding="utf-8") as listing:
        for line in _lines(files["wikidata5m_text.txt.gz"]):
            id, _, text = line.partition("\t")
            if (name := names.pop(id, None)) is not None:
                listing.write(f"{id}\t{name}\t{_words(text)}\n")
        listing.writelines(f"{id}\t{name}\t\n" for id, name in names.items())
    relations = dict.fromkeys(_triple_ids([out / f"{split}.tsv" for split in SPLITS], (1,)), "")
    relations |= {id: name for id, name in _pairs(out / "relation_aliases").items() if id in relations}
    _write_lines(out / "relations.tsv", map("\t".join, relations.items()))
    for path in aliases.values():
        path.unlink()


def grail_inductive(files: Files, out: Path) -> None:
    """GraIL's two graphs (see `grail`): an id that both have names two entities, that of the second graph `ID_ind`."""
    second = {Path(name).stem: path for name, path in files.items() if "_ind/" in name}
    first = {Path(name).stem: path for name, path in files.items() if "_ind/" not in name}
    trained = set(_triple_ids([first["train"], first["valid"]], (0, 2)))
    for split in ("train", "valid"):
        shutil.copyfile(first[split], out / f"{split}.tsv")
    members: dict[str, None] = {}
    for split, path in (("inference", second["train"]), ("test", second["test"])):
        triples = [line.split("\t") for line in _lines(path)]
        for triple in triples:
            triple[::2] = (f"{id}_ind" if id in trained else id for id in triple[::2])
            members.update(dict.fromkeys(triple[::2]))
        _write_lines(out / f"{split}.tsv", map("\t".join, triples))
    _write_lines(out / "test_entities.tsv", members)


def _copy_triples(paths: list[Path], out: Path) -> list[str]:
    """Copy the three splits and return the entities in them, in order of appearance."""
    for split, path in zip(SPLITS, paths, strict=True):
        shutil.copyfile(path, out / f"{split}.tsv")
    return _triple_ids(paths, (0, 2))


def _triple_ids(paths: list[Path], columns: tuple[int, ...]) -> list[str]:
    ids: dict[str, None] = {}
    for path in paths:
        for column in Delimited(SourceFile.of(path)).columns(columns, 3):
            ids.update(dict.fromkeys(pc.unique(column).to_pylist()))
    return list(ids)


def _freebase_texts(files: Files) -> dict[str, tuple[str, str]]:
    names = _pairs(files["FB15k_mid2name.txt"])
    descriptions = _pairs(files["FB15k_mid2description.txt"])
    return {id: (name.replace("_", " "), _literal(descriptions.get(id, ""))) for id, name in names.items()}


def _literal(text: str) -> str:
    """The words of `"text"@en`, escapes undone."""
    inner = re.sub(r'^"(.*)"(@[\w-]+)?$', r"\1", text)
    simple = {"n": " ", "r": " ", "t": " "}
    return _words(
        re.sub(
            r"\\(?:u([0-9A-Fa-f]{4})|(.))",
            lambda match: chr(int(match[1], 16)) if match[1] else simple.get(match[2], match[2]),
            inner,
        )
    )


def _pairs(path: Path) -> dict[str, str]:
    """`id, text` a line; later columns, further aliases for instance, are dropped."""
    rows = (line.split("\t") for line in _lines(path))
    return {row[0]: _words(row[1]) if len(row) > 1 else "" for row in rows}


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file, packed or plain; blank ones do not count."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:
            for line in file:
                if line := line.rstrip("\r\n"):
                    yield line
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise SatkgcError(f"damaged: {error}", where=path, remedy="remove the file and fetch it again") from error


def _unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Write the members whose names end as the keys do to the paths."""
    missing = set(members)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                ending = next((ending for ending in missing if member.isfile() and member.name.endswith(ending)), None)
                if ending and (stream := tar.extractfile(member)):
                    with members[ending].open("wb") as target:
                        shutil.copyfileobj(stream, target, 1 << 20)
                    missing.remove(ending)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise SatkgcError(f"damaged: {error}", where=archive, remedy="remove the file and fetch it again") from error
    if missing:
        raise SatkgcError(f"holds no file named …{min(missing)}", where=archive, remedy="fetch it again")


def _write_entities(out: Path, ids: Iterable[str], texts: Mapping[str, tuple[str, str]]) -> None:
    rows = ((id, *map(_words, texts.get(id, ("", "")))) for id in ids)
    _write_lines(out / "entities.tsv", ("\t".join(row) for row in rows))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _words(text: str) -> str:
    return " ".join(text.split())
