"""Bolt servers for tests: what a real one said, played back from a file, and that one itself where it is installed.

    python tests/bolt_server.py     # records tests/bolt_traffic.json anew; needs arcadedb-embedded

The file has the messages of an ArcadeDB server as they came over the wire, by the message that they answer.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TRAFFIC = Path(__file__).parent / "bolt_traffic.json"
USER, PASSWORD = "root", "playwithdata"
VERSION = bytes([0, 0, 4, 5])  # 5.4
RUN, PULL, LOGON, HELLO, GOODBYE = 0x10, 0x3F, 0x6A, 0x01, 0x02
RECORD, SUCCESS = 0x71, bytes([0xB1, 0x70, 0xA0])
GRAPH = """CREATE
 (ada:Person {id: 1, name: 'Ada Lovelace', description: 'English mathematician', born: date('1815-12-10')}),
 (charles:Person {id: 2, name: 'Charles Babbage', languages: ['en', 'fr']}),
 (engine:Idea:Machine {id: 'engine', name: 'Analytical Engine', weight: 13.5}), (nobody:Person {name: 'Nobody'}),
 (ada)-[:KNOWS {since: 1833}]->(charles), (ada)-[:KNOWS]->(charles), (charles)-[:DESIGNED]->(engine),
 (ada)-[:`WROTE ABOUT`]->(engine)"""


def read_message(stream: Any) -> bytes:
    """One message without its chunks; nothing at the end."""
    message = b""
    while True:
        head = stream.read(2)
        if len(head) < 2:
            return b""
        (size,) = struct.unpack(">H", head)
        if size:
            message += stream.read(size)
        elif message:
            return message


def chunked(message: bytes) -> bytes:
    parts = (message[at : at + 0xFFFF] for at in range(0, len(message), 0xFFFF))
    return b"".join(struct.pack(">H", len(part)) + part for part in parts) + b"\0\0"


def query_of(message: bytes) -> str:
    """The text of a RUN message, its first field."""
    marker = message[2]
    size, start = (marker & 0xF, 3) if marker >> 4 == 8 else (0, 3 + (1 << marker - 0xD0))
    return message[start : start + (size or int.from_bytes(message[3:start], "big"))].decode()


@dataclass
class Playback:
    """A server that says what it said before, of the same queries in the same order; and one that misbehaves."""

    login: bool = True  # whether it lets us in
    cuts: dict[str, int] = field(default_factory=dict)  # queries whose answers are cut after the second row, how often
    replies: dict[str, str] = field(default_factory=dict)  # other answers to queries: those that other queries had
    sent: list[tuple[str, bytes]] = field(default_factory=list)  # queries, and the messages that they came in
    address: str = ""

    def __post_init__(self) -> None:
        traffic = json.loads(TRAFFIC.read_text())
        self.hello, self.refusal = (bytes.fromhex(traffic[key]) for key in ("hello", "refusal"))
        self.runs: dict[str, list[list[list[str]]]] = traffic["runs"]
        self.turns: dict[str, int] = {}

    def serve(self, stream: Any) -> None:
        stream.read(20)
        stream.write(VERSION)
        rest: list[list[str]] = []
        query = ""
        while (message := read_message(stream)) and message[1] != GOODBYE:
            answers = [SUCCESS]
            if message[1] == HELLO:
                answers = [self.hello]
            elif message[1] == LOGON and not self.login:
                answers = [self.refusal]
            elif message[1] == RUN:
                query = query_of(message)
                self.sent.append((query, message))
                query = self.replies.get(query, query)
                turn = self.turns.get(query, 0)
                self.turns[query] = turn + 1
                rest = list(self.runs[query][min(turn, len(self.runs[query]) - 1)])
                answers = [bytes.fromhex(answer) for answer in rest.pop(0)]
            elif message[1] == PULL:
                answers = [bytes.fromhex(answer) for answer in rest.pop(0)]
                if self.cuts.get(query, 0) and len(answers) > 2:
                    self.cuts[query] -= 1
                    stream.write(b"".join(map(chunked, answers[:2])))
                    return
            stream.write(b"".join(map(chunked, answers)))
            stream.flush()


@contextmanager
def playback(server: Playback) -> Iterator[Playback]:
    """Serves it at `server.address`."""

    class Handler(socketserver.StreamRequestHandler):
        wbufsize = -1

        def handle(self) -> None:
            with suppress(ConnectionError):
                server.serve(_Stream(self.rfile, self.wfile))

    with _tcp(Handler) as port:
        server.address = f"bolt://127.0.0.1:{port}/test"
        yield server


@contextmanager
def _tcp(handler: Any) -> Iterator[int]:
    made = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made.server_address[1]
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


@dataclass
class _Stream:
    reader: Any
    writer: Any

    def read(self, size: int) -> bytes:
        return self.reader.read(size)

    def write(self, data: bytes) -> None:
        self.writer.write(data)
        self.writer.flush()

    def flush(self) -> None:
        self.writer.flush()


def arcadedb() -> Path | None:
    """Where the package arcadedb-embedded is, which brings the server and what runs it."""
    spec = find_spec("arcadedb_embedded")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@contextmanager
def real_server(room: Path) -> Iterator[str]:
    """An ArcadeDB server with the database "test" in it; its address."""
    package = arcadedb()
    assert package is not None
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        bolt, http = one.getsockname()[1], other.getsockname()[1]
    settings = {
        "server.rootPath": room,
        "server.rootPassword": PASSWORD,
        "server.plugins": "BoltProtocolPlugin",
        "server.defaultDatabases": f"test[{USER}]",
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": http,
        "bolt.host": "127.0.0.1",
        "bolt.port": bolt,
    }
    flags = [f"-Darcadedb.{name}={value}" for name, value in settings.items()]
    java = [package / "jre/bin/java", "-Xmx512m", "--add-modules", "jdk.incubator.vector", "-cp", package / "jars/*"]
    with (room / "out").open("wb") as out:
        process = subprocess.Popen(
            [*map(str, java), *flags, "com.arcadedb.server.ArcadeDBServer"], stdout=out, stderr=out, cwd=room
        )
    try:
        while process.poll() is None and b"Server started" not in (room / "out").read_bytes():
            time.sleep(0.2)
        yield f"bolt://127.0.0.1:{bolt}/test"
    finally:
        process.terminate()
        process.wait()


def fill(address: str) -> None:
    """Nothing but the graph in the server's database."""
    import neo4j

    place, _, database = address.rpartition("/")
    with (
        neo4j.GraphDatabase.driver(place, auth=(USER, PASSWORD)) as driver,
        driver.session(database=database) as session,
    ):
        session.run("MATCH (n) DETACH DELETE n").consume()
        session.run(GRAPH).consume()


@dataclass
class Recorder:
    """What a server answers, on its way through a proxy."""

    runs: dict[str, list[list[list[str]]]] = field(default_factory=dict)
    hello: str = ""
    refusal: str = ""

    def relay(self, stream: _Stream, upstream: _Stream) -> None:
        upstream.write(stream.read(20))
        stream.write(upstream.read(4))
        run: list[list[str]] = []
        while message := read_message(stream):
            upstream.write(chunked(message))
            if message[1] == GOODBYE:
                return
            answers = [read_message(upstream)]
            while answers[-1][1] == RECORD:
                answers.append(read_message(upstream))
            texts = [answer.hex() for answer in answers]
            if message[1] == HELLO:
                self.hello = texts[0]
            elif message[1] == LOGON and answers[0][1] != SUCCESS[1]:
                self.refusal = texts[0]
            elif message[1] == RUN:
                run = [texts]
                self.runs.setdefault(query_of(message), []).append(run)
            elif message[1] == PULL:
                run.append(texts)
            stream.write(b"".join(map(chunked, answers)))


@contextmanager
def recording(address: str, recorder: Recorder) -> Iterator[str]:
    """A proxy before a server; its address."""
    host, port = address.removeprefix("bolt://").partition("/")[0].split(":")

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, IndexError), socket.create_connection((host, int(port))) as sock:
                recorder.relay(_Stream(self.rfile, self.wfile), _Stream(sock.makefile("rb"), sock.makefile("wb")))

    with _tcp(Handler) as own:
        yield f"bolt://127.0.0.1:{own}/test"


def record() -> None:
    """What the tests ask, of a real server."""
    import os
    import tempfile

    from satkgc import KnowledgeGraph, SatkgcError
    from satkgc.completion import bolt_merges, send_to_bolt

    os.environ |= {"NEO4J_USERNAME": USER, "NEO4J_PASSWORD": PASSWORD}
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as room, real_server(Path(room)) as address:
        fill(address)
        with recording(address, recorder) as own:
            KnowledgeGraph.load(own, split="none", page_size=PAGE)
            for query in QUERIES:
                with suppress(SatkgcError):
                    KnowledgeGraph.load(own, split="none", page_size=PAGE, query=query)
            table = reviewed(Path(room) / "reviewed.csv")
            bolt_merges(table, own, model="m")
            send_to_bolt(table, own, model="m")
            send_to_bolt(table, own, model="m")
            os.environ["NEO4J_PASSWORD"] = "wrong"
            with suppress(SatkgcError):
                KnowledgeGraph.load(own)
    TRAFFIC.write_text(json.dumps(recorder.__dict__, indent=1) + "\n")


PAGE = 3  # rows at a time
QUERIES = (
    "MATCH (n)-[r:DESIGNED]->(m) RETURN n, r, m",
    "MATCH p = ()-[:KNOWS]->() RETURN p",
    "MATCH ()-[r]->() RETURN r LIMIT 2",
    "MATCH (n RETURN n",
)


def reviewed(file: Path) -> Path:
    """A table with three accepted triples: one twice, one that the graph has, and one that cannot be sent."""
    head = "head,relation,tail,head_name,relation_name,tail_name,score,probability,accept\n"
    rows = [
        "2,WROTE ABOUT,engine,,,,-0.5,0.75,yes",
        "2,WROTE ABOUT,engine,,,,-0.5,0.75,yes",
        "1,KNOWS,2,,,,1.5,,yes",
        "Nobody,is `kin`,1,,,,0.5,,x",
        "engine,http://www.w3.org/1999/02/22-rdf-syntax-ns#type,:Person,,,,1,0.5,yes",
        "2,KNOWS,1,,,,1,0.5,",
    ]
    file.write_text(head + "\n".join(rows) + "\n")
    return file


if __name__ == "__main__":
    record()
