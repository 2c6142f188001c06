"""Files made to fill the memory or the disk, to take for ever or to kill the process: one line, soon, and an exit.

Each is read by the command in a process of its own, whose memory and time are bounded by the system.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satkgc.kg.readers import read_graph
from satkgc.kg.readers.guards import TermGuard

MEMORY = 3 << 30  # of address space, most of which libraries take and do not use
ROWS = b"a\tr\tb\nb\tr\tc\nc\tr\ta\n"


def refused(source: Path, *options: str, memory: int = MEMORY) -> str:
    """The one line with which the import of a source is refused; nothing is written, and the process ends."""
    out = source.parent / "out"
    command = [sys.executable, "-m", "satkgc", "kg", "import", str(source), str(out), *options]
    room = source.parent / "room"
    room.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(room), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )
    assert done.returncode == 2, done.stderr[-500:]
    *before, line = done.stderr.splitlines()
    assert all(text.startswith("Reading ") for text in before), done.stderr  # said of what takes a second
    assert not out.exists()
    assert os.listdir(room) == []
    return line


def test_a_sparse_file_in_an_archive(tmp_path: Path) -> None:
    """1.5 KB that would write 4 GB."""
    with tarfile.open(tmp_path / "g.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("train.tsv")
        size = 4 << 30
        member.pax_headers = {
            "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "train.tsv",
            "GNU.sparse.realsize": str(size),
        }  # fmt: skip
        data = f"1\n{size - 3}\n3\n".encode().ljust(512, b"\0") + b"a\tb"
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    assert "train.tsv is a sparse file" in refused(tmp_path / "g.tar")


@pytest.mark.parametrize("typed", [True, False])
def test_a_table_whose_cells_are_one_long_text(tmp_path: Path, typed: bool) -> None:
    """A dictionary of one text: a few kilobytes, gigabytes once each cell is written out."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 60_000]))
    column = text if typed else pa.chunked_array([pa.array(["x" * 60_000] * 10_000)] * 10)
    short = pa.array(["r"] * 100_000)
    pq.write_table(
        pa.table({"head": column, "relation": short, "tail": short}), tmp_path / "g.parquet", compression="zstd"
    )
    assert (tmp_path / "g.parquet").stat().st_size < 200_000
    assert "takes far more memory than its file has bytes" in refused(tmp_path / "g.parquet")


def test_terms_within_terms(tmp_path: Path) -> None:
    """The parser follows them by recursion, to the end of its stack."""
    for name in ("g.ttl", "g.nt"):
        deep = b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * 100_000 + b"<a:o>" + b" )>>" * 100_000 + b" .\n"
        (tmp_path / name).write_bytes(deep)
        assert "nested more than 1,000 deep" in refused(tmp_path / name)
    tricky = b"<a:s> <a:p> " + b"<<( <a:s> <a:p>\n# a comment.\n" * 100_000
    (tmp_path / "h.ttl").write_bytes(tricky)
    assert "nested more than 1,000 deep" in refused(tmp_path / "h.ttl")


def test_elements_within_elements(tmp_path: Path) -> None:
    rdf = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">'
    (tmp_path / "g.rdf").write_bytes(rdf + b"<a:x><a:p>" * 100_000 + b"</a:p></a:x>" * 100_000 + b"</rdf:RDF>")
    assert "nested more than 1,000 deep" in refused(tmp_path / "g.rdf")


def test_an_entity_named_a_million_times(tmp_path: Path) -> None:
    head = b'<!DOCTYPE r [<!ENTITY a "' + b"x" * 250 + b'">]>'
    rdf = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:r="http://www.w3.org/2000/01/rdf-schema#">'
    label = (
        b'<rdf:Description rdf:about="a:s"><r:label>' + b"&a;" * 2_000_000 + b"</r:label></rdf:Description></rdf:RDF>"
    )
    (tmp_path / "g.rdf").write_bytes(head + rdf + label)
    assert "XML entities grow to many times the file's size" in refused(tmp_path / "g.rdf")


def test_an_archive_of_very_many_members(tmp_path: Path) -> None:
    """Those that are no part of a graph are not even opened."""
    with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
        for number in range(30_000):
            archive.writestr(f"{number}/notes.txt", "")
    assert "there is no train.tsv" in refused(tmp_path / "g.zip")
    block = tarfile.TarInfo("x").tobuf()
    (tmp_path / "g.tar").write_bytes(block * 110_000 + bytes(1024))
    assert "more than 100,000 members" in refused(tmp_path / "g.tar")


def test_members_that_are_no_part_of_a_graph_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening tens of thousands takes minutes, whatever is in them."""
    with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
        for name in ("g/train.tsv", "g/notes.txt", "g/train.tsv/notes.txt", "other.tsv"):
            archive.writestr(zipfile.ZipInfo(name), ROWS)
        archive.mkdir("g/test.tsv")
    opened: list[str] = []
    really = zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda self, m: opened.append(m.filename) or really(self, m))
    assert read_graph(tmp_path / "g.zip").num_entities == 3
    assert opened == ["g/train.tsv"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "g.tsv")
    assert "a pipe or a device" in refused(tmp_path / "g.tsv")


@pytest.mark.parametrize("cut", [True, False])
def test_a_bomb_or_a_cut_file_ends_the_process_too(tmp_path: Path, cut: bool) -> None:
    """Arrow's threads were left inside Python, and the process hung at its end, or aborted; not every time."""
    data = gzip.compress(ROWS * 3_000_000 if cut else ROWS * 30_000_000, 1)
    (tmp_path / "g.tsv.gz").write_bytes(data[:-2000] if cut else data)
    told = {refused(tmp_path / "g.tsv.gz") for _ in range(3)}
    assert len(told) == 1
    assert ("cut short or damaged" if cut else "unpacks to more than 200 times its size") in told.pop()


def test_the_checksum_at_the_end_of_an_archive_counts(tmp_path: Path) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        member = tarfile.TarInfo("train.tsv")
        member.size = len(ROWS)
        archive.addfile(member, io.BytesIO(ROWS))
    packed = bytearray(gzip.compress(plain.getvalue()))
    packed[-6] ^= 1
    (tmp_path / "g.tar.gz").write_bytes(packed)
    assert "the archive is cut short or damaged (CRC check failed" in refused(tmp_path / "g.tar.gz")


@given(
    st.lists(st.sampled_from([b"<<( ", b" )>>", b" .\n", b"# x.\n", b"<a:b#c>", b"\n", b"<", b")", b">"]), max_size=60)
)
def test_no_cut_between_bytes_hides_depth(parts: list[bytes]) -> None:
    data = b"".join(parts)

    def depth(size: int) -> int:
        guard = TermGuard(io.BytesIO(data), "g.ttl")
        while guard.read(size):
            pass
        return guard._depth

    assert min(depth(1), depth(3)) >= depth(1000)
