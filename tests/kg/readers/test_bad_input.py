"""Whatever is wrong with a source: one line that says where and what to do, exit code 2, and nothing left behind."""

from __future__ import annotations

import gzip
import io
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import forms
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from satkgc.cli import main

GOOD = {
    "train.tsv": b"a\tr\tb\nb\tr\tc\n",
    "test.tsv": b"a\tr\tc\n",
    "entities.tsv": b"a\tAnn\tone\nb\tBob\ttwo\nc\tCy\tthree\n",
    "relations.tsv": b"r\tknows\n",
}
NT = b"<http://e/a> <http://r/r> <http://e/b> .\n" * 3
OPEN = b'<http://e/a> <http://r/r> "no end .\n'


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Import a source through the command line and give back the message, with the folder's path cut off."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(source: str, *flags: str) -> str:
        before = sorted(tmp_path.rglob("*"))
        monkeypatch.setattr(
            sys, "argv", ["satkgc", "kg", "import", str(tmp_path / source), str(tmp_path / "out"), *flags]
        )
        with pytest.raises(SystemExit) as exit:
            main()
        shown = capsys.readouterr()
        assert exit.value.code == 2
        assert shown.out == ""
        assert sorted(tmp_path.rglob("*")) == before  # nothing half-written
        assert shown.err.count("\n") == 1
        return shown.err.strip().replace(f"{tmp_path}/", "")

    return run


def write(folder: Path, files: dict[str, bytes]) -> str:
    (folder / "g").mkdir()
    for name, content in files.items():
        (folder / "g" / name).write_bytes(content)
    return "g"


def test_the_good_folder_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, GOOD)
    monkeypatch.setattr(sys, "argv", ["satkgc", "kg", "import", str(tmp_path / "g"), str(tmp_path / "out")])
    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == 0
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train.tsv", b"a\tr\tb\n\nb\tr\n", r"train.tsv:3: 2 columns where 3 .*; give every line 3 columns"),
        ("train.tsv", b"a r b\n", r"train.tsv:1: 1 column where 3 .*separated by tabs"),
        ("train.tsv", b"a\tr\tb\tx\n", r"train.tsv:1: 4 columns where 3"),
        ("train.tsv", b"a\tr\tb\nb\tr\tc\r\td\n", r"train.tsv:2: .*; take the carriage return out"),
        ("train.tsv", b"a\tr\tb\nb\tr\t\xff\n", r"train.tsv:2: byte 5 of the line is not UTF-8; save"),
        ("train.tsv", b"a\tr\tb\n\tr\tc\n", r"train.tsv:2: the head of this triple is empty; fill"),
        ("train.tsv", b"a\tr\tb\n\nb\tr\tx\n", r"train.tsv:3: entity 'x' is not listed in .*; list .*--unlisted add"),
        ("train.tsv", b"a\ts\tb\n", r"train.tsv:1: relation 's' is not listed in g/relations.tsv; list"),
        ("train.tsv", b"", r"train.tsv: the file is empty; put rows in it"),
        ("test.tsv", b"\n\n", r"test.tsv: the file is empty; put rows in it, or remove"),
        ("entities.tsv", b"", r"entities.tsv: the file is empty"),
        ("entities.tsv", b"a\tAnn\tx\nb\tBob\n", r"entities.tsv:2: 2 columns where 3"),
        ("entities.tsv", b"a\tAnn\tx\nb\tBob\t\xc3\n", r"entities.tsv:2: byte 7 of the line is not UTF-8"),
        ("entities.tsv", b"a\tx\t\nb\tx\t\na\ty\t\n", r"entities.tsv: 1 entity id is listed .*: 'a' \(.*:1 and .*:3\)"),
        ("entities.tsv", b"a\tx\t\nb\t \t\nc\ty\t\n", r"entities.tsv:2: entity 'b' has neither .*--textless allow"),
        ("entities.tsv", b"a\t\t\nb\t \t\nc\t\t\n", r"entities.tsv:1: entity 'a' and 2 more have neither name nor "),
        ("entities.tsv", b"a\tx\n\tx\n", r"entities.tsv:2: the entity's id is empty"),
        ("relations.tsv", b"r\tx\ns\ty\nr\tz\n", r"relations.tsv: 1 relation id is listed more than once"),
        ("relations.tsv", b"r\tx\xff\n", r"relations.tsv:1: byte 4 of the line is not UTF-8"),
        ("test_entities.tsv", b"c\na\n", r"test_entities.tsv:1: entity 'c' is held out for test but occurs in train"),
        ("test_entities.tsv", b"z\n", r"test_entities.tsv:1: entity 'z' is in no list"),
    ],
)  # fmt: skip
def test_folder(refused: Callable[..., str], tmp_path: Path, file: str, content: bytes, message: str) -> None:
    assert re.match(rf"error: g/{message}", refused(write(tmp_path, {**GOOD, file: content})))


def test_a_relation_that_train_never_has(refused: Callable[..., str], tmp_path: Path) -> None:
    files = {**GOOD, "relations.tsv": b"r\tknows\ns\tsees\n", "test.tsv": b"a\tr\tc\na\ts\tc\nb\ts\tc\n"}
    message = refused(write(tmp_path, files))
    assert re.match(r"error: g/test.tsv:2: relation 's' is in test but never in train \(2 such triples\); ", message)


def test_a_line_without_end(refused: Callable[..., str], tmp_path: Path) -> None:
    message = refused(write(tmp_path, {**GOOD, "train.tsv": b"a\tr\tb\n" + b"x" * (1 << 25)}))
    assert re.match(r"error: g/train.tsv:2: a line of more than 16 MiB; ", message)


def test_no_such_source(refused: Callable[..., str]) -> None:
    assert "neither a file or folder" in refused("nothing")


def test_a_folder_that_is_no_graph(refused: Callable[..., str], tmp_path: Path) -> None:
    write(tmp_path, {"notes.txt": b"hello"})
    assert (
        refused("g")
        == "error: g: this folder is no graph: it has no train.tsv, and no table or RDF file; it holds notes.txt"
    )


def test_a_file_of_unknown_kind(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "g.docx").write_bytes(b"hello")
    assert re.match(r"error: g.docx: this kind of file is not known; give a folder, or .*\.csv", refused("g.docx"))


def test_an_entities_file_that_is_not_there(refused: Callable[..., str], tmp_path: Path) -> None:
    assert re.search(r"no others.tsv in it", refused(write(tmp_path, GOOD), "--entities-file", "others.tsv"))


@pytest.mark.parametrize(
    ("name", "content", "flags", "message"),
    [
        ("t.csv", b"head,relation,tail\na,r,b\nc,r\n", (), r"t.csv:3: 2 columns where 3 .*separated by ','"),
        ("t.csv", b'head,relation,tail\n"a\nb",r,b\nc,,d\n', (), r"t.csv:4: the relation of this triple is empty"),
        ("t.csv", b"head,relation,tail\na,r,\xff\n", (), r"t.csv:2: byte 5 of the line is not UTF-8"),
        ("t.csv", b"x,y,z\na,r,b\n", ("--head", "subj"), r"t.csv: .*no column 'subj' .*columns 'x', 'y', 'z'"),
        ("t.csv", b"x,y,z,w\na,r,b,c\n", (), r"t.csv: which column is the head.*--head.*from 0.* 'x', 'y', 'z', 'w'"),
        ("t.csv", b"x,y,z\na,r,b\n", ("--head", "7"), r"t.csv: there is no column '7'"),
        ("t.csv", b"head,relation,tail,split\na,r,b,train\na,r,c,later\n", (), r"t.csv:3: 'later' is no split; write"),
        ("t.csv", b"head,relation,tail,split\na,r,b,test\n", (), r"t.csv:2: no triple is for training"),
        ("t.csv", b"head,relation,tail\n", (), r"t.csv: the file has a header and no rows"),
        ("t.csv", b"", (), r"t.csv: the file is empty"),
        ("t.csv", b'head,relation,tail\n"a\nb",r,c\nc,r\r,d\n', (), r"t.csv:4: a carriage return .*; take it out"),
        ("t.csv", b"head,relation,tail\ra,r,b\rb,r,c\r", (), r"t.csv:1: a carriage return .* save .* newlines$"),
        ("t.csv.gz", gzip.compress(b"a,r,b\n" * 9999)[:60], (), r"t.csv.gz: .*cut short .* after [\d,]+ "),
        ("t.tsv.zst", zstd(b"a\tr\tb\n" * 9999)[:20], (), r"t.tsv.zst: the file is cut short"),
        ("t.csv", b"_id,_labels,_start,_end,_type\n1,x,,,\n", (), r"t.csv:2: no row has a head; export"),
        ("t.csv", b"_id,_labels,_start,_end,_type\n1,x,,,\n,,1,,r\n", (), r"t.csv:3: the tail of this triple is empty"),
        ("t.csv.gz", b"a,r,b\n", (), r"t.csv.gz: the file is cut short or damaged after 0 "),
        ("t.parquet", b"PAR1 not really", (), r"t.parquet: this is no Parquet file"),
        ("t.csv", b"a,r,b\n", ("--entities", "none.csv"), r"none.csv: there is no such file"),
    ],
)  # fmt: skip
def test_table(
    refused: Callable[..., str], tmp_path: Path, name: str, content: bytes, flags: tuple[str, ...], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert re.match(f"error: {message}", refused(name, *flags))


@pytest.mark.parametrize(("name", "row"), [("t.csv.gz", b"a,r,b\n"), ("g.nt.gz", NT)])
def test_a_gzip_made_to_fill_the_memory(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, row: bytes
) -> None:
    monkeypatch.setattr("satkgc.kg.readers.source.FREE_BYTES", 1 << 20)
    (tmp_path / name).write_bytes(gzip.compress(row * ((2 << 20) // len(row))))
    assert re.match(f"error: {name}: the file unpacks to more than 200 times", refused(name))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]}, "row 2: the head of this triple is empty"),
        ({"head": [b"a", b"\xff"], "relation": ["r", "r"], "tail": ["b", "c"]}, "row 2: the text is not UTF-8"),
        ({"head": [["a"]], "relation": ["r"], "tail": ["b"]}, "column 'head' is no text but list"),
        (dict.fromkeys(("head", "relation", "tail"), pa.array([], pa.string())), "the table has no rows"),
    ],
)  # fmt: skip
def test_parquet(refused: Callable[..., str], tmp_path: Path, columns: dict[str, object], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert refused("t.parquet").startswith(f"error: t.parquet: {message}")


def test_parquet_whose_strings_are_not_utf8(refused: Callable[..., str], tmp_path: Path) -> None:
    bad = pa.array([b"a", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"head": bad, "relation": ["r", "r"], "tail": ["b", "c"]}), tmp_path / "t.parquet")
    assert refused("t.parquet").startswith("error: t.parquet: row 2: the text is not UTF-8")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.nt", NT + b"<http://e/a> <http://r/r> oops .\n", r"g.nt:4: not N-Triples: column 27: "),
        ("g.nt", NT + OPEN + NT * 150_000, r"g.nt:4: not N-Triples: column 27: Unexpected end of the line; correct it"),
        ("g.nq.gz", gzip.compress(NT + OPEN + OPEN), r"g.nq.gz:4: not N-Quads: column 27: .* \(so is line 5\); "),
        ("g.nt", (NT + OPEN) * 6, r"g.nt:4: .* \(so are lines 8, 12, 16, 20, …\); correct"),
        ("g.nt", NT + OPEN[:30] + b"x" * (17 << 20) + b'" .', r"g.nt:4: not N-Triples: .* more than 16 MiB; correct"),
        ("g.ttl", OPEN + NT * 150_000, r"g.ttl: before byte [\d,]+: not Turtle: a literal or IRI that does not end"),
        ("g.nt", NT + b'<http://e/a> <http://r/r> "\xff" .\n', r"g.nt:4: not N-Triples: column 28: Invalid UTF-8"),
        ("g.nq", NT + b"<http://e/a> .\n", r"g.nq:4: not N-Quads"),
        ("g.ttl", NT + b"x:a x:b x:c .\n", r"g.ttl:4: not Turtle: column 1: The prefix x: .*; correct"),
        ("g.trig", b"{ <http://a> ", r"g.trig:1: not TriG"),
        ("g.rdf", b"<rdf:RDF xmlns:rdf='x'>", r"g.rdf: before byte 23: not RDF/XML: "),
        ("g.jsonld", b'{"@id": ', r"g.jsonld:1: not JSON-LD: column "),
        ("g.jsonld", b'{"@context": "https://schema.org/", "name": "x"}', r"g.jsonld: its @context is on the network"),
        ("g.nt.gz", gzip.compress(NT * 9999)[:200], r"g.nt.gz: the file is cut short .* after [\d,]+ unpacked bytes"),
        ("g.nt.zst", zstd(NT * 9999)[:30], r"g.nt.zst: the file is cut short or damaged"),
        ("g.parquet.gz", b"", r"g.parquet.gz: this kind of file is not known"),
        ("g.nt", b"", r"g.nt: no statement in it joins two entities"),
        ("g.nt", b'<http://e/a> <http://r/r> "only text" .\n', r".*g.nt: no statement in it joins"),
        ("g.ttl", b"<http://a> <http://" + b"x" * 9999 + b"> <http://b> .\n", r"g.ttl: an IRI of 10,006 characters"),
        ("g.ttl", b"@prefix : <http://" + b"x" * 9999 + b"/> . :a :b :c .\n", r"g.ttl: an IRI of 10,0\d\d characters"),
    ],
)  # fmt: skip
def test_rdf(refused: Callable[..., str], tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert re.match(f"error: {message}", refused(name))


@pytest.mark.parametrize("gap", [0, 8_150, 8_170, 65_520])  # so that a declaration straddles what is read at once
def test_xml_entities_that_grow(refused: Callable[..., str], tmp_path: Path, gap: int) -> None:
    growing = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(5))  # 200 KB, if it were not refused
    xml = forms.rdf_xml(
        forms.Source({"train": [("http://e/a", "http://r/r", "http://e/b")]}, {"http://e/a": ("&e5;", "")})
    )
    bomb = f'<!--{" " * gap}--><!DOCTYPE r [<!ENTITY e0 "ha">{growing}]>\n{xml.replace("&amp;", "&")}'
    (tmp_path / "g.rdf").write_text(bomb)
    assert re.match(r"error: g.rdf: an XML entity is long or made of other entities", refused("g.rdf"))


def packed(path: Path, members: dict[str, bytes], link: str | None = None) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return
    with tarfile.open(path, f"w:{path.suffix[1:]}") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if name == link:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", ["g.zip", "g.tar.gz", "g.tar.xz"])
@pytest.mark.parametrize("member", ["../train.tsv", "/tmp/train.tsv", "a/../../train.tsv", "..\\train.tsv"])
def test_an_archive_that_would_write_elsewhere(
    refused: Callable[..., str], tmp_path: Path, name: str, member: str
) -> None:
    packed(tmp_path / name, {member: GOOD["train.tsv"]})
    assert re.match(rf"error: {name}: the archive's member .* points outside of it", refused(name))


def test_an_archive_whose_file_is_a_link(refused: Callable[..., str], tmp_path: Path) -> None:
    packed(tmp_path / "g.tar.gz", {"train.tsv": b""}, link="train.tsv")
    assert "there is no train.tsv in this archive" in refused("g.tar.gz")


@pytest.mark.parametrize(
    ("name", "member"),  # the other members of a zip are never unpacked; those of a tar lie in the way
    [
        ("g.zip", "train.tsv"),
        *((name, member) for name in ("g.tar.gz", "g.tar.xz") for member in ("train.tsv", "x.bin")),
    ],
)
def test_an_archive_made_to_fill_the_disk(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, member: str
) -> None:
    monkeypatch.setattr("satkgc.kg.readers.source.FREE_BYTES", 1 << 20)
    packed(tmp_path / name, {member: bytes(4 << 20), "z/train.tsv": GOOD["train.tsv"]})
    assert re.match(rf"error: {name}: the archive unpacks to more than 200 times its size", refused(name))


@pytest.mark.parametrize("name", ["g.zip", "g.tar.gz", "g.tar.xz", "g.tar.bz2", "g.tar"])
def test_an_archive_cut_short(refused: Callable[..., str], tmp_path: Path, name: str) -> None:
    packed(tmp_path / name, {"train.tsv": b"".join(b"e%d\tr\te%d\n" % (i, i * i % 977) for i in range(5000))})
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    assert re.match(rf"error: {name}: the archive is cut short or damaged \(.+\); fetch", refused(name))


def test_an_archive_without_a_graph(refused: Callable[..., str], tmp_path: Path) -> None:
    packed(tmp_path / "g.zip", {"notes.txt": b"hello"})
    assert "there is no train.tsv in this archive" in refused("g.zip")


def test_a_line_in_an_archive_is_named(refused: Callable[..., str], tmp_path: Path) -> None:
    packed(tmp_path / "g.tar.gz", {"wn/train.tsv": b"a\tr\tb\na\tr\n"})
    assert refused("g.tar.gz").startswith("error: g.tar.gz/wn/train.tsv:2: 2 columns where 3 columns should be")
