"""What was once done to the system, done again: each attack as a command, with what it says now.

    python scripts/attacks.py runs/text --json > results/findings/attacks.json

The run is one of a text model, finished and prepared; it is copied. Everything else is made in a temporary folder, from
which the commands run. A row is as wanted where the command ends in time, by the exit code that is wanted, without a
traceback, and where what is looked at afterwards holds. Full and read-only disks need the right to mount.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attacks_on_service import attack_service

from satkgc.errors import SatkgcError
from satkgc.kg import SPLITS, KnowledgeGraph, ReadOptions, read_graph
from satkgc.kg.catalogue import CATALOGUE

TSV = b"a\tr\tb\nb\tr\tc\nc\tr\ta\n"
SATKGC = [sys.executable, "-m", "satkgc"]
RDF = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://www.w3.org/2000/01/rdf-schema#">'
)
CODE = "open('ran', 'w').close()\nclass OwnConfig: ...\nclass OwnModel: ...\n"
SECONDS = 900  # for one command, on a busy machine
SHORT = "--recipe complex --steps 2"


class Attacks:
    """The folder in which they run, and the rows."""

    def __init__(self, room: Path, run: Path) -> None:
        self.room, self.rows = room, list[dict[str, Any]]()
        shutil.copytree(run, room / "run", ignore=shutil.ignore_patterns("checkpoints", ".*"))
        (room / "g.tsv").write_bytes(TSV)
        graph = KnowledgeGraph.load(room / "run" / "graph")
        self.ask = shlex.join(["--head", graph.entities.id(0), "--relation", graph.relations.id(0)])
        self.output(f"complete run {self.ask}")
        self.output("kg import wordnet-sample graph")

    def output(self, command: str) -> str:
        """What a command prints; it must end well."""
        words = [*SATKGC, *shlex.split(command)]
        return subprocess.run(words, cwd=self.room, check=True, stdout=subprocess.PIPE, text=True).stdout

    def add(self, row: str, command: str, said: str, good: bool, **facts: Any) -> None:
        """Keep a row."""
        said = said.replace(f"{self.room}/", "").replace(str(self.room), ".")
        self.rows.append({"row": row, "command": command, "said": said, "as_wanted": good, **facts})
        print(
            f"{row}: {command}\n  {'as wanted' if good else 'NOT AS WANTED'}: {said} {facts}",
            file=sys.stderr,
            flush=True,
        )

    def refused(
        self,
        row: str,
        command: str,
        code: int = 2,
        holds: Callable[[], bool] = lambda: True,
        stdin: str = "",
        line: str = "",
    ) -> None:
        """Run a command that must end with an exit code and one line: the last, or the last that has these words."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            words = [*SATKGC, *shlex.split(command)]
            process = subprocess.Popen(words, cwd=self.room, stdin=given, stdout=told, stderr=told)
            while (done := os.wait4(process.pid, os.WNOHANG))[0] == 0:
                time.sleep(0.02)
                if time.monotonic() - began > SECONDS:
                    os.kill(process.pid, signal.SIGKILL)
            process.returncode = os.waitstatus_to_exitcode(done[1])
            told.seek(0)
            said = told.read().decode(errors="replace").strip()
        lines = [text for text in said.split("\n") if line in text]
        good = process.returncode == code and "Traceback" not in said and bool(lines) and holds()
        facts = {"exit_code": process.returncode, "seconds": round(time.monotonic() - began, 1)}
        facts["peak_mb"] = done[2].ru_maxrss // 1024
        self.add(row, f"satkgc {command}", lines[-1] if lines else said[-200:], good, **facts)

    def copy(self, name: str, source: str = "run", without: str = "") -> Path:
        """A copy of a folder in the room."""
        shutil.rmtree(self.room / name, ignore_errors=True)
        return Path(shutil.copytree(self.room / source, self.room / name, ignore=shutil.ignore_patterns(without)))

    def is_missing(self, name: str) -> Callable[[], bool]:
        """Whether something is not in the room after a command."""
        return lambda: not (self.room / name).exists()


def flip(file: Path) -> None:
    """Change a byte in the middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x55
    file.write_bytes(data)


def attack_folders(a: Attacks) -> None:
    """`--force` over what is no graph."""
    thesis = a.room / "folder" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    (a.room / "folder" / "meta.json").write_text('{"title": "x"}')
    for force in (" --force", ""):
        a.refused("data loss", f"kg import g.tsv folder{force}", holds=thesis.exists)


def attack_sums(a: Attacks) -> None:
    """Files that are missing or altered."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (a.copy("copy") / "model" / "tokenizer" / name).unlink()
        a.refused(f"silent: model/tokenizer/{name} missing", f"complete copy {a.ask}")
    for name in ("train.npy", "adjacency_edges.npy", "known_train_head_ptr.npy", "entities.arrow"):
        flip(a.copy("altered", "graph") / name)
        a.refused(f"silent: {name} altered", f"train altered {SHORT} --out trained", holds=a.is_missing("trained"))
        a.refused(f"silent: {name} altered", "verify altered")
    for name in ("index/entities.npy", "graph/known_train_head_tails.npy", "graph/train.npy"):
        flip(a.copy("copy") / name)
        a.refused(f"silent: {name} of a run altered", f"complete copy {a.ask}")
    weights = (a.copy("copy", without="index") / "model").rglob("*.safetensors")
    flip(max(weights, key=lambda file: file.stat().st_size))
    for command in ("evaluate", "prepare"):
        a.refused("silent: weights altered, no index", f"{command} copy")
    train = f"train graph {SHORT} --set training.checkpoint_minutes=0 --keep-checkpoints --out resumed"
    a.output(train)
    whole = a.copy("whole", "resumed")
    (a.room / "resumed" / "metrics.json").unlink()
    for manifest in (a.room / "resumed" / "checkpoints").glob("step-*/manifest.json"):
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"sha256": {}}))

    def same() -> bool:
        files = [path.relative_to(whole) for path in (whole / "model").glob("*.safetensors")]
        return all((whole / file).read_bytes() == (a.room / "resumed" / file).read_bytes() for file in files)

    row = "silent: checkpoints whose manifests have no sums"
    a.refused(row, f"{train} --resume", code=0, holds=same, line="damaged checkpoint")


def attack_pages(a: Attacks) -> None:
    """A preparation that was killed, a page of which never reached the disk."""
    a.copy("whole", without="index")
    a.output("prepare whole")
    copy = a.copy("copy", without="index")
    process = subprocess.Popen([*SATKGC, "prepare", "copy"], cwd=a.room, stdout=subprocess.DEVNULL)
    while not any(sums.stat().st_size for sums in copy.glob(".index.partial/*.part.sums")):
        assert process.poll() is None, "it was over before it could be killed; take a run of more entities"
    process.kill()
    process.wait()
    (part,) = copy.glob(".index.partial/*.part.npy")
    with part.open("r+b") as file:
        file.seek(4096)
        assert any(file.read(4096))
        file.seek(4096)
        file.write(bytes(4096))

    def same() -> bool:
        vectors = [(a.room / name / "index" / "entities.npy").read_bytes() for name in ("whole", "copy")]
        return vectors[0] == vectors[1]

    a.refused("silent: a zeroed page in a resumed prepare", "prepare copy", code=0, holds=same, line="index")


def attack_archives(a: Attacks) -> None:
    """Bits of a .tar.gz."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo("train.tsv")
        member.size = len(TSV)
        tar.addfile(member, io.BytesIO(TSV))
    packed = gzip.compress(archive.getvalue(), mtime=0)

    def content(changed: bytes) -> tuple[list[str], list[bytes]]:
        (a.room / "bit.tar.gz").write_bytes(changed)
        graph = read_graph(a.room / "bit.tar.gz", ReadOptions())
        return graph.entities.ids.to_pylist(), [graph.split(split).tobytes() for split in SPLITS]

    whole, outcomes = content(packed), Counter[str]()
    for bit in range(8 * len(packed)):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            same = content(changed) == whole and bit < 8 * (len(packed) - 8)  # the last eight bytes are the sums
        except SatkgcError:
            outcomes["refused"] += 1
        else:
            outcomes["same" if same else "silent"] += 1
    row, command = "silent: a .tar.gz whose CRC is wrong", "read_graph with every bit flipped, one at a time"
    a.add(
        row, command, f"{dict(outcomes)}; same: bits that say nothing, as the time of packing", not outcomes["silent"]
    )
    (a.room / "crc.tar.gz").write_bytes(packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:])
    a.refused(row, "kg import crc.tar.gz out", holds=a.is_missing("out"))


def attack_code(a: Attacks) -> None:
    """Models that bring code, and somebody who says yes to everything."""
    own, yes = a.room / "own", "y\n" * 9
    own.mkdir()
    (own / "own.py").write_text(CODE)
    own_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel", "AutoTokenizer": "own.OwnModel"}
    (own / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": own_map}))
    train = "train graph --recipe simkgc --steps 1 --set model.encoder.backbone=own --out coded"
    a.refused("code: a backbone with auto_map, y on stdin", train, stdin=yes, holds=a.is_missing("ran"))
    for config in (a.copy("copy") / "model").rglob("config.json"):
        config.write_text(json.dumps(json.loads(config.read_text()) | {"auto_map": own_map}))
        shutil.copy(own / "own.py", config.parent)
    a.refused("code: a run with auto_map, y on stdin", "evaluate copy", stdin=yes, holds=a.is_missing("ran"))


def attack_readers(a: Attacks) -> None:
    """Files made to fill the memory or the disk, or to take for ever."""
    with tarfile.open(a.room / "sparse.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member, size = tarfile.TarInfo("train.tsv"), 4 << 30
        headers = {"major": "1", "minor": "0", "name": "train.tsv", "realsize": str(size)}
        member.pax_headers = {f"GNU.sparse.{key}": value for key, value in headers.items()}
        data = f"1\n{size - 3}\n3\n".encode().ljust(512, b"\0") + b"a\tb"
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 60_000]))
    short = pa.array(["r"] * 100_000)
    pq.write_table(pa.table({"head": text, "relation": short, "tail": short}), a.room / "cells.parquet")
    nested = b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * 100_000 + b"<a:o>" + b" )>>" * 100_000 + b" .\n"
    (a.room / "nested.ttl").write_bytes(nested)
    (a.room / "deep.rdf").write_bytes(RDF + b"<a:x><a:p>" * 100_000 + b"</a:p></a:x>" * 100_000 + b"</rdf:RDF>")
    label = b"<a:x><a:label>" + b"&a;" * 2_000_000 + b"</a:label></a:x></rdf:RDF>"
    (a.room / "entity.rdf").write_bytes(b'<!DOCTYPE r [<!ENTITY a "' + b"x" * 250 + b'">]>' + RDF + label)
    with zipfile.ZipFile(a.room / "members.zip", "w") as members:
        for number in range(60_000):
            members.writestr(f"{number}/notes.txt", "")
    os.mkfifo(a.room / "pipe.tsv")
    for name in ("sparse.tar", "cells.parquet", "nested.ttl", "deep.rdf", "entity.rdf", "members.zip", "pipe.tsv"):
        row = f"disk, memory: {name}, {(a.room / name).stat().st_size:,} bytes"
        a.refused(row, f"kg import {name} out", holds=a.is_missing("out"))
    for name, times in (("bomb.tsv.gz", 3000), ("cut.tsv.gz", 300)):
        with gzip.open(a.room / name, "wb", 1) as packed:  # in pieces: a command's peak counts what this process has
            for _ in range(times):
                packed.write(TSV * 10_000)
    os.truncate(a.room / "cut.tsv.gz", (a.room / "cut.tsv.gz").stat().st_size - 2000)
    for name in ("bomb.tsv.gz", "cut.tsv.gz"):
        for number in range(1, 21):
            a.refused(f"hang: {name}, {number} of 20", f"kg import {name} out", holds=a.is_missing("out"))


def attack_disks(a: Attacks) -> None:
    """A real disk, full and then read-only."""
    disk = a.room / "disk"
    disk.mkdir()
    size = sum(path.stat().st_size for path in (a.room / "run").rglob("*")) + (1 << 20)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)

    def fill() -> None:
        with (disk / "filler").open("ab") as filler:
            filler.write(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize))

    try:
        shutil.copytree(a.room / "run", disk / "run")
        fill()
        a.refused("full disk", "propose disk/run disk/new.csv --n 20")
        a.refused("full disk", "export disk/run disk/vectors --format npy")
        a.refused("full disk", "evaluate disk/run --ranks disk/ranks.parquet")
        a.refused("full disk", f"train graph {SHORT} --out disk/trained")
        shutil.rmtree(disk / "run" / "index")
        fill()
        a.refused("full disk, no index", "prepare disk/run")
        a.refused("full disk, no index", "serve disk/run --port 0")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        a.refused("read-only, no index", f"complete disk/run {a.ask}")
        a.refused("read-only, no index", "prepare disk/run")
    finally:
        subprocess.run(["umount", disk], check=True)


def attack_power(a: Attacks) -> None:
    """What is on the disk before anything takes its name."""
    calls = a.room / "calls"
    trace = ["strace", "-f", "-y", "-e", "trace=fsync,rename,renameat2", "-o", calls]
    for command, name in (
        ("kg import g.tsv graph --force", "graph"),
        (f"train graph {SHORT} --out done", "metrics.json"),
    ):
        subprocess.run([*trace, *SATKGC, *shlex.split(command)], cwd=a.room, check=True, capture_output=True)
        lines = [
            line.split(" ", 1)[1] for line in calls.read_text().splitlines() if str(a.room) in line or "rename" in line
        ]
        named = max(n for n, line in enumerate(lines) if "rename" in line and f'{name}"' in line)
        before, after = (sum("fsync" in line for line in part) for part in (lines[:named], lines[named:]))
        said = f"{before} fsync before and {after} after {lines[named].strip()}"
        good = bool(before and after and ("RENAME_EXCHANGE" in said or name != "graph"))
        a.add("durability", f"strace -e fsync,rename,renameat2 satkgc {command}", said, good)


def attack_tables(a: Attacks) -> None:
    """Names that are formulas or escapes, and files that are read and written at once."""
    names = ["=1+1", "+cmd", "-2", "@sum", "\x1b[31mred\x1b[0m", *(f"entity {n}" for n in range(25))]
    (a.room / "world").mkdir()
    (a.room / "world" / "entities.tsv").write_text("".join(f"e{n}\t{name}\t\n" for n, name in enumerate(names)))
    triples = "".join(f"e{n}\tr\te{(n * m + 1) % 30}\n" for n in range(30) for m in (2, 3))
    (a.room / "world" / "train.tsv").write_text(triples)
    a.output(f"train world {SHORT} --out formulas")
    a.output("propose formulas new.csv --n 500 --second-answers --implied")
    lines = (a.room / "new.csv").read_text().splitlines()
    cells = sorted({cell for line in lines for cell in line.split(",") if any(name in cell for name in names[:4])})
    good = bool(cells) and all(cell.strip('"').startswith("'") for cell in cells)
    a.add("exports: cells that are formulas", "satkgc propose formulas new.csv", f"cells {cells}", good)
    (a.room / "seen.csv").write_text("\n".join([f"{lines[0]},accept", *(f"{line},yes" for line in lines[1:])]) + "\n")
    a.output("accept seen.csv accepted.tsv")
    back = (a.room / "accepted.tsv").read_text()
    a.add("exports: undone by accept", "satkgc accept seen.csv accepted.tsv", repr(back[:60]), "'" not in back)
    told = a.output("complete formulas --head e3 --relation r --among e4")
    said = next((line.strip() for line in told.splitlines() if "red" in line), "")
    good = "\\u001b[31mred\\u001b[0m" in said and "\x1b" not in told
    a.add("exports: escapes on a terminal", "satkgc complete formulas --head e3 --relation r --among e4", said, good)
    questions = a.room / "questions.tsv"
    questions.write_text("e0\tr\t\n")
    row, command = (
        "exports: answers into the questions",
        "complete formulas --questions questions.tsv --out questions.tsv",
    )
    a.refused(row, command, holds=lambda: questions.read_text() == "e0\tr\t\n")
    command = "export formulas vectors --format npy"
    words = [*SATKGC, *shlex.split(command)]
    both = [
        subprocess.Popen(words, cwd=a.room, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ends = sorted((process.wait(SECONDS), process.communicate()[1].strip().split("\n")[-1]) for process in both)
    good = [code for code, _ in ends] == [0, 2] and (a.room / "vectors").is_dir()
    a.add(
        "exports: two at once to one name", f"satkgc {command}", ends[1][1], good, exit_codes=[code for code, _ in ends]
    )


def attack_downloads(a: Attacks) -> None:
    """Public files that can change."""
    files = [file for entry in CATALOGUE for file in entry.files]
    moving = [file.url for file in files if not file.checksum or "/master/" in file.url or "/main/" in file.url]
    said = f"{len(files)} files; of a branch or without a checksum: {len(moving)} {moving}"
    a.add("downloads", "every file of satkgc.kg.catalogue.CATALOGUE", said, not moving)


def main() -> None:
    """Parse, attack, print."""
    attacks = [attack_folders, attack_sums, attack_pages, attack_archives, attack_code, attack_readers, attack_disks]
    attacks += [attack_service, attack_power, attack_tables, attack_downloads]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="of a text model, finished and prepared")
    parser.add_argument("--only", nargs="*", help="some of: " + ", ".join(attack.__name__[7:] for attack in attacks))
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        state = Attacks(Path(room), given.run)
        for attack in attacks:
            if given.only is None or attack.__name__[7:] in given.only:
                attack(state)
    if given.json:
        print(json.dumps({"what": "scripts/attacks.py RUN --json", "rows": state.rows}, indent=1, ensure_ascii=False))
    sys.exit(0 if all(row["as_wanted"] for row in state.rows) else 1)


if __name__ == "__main__":
    main()
