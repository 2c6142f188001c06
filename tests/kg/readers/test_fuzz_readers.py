"""Damaged and made-up input: a reader gives a graph or one line, never anything else. scripts/fuzz_readers.py goes on
for longer; what it found is kept below."""

from __future__ import annotations

import importlib.util
import io
import logging
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz_readers.py"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_readers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fuzzer = load_script()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@st.composite
def damaged(draw: st.DrawFn, form: str) -> bytes:
    """A good input with a few pieces cut out, repeated, moved or overwritten."""
    data = bytearray(draw(st.sampled_from(fuzzer.seeds(form))))
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 40))
        piece = bytes(data[at : at + length])
        to = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                del data[at : at + length]
            case 1:
                data[to:to] = piece
            case 2:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=4))
            case 3:
                del data[to:]
    return bytes(data)


@pytest.mark.parametrize("form", fuzzer.FORMS)
def test_damaged_input(form: str) -> None:
    @settings(max_examples=30, database=None, suppress_health_check=list(HealthCheck))
    @given(damaged(form) | st.binary(max_size=60))
    def run(data: bytes) -> None:
        fuzzer.attempt(form, data)  # raises what is not meant for users

    run()


@pytest.mark.parametrize("form", fuzzer.FORMS)
def test_the_seeds_are_good_input(form: str) -> None:
    results = [fuzzer.attempt(form, seed) for seed in fuzzer.seeds(form)]
    assert all(result.startswith("KnowledgeGraph(") for result in results), results


def test_found_parquet_column_names_that_are_not_utf8() -> None:
    pq.write_table(pa.table({"head": ["a"], "relation": ["r"], "tail": ["b"]}), sink := io.BytesIO())
    assert "no Parquet file, or a damaged one" in fuzzer.attempt(
        "parquet", sink.getvalue().replace(b"tail", b"t\x85il")
    )


def test_found_parquet_that_claims_rows_it_has_not() -> None:
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in ("h", "r", "t")}), sink := io.BytesIO())
    assert "the table has no rows" in fuzzer.attempt("parquet", sink.getvalue())


def test_found_an_rdf_message_of_two_lines() -> None:
    broken = fuzzer.XML.replace(b'rdf:resource="b"', b'rdf:resource="b\n\n[c"')
    assert "not RDF/XML" in fuzzer.attempt("rdf", broken)


def test_found_memory_lost_with_every_damaged_gzip() -> None:
    fuzzer.attempt("csv.gz", b"no gzip")
    tracemalloc.start()
    for _ in range(20):
        fuzzer.attempt("csv.gz", b"no gzip")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 20 * 32_000  # it was 64 KiB a file, and three files an attempt
