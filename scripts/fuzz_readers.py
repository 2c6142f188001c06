"""Fuzz the readers: no input may give a traceback, a hang or a full memory. Only SatkgcError is allowed.

atheris is not among the development packages, as it is made for few platforms. To run it:

    .venv/bin/pip install atheris
    .venv/bin/python scripts/fuzz_readers.py csv --seconds 300          # one of the forms below
    .venv/bin/python scripts/fuzz_readers.py all --seconds 3600         # the time divided among all of them
    .venv/bin/python scripts/fuzz_readers.py csv --replay finding.bin   # what does this input do?

Inputs are kept in .fuzz/FORM and grow from run to run; findings are written to .fuzz/findings and the run goes on
with the next form. Each form's executions and result are printed as a line. A finding that is mended becomes a test
in tests/kg/readers/test_fuzz_findings.py.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import logging
import os
import pkgutil
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOM = Path(__file__).parents[1] / ".fuzz"
MEMORY_MB = 2_048
SECONDS_EACH = 60  # for one input, on a busy machine
BYTES_EACH = 1 << 16

NT = b"""<http://e/a> <http://r/knows> <http://e/b> .
<http://e/b> <http://r/knows> _:x .
<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann"@en .
_:x <http://xmlns.com/foaf/0.1/name> "Nobody" .
<http://e/c> <http://r/age> "5"^^<http://www.w3.org/2001/XMLSchema#int> .
"""
TTL = b"""@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :knows :b, [ rdfs:label "x"@de ] ; :list (:a "1" 2.5 true) ; rdfs:comment \"\"\"long
text\"\"\" . <#me> a :Person .
"""
XML = b"""<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:r="http://r/" xml:base="http://e/">
<rdf:Description rdf:about="&e;a"><r:knows rdf:resource="b"/><r:list rdf:parseType="Collection"/></rdf:Description>
<r:Thing rdf:ID="c"><r:knows><r:Thing rdf:nodeID="n"/></r:knows></r:Thing></rdf:RDF>
"""
JSON = b"""{"@context": {"@vocab": "http://v/", "knows": {"@type": "@id"}}, "@graph": [
{"@id": "http://e/a", "knows": ["http://e/b", {"@id": "_:c", "name": "x"}], "list": {"@list": [1, "2"]}}]}
"""
CSV = b'head,relation,tail,split\na,r,"b, or\nc",train\nb,r,"say ""x""",test\nc,r,a,train\nc,r,a,train\n'
FILES = {
    "train.tsv": b"a\tr\tb\nb\tr\tc\nc\ts\ta\r\n\na\tr\tb\n",
    "test.tsv": b"a\tr\tc\n",
    "entities.tsv": "a\tAnn\tné\nb\tBob\t\nc\t\tthree\n".encode(),
    "relations.tsv": b"r\tknows\ns\tsees\n",
}
MARK = b"\n==== "  # between the files of a folder in one input


def seeds(form: str) -> list[bytes]:
    """Inputs to start from."""
    if form in ("folder", "archive"):
        folder = b"".join(MARK + name.encode() + b"\n" + content for name, content in FILES.items())
        inductive = folder.replace(b"c\t\tthree", b"d\tDee\t\nc\t\tthree") + MARK + b"test_entities.tsv\nd\n"
        return [folder, inductive] + (form == "archive") * _archives()
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = [
            pa.table({"head": ["a", "b", "c"], "relation": ["r", "r", "s"], "tail": ["b", "c", "a"]}),
            pa.table({"h": [1, 2], "r": [b"r", b"r"], "t": [1.5, 1.0], "split": ["train", "test"]}),
        ]
        inputs = []
        for table in tables:
            for compression in ("none", "snappy", "zstd"):
                pq.write_table(table, sink := io.BytesIO(), compression=compression)
                inputs.append(sink.getvalue())
        return inputs
    texts = {"csv": CSV, "tsv": FILES["train.tsv"], "nt": NT, "nq": NT, "ttl": TTL, "rdf": XML, "jsonld": JSON}
    texts["trig"] = b"{ " + NT + b"}"
    if form.endswith(".gz"):
        return [gzip.compress(seed) for seed in seeds(form[:-3])]
    return [texts[form]]


def _archives() -> list[bytes]:
    with zipfile.ZipFile(zipped := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    packed = [zipped.getvalue()]
    for kind in ("gz", "xz", "bz2", ""):
        with tarfile.open(fileobj=(sink := io.BytesIO()), mode=f"w:{kind}") as tar:
            for name, content in FILES.items():
                member = tarfile.TarInfo(f"g/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        packed.append(sink.getvalue())
    return packed


FORMS = ("folder", "archive", "csv", "tsv", "csv.gz", "parquet", "nt", "nq", "ttl", "trig", "rdf", "jsonld", "nt.gz")
MAGIC = {b"PK": "zip", b"\x1f\x8b": "tar.gz", b"\xfd7": "tar.xz", b"BZ": "tar.bz2"}


def place(form: str, data: bytes, room: Path) -> Path:
    """Put an input where a reader finds it: as one file, or cut up into those of a folder."""
    if form == "folder":
        (room / "g").mkdir()
        for part in data.split(MARK)[1:]:
            name, _, content = part.partition(b"\n")
            if re.fullmatch(rb"[a-z_]{1,20}\.tsv", name):
                (room / "g" / name.decode()).write_bytes(content)
        return room / "g"
    ending = form if form != "archive" else MAGIC.get(data[:2], "tar")
    path = room / f"g.{ending}"
    if form == "archive" and data.startswith(MARK[:4]):  # a good archive of mutated files
        path = room / "g.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for part in data.split(MARK)[1:]:
                name, _, content = part.partition(b"\n")
                archive.writestr(name.decode("latin-1").replace("\0", "") or "x", content)
        return path
    path.write_bytes(data)
    return path


def attempt(form: str, data: bytes) -> str:
    """Read an input as the command line would; say what came of it. Anything but SatkgcError flies."""
    from satkgc.errors import SatkgcError
    from satkgc.kg import ReadOptions, read_graph

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as room:
        (Path(room) / "listed.csv").write_bytes(b"a,Ann\nb,Bob\nc,Cy\n1,One\n2,Two\n")
        listed = {"unlisted": "add", "textless": "allow", "duplicates": "merge"}
        columns = {"head": "0", "relation": "1", "tail": "2"}
        choices = [{"languages": ("de", "")}]
        if form in ("folder", "archive"):
            choices = [listed]
        elif form in ("csv", "tsv", "csv.gz", "parquet"):
            choices = [listed | columns, {"entities": Path(room) / "listed.csv"}, {"relation_name": "r"}]
        for options in (*(ReadOptions(split="inductive", **chosen) for chosen in choices), ReadOptions()):
            try:
                graph = read_graph(place(form, data, Path(room)), options)
                result = str(graph)
                for vocabulary in (graph.entities, graph.relations):
                    vocabulary.ids.to_pylist(), vocabulary.names.to_pylist(), vocabulary.descriptions.to_pylist()
                    assert all(vocabulary.names.to_pylist())
            except SatkgcError as error:
                result = str(error)
                assert "\n" not in result, result
            shutil.rmtree(Path(room) / "g", ignore_errors=True)
    return result


def fuzz(form: str, seconds: int) -> None:
    """Run libFuzzer in this process; it ends it."""
    import atheris

    resource.setrlimit(resource.RLIMIT_AS, (5 * MEMORY_MB << 20, 5 * MEMORY_MB << 20))
    logging.disable()
    import satkgc.kg

    for module in pkgutil.iter_modules(satkgc.kg.__path__, "satkgc.kg."):
        if not module.ispkg:
            importlib.import_module(module.name)  # compiled code cannot be instrumented: imported before
    with atheris.instrument_imports(include=["satkgc.kg.readers", "tarfile", "zipfile", "csv"]):
        import satkgc.kg.readers.folder
        import satkgc.kg.readers.rdf
        import satkgc.kg.readers.table
    corpus = ROOM / form
    corpus.mkdir(parents=True, exist_ok=True)
    (ROOM / "findings").mkdir(exist_ok=True)
    for number, seed in enumerate(seeds(form)):
        (corpus / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MB}", f"-timeout={SECONDS_EACH}"]
    limits += [f"-max_len={BYTES_EACH}", f"-artifact_prefix={ROOM}/findings/{form}-"]
    limits += ["-print_final_stats=1", f"-report_slow_units={SECONDS_EACH // 2}"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], lambda data: attempt(form, data) and None)
    atheris.Fuzz()


def supervise(forms: tuple[str, ...], seconds: int) -> None:
    """Each form in a process of its own, so that a finding in one does not end the others."""
    for form in forms:
        command = [sys.executable, __file__, form, "--seconds", str(seconds // len(forms)), "--here"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        count = re.search(r"number_of_executed_units: (\d+)", run.stderr)
        findings = re.findall(r"Test unit written to (\S+)", run.stderr)
        cause = re.findall(r"^(?:SUMMARY:.*|[\w.]*(?:Error|Exception)\b.*)$", run.stderr, re.MULTILINE)
        executed = count[1] if count else "?"
        print(f"{form}: {executed} executions, {len(findings)} findings", *findings, *cause[-2:], flush=True)


def main() -> None:
    """Parse and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=[*FORMS, "all"])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--replay", type=Path, help="an input to read once")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.replay:
        print(attempt(given.form, given.replay.read_bytes()))
    elif given.here:
        fuzz(given.form, given.seconds)
    else:
        supervise(FORMS if given.form == "all" else (given.form,), given.seconds)


if __name__ == "__main__":
    main()
