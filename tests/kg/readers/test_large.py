"""Sources read by way of the disk give the folder that reading in memory gives, file for file; and what is refused."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, kernels
from satkgc.kg.readers import ReadOptions, large, parquet, read_graph, staging
from satkgc.kg.readers.source import SourceFile

IDS = st.sampled_from(["a", "b", "c", "d e", "É", "e\u0301", " a", "http://x.org/birthPlace", "_f", "0"])
RELATIONS = st.sampled_from(["r", "s", "t u"])
TEXTS = st.sampled_from(["", "one", " one ", "two words", "è"])


def files_of(source: object, folder: Path, **options: object) -> dict[str, object] | str:
    """The sums of a graph's files, or what is wrong with its source."""
    try:
        read_graph(source, ReadOptions(name="g", **options)).save(folder)  # type: ignore[arg-type]
    except SatkgcError as error:
        return str(error)
    return json.loads((folder / "meta.json").read_text())["files"]


def both_ways(source: object, place: Path, **options: object) -> tuple[object, object]:
    found = files_of(source, place / "in-memory", **options), files_of(source, place / "large", memory=0.2, **options)
    assert not list(place.glob(".*")), "something was left behind"
    return found


def write(path: Path, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)}), path, row_group_size=3)
    else:
        mark = "," if path.suffix == ".csv" else "\t"
        path.write_text("".join(mark.join(row) + "\n" for row in [names, *rows]))
    return path


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(IDS, RELATIONS, IDS, st.sampled_from(["train", " Valid", "test"])), min_size=4, max_size=12),
    st.lists(st.tuples(IDS, TEXTS, TEXTS), max_size=8),
    st.sampled_from([".parquet", ".csv", ".tsv"]),
    st.fixed_dictionaries(
        {
            "unlisted": st.sampled_from(["error", "add"]),
            "textless": st.sampled_from(["error", "allow"]),
            "duplicates": st.sampled_from(["error", "first", "last", "merge"]),
            "exclude": st.sampled_from([(), ("s",)]),
        }
    ),
    st.booleans(),
)  # fmt: skip
def test_tables(rows: list, listing: list, ending: str, options: dict, has_split: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        width = 4 if has_split else 3
        half = write(
            place / f"one{ending}", ("head", "relation", "tail", "split")[:width], [r[:width] for r in rows[:3]]
        )
        more = write(
            place / f"two{ending}", ("head", "relation", "tail", "split")[:width], [r[:width] for r in rows[3:]]
        )
        if listing:
            options["entities"] = write(place / f"texts{ending}", ("id", "name", "description"), listing)
        in_memory, on_disk = both_ways([half, more], place, **options)
        if isinstance(in_memory, str) and isinstance(on_disk, str):
            return  # of several things that are wrong, either names one
        assert on_disk == in_memory


W3 = "http://www.w3.org/"
IRIS = st.sampled_from([f"<http://e/{name}>" for name in ("a", "b", "c", "birthPlace")] + ["_:x", "_:y", "_:z"])
PREDICATES = st.sampled_from(["<http://e/p>", "<http://e/birthPlace>", f"<{W3}1999/02/22-rdf-syntax-ns#value>"])
TEXT_PREDICATES = [f"<{W3}{end}>" for end in ("2000/01/rdf-schema#label", "2004/02/skos/core#altLabel")]
TEXT_PREDICATES.append(f"<{W3}2000/01/rdf-schema#comment>")
WORDS, TAGS = st.sampled_from(["", "one", " one  two ", "three"]), st.sampled_from(["", "@en", "@de", "@en-GB"])
STATEMENTS = st.one_of(
    st.tuples(IRIS, PREDICATES, IRIS),
    st.tuples(IRIS, PREDICATES, st.just('"5"')),
    st.tuples(IRIS | PREDICATES, st.sampled_from(TEXT_PREDICATES), st.builds('"{}"{}'.format, WORDS, TAGS)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STATEMENTS, min_size=3, max_size=14), st.sampled_from([(), ("http://e/p",), ("birth place",)]))
def test_rdf_with_blank_nodes(statements: list, exclude: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "g.nt").write_text("".join(f"{s} {p} {o} .\n" for s, p, o in statements))
        in_memory, on_disk = both_ways(place / "g.nt", place, exclude=exclude, split="none")
        assert on_disk == in_memory


def test_a_graph_is_the_same_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    numbers = (rng.zipf(1.5, (500, 3)) % [60, 4, 60]).astype(str)
    source = write(tmp_path / "t.csv", ("head", "relation", "tail"), [tuple(row) for row in numbers])
    whole = files_of(source, tmp_path / "whole")
    monkeypatch.setattr(kernels, "BLOCK", 7)
    assert files_of(source, tmp_path / "blocks") == whole
    graph, ours = KnowledgeGraph.load(tmp_path / "whole"), read_graph(source, ReadOptions())
    for part in ("neighbour_ptr", "neighbours", "edge_ptr", "edges", "degree"):
        assert np.array_equal(getattr(graph.adjacency, part), getattr(ours.adjacency, part))


def test_what_was_read_of_a_parquet_file_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS", 1 << 12)
    words = pa.array([f"{number:032x}" for number in np.random.default_rng(0).integers(0, 2**60, 1 << 18)])
    pq.write_table(pa.table({"head": words, "relation": words, "tail": words}), tmp_path / "t.parquet", 1 << 12)
    table = parquet.ParquetTable(SourceFile.of(tmp_path / "t.parquet"))
    before, most = pa.total_allocated_bytes(), 0
    for _ in table.batches([0, 1, 2]):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 0.5 * (tmp_path / "t.parquet").stat().st_size


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.tsv", "a\tr\tb\nb\tr\n", "t.tsv:2: 2 columns where 3 columns should be"),
        ("t.csv", "head,relation,tail", "t.csv: the file has a header and no rows; put rows in it"),
        ("t.csv", "head,relation,tail\na,r,b\nb,,c\n", "t.csv:3: the relation of this triple is empty"),
        ("t.csv", "head,relation,tail,split\na,r,b,train\nb,r,c,tran\n", "t.csv:3: 'tran' is no split"),
        ("t.nt", "<http://a> <http://b> <http://c> .\n<http://a> <http://b .\n", "t.nt:2: not N-Triples"),
    ],
)
def test_bad_rows_are_named_by_their_lines(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SatkgcError) as error:
        read_graph(tmp_path / name, ReadOptions(memory=0.2, spill=tmp_path))
    assert message in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_unlisted_and_untrained_are_named_by_their_rows(tmp_path: Path) -> None:
    rows = [("a", "r", "b", "train"), ("b", "r", "a", "valid"), ("c", "r", "a", "train"), ("a", "s", "b", "test")]
    source = write(tmp_path / "t.parquet", ("head", "relation", "tail", "split"), rows)
    listing = write(tmp_path / "e.csv", ("id", "name"), [("a", "A"), ("b", "B")])
    in_memory, on_disk = both_ways(source, tmp_path, entities=listing)
    assert on_disk == in_memory
    assert "t.parquet: row 3: entity 'c' is not listed" in str(on_disk)
    in_memory, on_disk = both_ways(source, tmp_path)
    assert on_disk == in_memory
    assert "t.parquet: row 4: relation 's' is in test but never in train" in str(on_disk)


def test_a_source_is_read_from_the_disk_when_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = write(
        tmp_path / "t.csv", ("head", "relation", "tail"), [("a", "r", "b"), ("b", "r", "c"), ("a", "r", "c")]
    )
    areas: list[float] = []
    real = staging.Staging.__init__
    monkeypatch.setattr(
        staging.Staging, "__init__", lambda self, folder, memory: (areas.append(memory), real(self, folder, memory))[1]
    )
    read_graph(source)
    assert not areas
    monkeypatch.setattr(large, "free_memory", lambda: 150)
    monkeypatch.setattr(large, "MOST", 0.25)
    read_graph(source)
    assert areas == [min(0.25, 75 / 2**30)]
    monkeypatch.setattr(large, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        read_graph(source)
    assert len(areas) == 1
    assert "satkgc[large]" in caplog.text
    with pytest.raises(SatkgcError, match="needs DuckDB"):
        read_graph(source, ReadOptions(memory=1))


def test_what_only_memory_can_read_is_refused_there(tmp_path: Path) -> None:
    names = ("head", "relation", "tail", "head_name", "tail_name")
    source = write(tmp_path / "t.csv", names, [("a", "r", "b", "A", "B"), ("b", "r", "a", "B", "A")])
    with pytest.raises(SatkgcError, match="names beside the triples: read in memory only"):
        read_graph(source, ReadOptions(memory=1))


def test_a_killed_import_leaves_no_graph_and_the_next_one_clears_up(tmp_path: Path) -> None:
    source = write(
        tmp_path / "t.csv", ("head", "relation", "tail"), [("a", "r", "b"), ("b", "r", "c"), ("a", "s", "c")]
    )
    code = (
        "import os, signal, sys; from satkgc.kg.readers import staging; from satkgc.cli import main\n"
        "staging.Staging.number = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "main()"
    )
    arguments = ["kg", "import", str(source), str(tmp_path / "out"), "--memory", "1"]
    killed = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True)
    assert killed.returncode == -9, killed.stderr
    left = [path.name for path in tmp_path.iterdir() if path != source]
    assert len(left) == 1
    assert left[0].startswith(".satkgc-staging.partial-")
    read_graph(source, ReadOptions(memory=1, spill=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
