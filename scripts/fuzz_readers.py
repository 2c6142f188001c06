"""Fuzz the readers: no input may give a traceback, a hang or a full memory. Only SatkgcError is allowed.

atheris is not among the development packages, as it is made for few platforms. To run it:

    .venv/bin/pip install atheris
    .venv/bin/python scripts/fuzz_readers.py csv --seconds 300          # one of the forms below
    .venv/bin/python scripts/fuzz_readers.py all --seconds 3600         # the time divided among all of them
    .venv/bin/python scripts/fuzz_readers.py csv --replay finding.bin   # what does this input do?
    .venv/bin/python scripts/fuzz_readers.py all --mutations 5000       # without atheris: seeded mutations of the seeds

Inputs are kept in .fuzz/FORM and grow from run to run; findings are written to .fuzz/findings and the run goes on
with the next form. Each form's executions and result are printed as a line. A finding that is mended becomes a test
in tests/kg/readers/test_fuzz_readers.py.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import json
import logging
import os
import pkgutil
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parents[1] / ".fuzz"
MEMORY_MB = 2_048
SECONDS_EACH = 60  # for one input, on a busy machine
BYTES_EACH = 1 << 16

NT = b"""<http://e/a> <http://r/knows> <http://e/b> .
<http://e/b> <http://r/knows> _:x .
<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann"@en .
_:x <http://xmlns.com/foaf/0.1/name> "Nobody" .
<http://e/c> <http://r/age> "5"^^<http://www.w3.org/2001/XMLSchema#int> .
<http://e/a> <http://r/born> "1815-12-10T10:20:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<http://e/b> <http://r/size> "-1.5E3"^^<http://www.w3.org/2001/XMLSchema#double> .
"""
TTL = b"""@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :knows :b, [ rdfs:label "x"@de ] ; :list (:a "1" 2.5 true) ; :size 1e9, -0.5, 7 ; rdfs:comment \"\"\"long
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
OFN = b"""Prefix(:=<http://e/>) Prefix(rdfs:=<http://www.w3.org/2000/01/rdf-schema#>)
Ontology(<http://e/o> Declaration(Class(:A)) Declaration(ObjectProperty(:p)) AnnotationAssertion(rdfs:label :A "Ann"@en)
SubClassOf(:A ObjectSomeValuesFrom(:p ObjectUnionOf(:B :C))) EquivalentClasses(:B :C) ObjectPropertyAssertion(:p :x :y))
"""
OMN = b"""Prefix: : <http://e/>
Prefix: rdfs: <http://www.w3.org/2000/01/rdf-schema#>
Ontology: <http://e/o>
ObjectProperty: :p
Class: :A
    Annotations: rdfs:label "Ann"@en
    SubClassOf: :p some (:B or :C), :B
Class: :B
Class: :C
Individual: :x
    Types: :A
    Facts: :p :x
"""
OWX = b"""<?xml version="1.0"?>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" xml:base="http://e/o" ontologyIRI="http://e/o">
<Prefix name="" IRI="http://e/"/><Declaration><Class IRI="#A"/></Declaration>
<SubClassOf><Class IRI="#A"/><ObjectSomeValuesFrom><ObjectProperty IRI="#p"/><Class IRI="#B"/></ObjectSomeValuesFrom>
</SubClassOf><ClassAssertion><Class IRI="#A"/><NamedIndividual IRI="#x"/></ClassAssertion></Ontology>
"""
OBO = b"""format-version: 1.2
ontology: o

[Term]
id: E:1
name: one
def: "the first" [x:1]
is_a: E:2 ! two
relationship: part_of E:3 ! three

[Term]
id: E:2
name: two

[Term]
id: E:3
name: three
intersection_of: E:2
intersection_of: part_of E:1

[Typedef]
id: part_of
name: part of
is_transitive: true
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
    texts |= {"trig": b"{ " + NT + b"}", "ofn": OFN, "omn": OMN, "owx": OWX, "obo": OBO, "owl": OWX}
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
FORMS += ("ofn", "omn", "owx", "obo", "owl")
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


def attempt(form: str, data: bytes, rooms: str | None = None, by_disk: bool = False) -> str:
    """Read an input as the command line would; say what came of it. Anything but SatkgcError flies.

    By way of the disk too, if asked for, as what is larger than memory is read: that takes ten times as long.
    """
    from satkgc.errors import SatkgcError
    from satkgc.kg import ReadOptions, read_graph

    rooms = rooms or ("/dev/shm" if Path("/dev/shm").is_dir() else None)
    with tempfile.TemporaryDirectory(dir=rooms) as room:
        (Path(room) / "listed.csv").write_bytes(b"a,Ann\nb,Bob\nc,Cy\n1,One\n2,Two\n")
        listed = {"unlisted": "add", "textless": "allow", "duplicates": "merge"}
        columns = {"head": "0", "relation": "1", "tail": "2"}
        choices = [{"languages": ("de", ""), "literals": ("all",)}, {"literals": ("http://r/age",)}]
        if form in ("folder", "archive"):
            choices = [listed]
        elif form in ("csv", "tsv", "csv.gz", "parquet"):
            choices = [listed | columns, {"entities": Path(room) / "listed.csv"}, {"relation_name": "r"}]
        disk = [ReadOptions(memory=0.2)] if by_disk and form not in ("folder", "archive") else []
        for options in (*(ReadOptions(split="inductive", **chosen) for chosen in choices), *disk, ReadOptions()):
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


def mutated(data: bytes, rng: random.Random) -> bytes:
    """An input with one to eight pieces flipped, removed, doubled, exchanged or made up."""
    changed = bytearray(data)
    for _ in range(min(8, int(rng.paretovariate(1)))):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + int(rng.paretovariate(0.7)))
        piece, kind = changed[at:end], rng.randrange(7)
        if kind == 0 and piece:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at:end]
        elif kind == 2:
            changed[at:at] = piece * rng.choice([1, 2, 100])
        elif kind == 3:
            changed[at:end] = rng.randbytes(len(piece))
        elif kind == 4:
            other = rng.randrange(len(changed) + 1)
            changed[at:end] = changed[other : other + len(piece)]
        elif kind == 5:
            changed[at:at] = rng.choice(
                [b"\0", b"\xff", b"\n", b'"', b"<", b"(" * 300, b"9" * 30, b"\xef\xbb\xbf", b"\t"]
            )
        else:
            del changed[at:]
        del changed[BYTES_EACH:]
    return bytes(changed)


def mutate(form: str, count: int, seed: int) -> dict[str, Any]:
    """Read so many mutated inputs of a form, in a process of its own; what was found, and the peak of its memory."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps(_mutate_here(form, count, seed)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        printed = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not printed:
        return {"inputs": count, "findings": [f"the process ended with status {status}"], "seed": seed}
    return dict(json.loads(printed))


def _mutate_here(form: str, count: int, seed: int) -> dict[str, Any]:
    logging.disable()
    rng, start, findings, read = random.Random(f"{seed} {form}"), seeds(form), [], 0
    rooms = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    (Path(rooms) / "here").mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["SATKGC_CACHE"] = rooms
    os.chdir(Path(rooms) / "here")

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and isinstance(arguments[1], str):
            path = os.path.abspath(arguments[0])
            ours = path.startswith((rooms, str(ROOM), "/dev/", "/proc/")) or "__pycache__" in path  # compiled code
            if set(arguments[1]) & set("wax+") and not ours:
                findings.append(f"{path} is written")

    def too_long(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS_EACH} s")

    attempt(form, start[0], rooms, by_disk=True)  # what is compiled at first use is compiled now, however long it takes
    sys.addaudithook(watch)
    signal.signal(signal.SIGALRM, too_long)
    for number in range(count):
        data = mutated(rng.choice(start), rng)
        signal.alarm(SECONDS_EACH)
        try:
            read += attempt(form, data, rooms, by_disk=True).startswith("KnowledgeGraph")
        except BaseException:
            (ROOM / "findings").mkdir(parents=True, exist_ok=True)
            (ROOM / "findings" / f"{form}-{seed}-{number}").write_bytes(data)
            findings.append(f"{form}-{seed}-{number}: {traceback.format_exc()[-300:]}")
        signal.alarm(0)
    left = [str(path) for path in Path(rooms).rglob("*") if path.name != "here"]
    shutil.rmtree(rooms)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"inputs": count, "read_as_a_graph": read, "findings": findings, "left_behind": left, "peak_mb": peak}


def mutate_all(forms: tuple[str, ...], count: int, seed: int) -> None:
    """Mutations of every form, and the figures as JSON."""
    import duckdb  # noqa: F401

    import satkgc.kg.readers.rdf
    import satkgc.kg.readers.table
    import satkgc.kg.split  # noqa: F401  (once, before the forks)

    share = -(-count // len(forms))
    results = {}
    for form in forms:
        results[form] = mutate(form, share, seed)
        print(f"{form}: {results[form]}", file=sys.stderr, flush=True)
    total = {"seed": seed, "inputs": share * len(forms), "findings": sum(len(r["findings"]) for r in results.values())}
    total["left_behind"] = sum(len(r.get("left_behind", ())) for r in results.values())
    total["peak_mb"] = max(r.get("peak_mb", 0) for r in results.values())
    print(json.dumps(total | {"forms": results}, indent=1))


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
    parser.add_argument("--mutations", type=int, help="so many inputs, divided among the forms, without atheris")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations")
    parser.add_argument("--replay", type=Path, help="an input to read once")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.replay:
        print(attempt(given.form, given.replay.read_bytes(), by_disk=True))
    elif given.mutations:
        mutate_all(FORMS if given.form == "all" else (given.form,), given.mutations, given.seed)
    elif given.here:
        fuzz(given.form, given.seconds)
    else:
        supervise(FORMS if given.form == "all" else (given.form,), given.seconds)


if __name__ == "__main__":
    main()
