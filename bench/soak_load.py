"""The clients of bench/soak.py: what they ask, decide and break off, and what they must be answered."""

from __future__ import annotations

import http.client
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from satkgc.kg import KnowledgeGraph

ROLES = ("head", "relation", "tail")
FIXED = 300  # questions whose answers are remembered
PATIENCE = 600  # seconds for an answer: a machine without memory or cores to spare stands still for minutes
TIE = 1e-5  # scores nearer to one another than this are equal


class Load:
    """Clients that ask at a bounded rate until the time is over, and what they saw."""

    def __init__(
        self, url: str, kg: KnowledgeGraph, proposals: list[dict[str, str]], rate: float, clients: int, until: float
    ) -> None:
        place = urlsplit(url)
        self.host, self.port = str(place.hostname), int(place.port or 80)
        self.kg, self.pause, self.until = kg, clients / rate, until
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self.seconds: list[float] = []  # of the answers since the last look
        self.first: dict[str, Any] = {}
        self.shares = [proposals[client::clients] for client in range(clients)]  # each client decides on its own
        self.acknowledged: list[list[dict[str, str]]] = [[] for _ in range(clients)]
        self.lock = threading.Lock()
        self.stall = 0.0  # seconds by which a sleep of one second was late, at most, since the last look
        self._threads = [threading.Thread(target=self._run, args=[seed]) for seed in range(clients)]

    def start(self) -> None:
        """Begin; the threads end by themselves."""
        threading.Thread(target=self._watch, daemon=True).start()
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the last answers."""
        for thread in self._threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                self.errors.append("a client still waits long after the end")

    def _watch(self) -> None:
        while time.time() < self.until:
            began = time.monotonic()
            time.sleep(1)
            self.stall = max(self.stall, time.monotonic() - began - 1)

    def _run(self, seed: int) -> None:
        rng = random.Random(seed)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        kinds = {
            self._fixed: 30, self._other: 20, self._search: 15, self._entity: 8, self._new: 6, self._batch: 3,
            self._evidence: 3, self._suggest: 3, self._relation: 1, self._read: 4, self._bad: 5, self._proposals: 3,
        }  # fmt: skip
        aborts = {self._abort: 3, self._half: 1, self._slow: 1}
        weights = kinds | aborts | {self._decide: 10}
        while time.time() < self.until:
            kind = rng.choices(list(weights), list(weights.values()))[0]
            name = kind.__name__.lstrip("_")
            started = time.perf_counter()
            try:
                if kind == self._decide:
                    self._decide(rng, seed)
                elif kind in aborts:
                    kind(rng)
                else:
                    method, path, body, wanted, key = kind(rng)
                    self._ask(connection, method, path, body, wanted, key)
                    with self.lock:
                        self.seconds.append(time.perf_counter() - started)
            except Exception as error:
                self.fail(f"{name}: {type(error).__name__}: {error}")
                connection.close()
            with self.lock:
                self.counts[name] += 1
            time.sleep(rng.expovariate(1 / self.pause))
        connection.close()

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, wanted: int, key: str | None
    ) -> None:
        text = None if body is None else json.dumps(body)
        headers = {} if text is None else {"Content-Type": "application/json"}
        fresh = connection.sock is None
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if fresh:
                raise
            connection.close()  # it was idle for longer than the service keeps connections: once more on a new one
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
        content = answer.read()
        if answer.status != wanted:
            raise ValueError(f"{answer.status} instead of {wanted}: {content[:200]!r}")
        if key is None:
            return
        scores = {row["id"]: row["score"] for row in json.loads(content)["answers"]}
        with self.lock:
            if not same(self.first.setdefault(key, scores), scores):
                raise ValueError(f"another answer than at first: {key}")

    def fail(self, what: str) -> None:
        with self.lock:
            self.errors.append(what)
        print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)

    # Requests: method, path, body, the status wanted, and the key under which the answer is remembered

    def _entity_id(self, rng: random.Random) -> str:
        return self.kg.entities.id(rng.randrange(self.kg.num_entities))

    def _question(self, rng: random.Random) -> dict[str, Any]:
        relation = self.kg.relations.id(rng.randrange(self.kg.num_relations))
        return {rng.choice(["head", "tail"]): self._entity_id(rng), "relation": relation, "k": rng.choice([1, 10, 100])}

    def _fixed(self, rng: random.Random) -> tuple[Any, ...]:
        body = self._question(random.Random(rng.randrange(FIXED)))
        return "POST", "/api/v1/complete", body, 200, json.dumps(body)

    def _other(self, rng: random.Random) -> tuple[Any, ...]:
        return "POST", "/api/v1/complete", self._question(rng), 200, None

    def _search(self, rng: random.Random) -> tuple[Any, ...]:
        name = self.kg.entities.name(rng.randrange(self.kg.num_entities))
        text = name[: rng.randint(1, len(name))]
        return "GET", f"/api/v1/entities?q={quote(text)}", None, 200, None

    def _entity(self, rng: random.Random) -> tuple[Any, ...]:
        return "GET", f"/api/v1/entity?id={quote(self._entity_id(rng))}", None, 200, None

    def _new(self, rng: random.Random) -> tuple[Any, ...]:
        number = rng.randrange(10**9)
        new = {"name": f"thing {number}", "description": "something that nobody has seen " * rng.randint(0, 20)}
        relation = self.kg.relations.id(rng.randrange(self.kg.num_relations))
        return "POST", "/api/v1/complete", {"head": new, "relation": relation}, 200, None

    def _batch(self, rng: random.Random) -> tuple[Any, ...]:
        return (
            "POST",
            "/api/v1/batch",
            {"questions": [self._question(rng) for _ in range(rng.randint(1, 16))]},
            200,
            None,
        )

    def _evidence(self, rng: random.Random) -> tuple[Any, ...]:
        head, relation, tail = self.kg.train[rng.randrange(len(self.kg.train))]
        body = {
            "head": self.kg.entities.id(head),
            "relation": self.kg.relations.id(relation),
            "tail": self.kg.entities.id(tail),
        }
        return "POST", "/api/v1/evidence", body, 200, None

    def _suggest(self, rng: random.Random) -> tuple[Any, ...]:
        return "POST", "/api/v1/suggest-relations", {"entity": self._entity_id(rng)}, 200, None

    def _relation(self, rng: random.Random) -> tuple[Any, ...]:
        return "POST", "/api/v1/complete", {"head": self._entity_id(rng), "tail": self._entity_id(rng)}, 200, None

    def _read(self, rng: random.Random) -> tuple[Any, ...]:
        path = rng.choice(["/health", "/metrics", "/", "/api/v1/relations", "/api/v1/info", "/api/v1/openapi.json"])
        return "GET", path, None, 200, None

    def _bad(self, rng: random.Random) -> tuple[Any, ...]:
        known, relation = self._entity_id(rng), self.kg.relations.id(0)
        method, path, body, status = rng.choice(
            [
                ("POST", "complete", {"head": "nobody of this name", "relation": relation}, 404),
                ("POST", "complete", {"head": 7}, 422),
                ("POST", "complete", {"head": known, "relation": relation, "k": 10**9}, 422),
                ("GET", "entity?id=nobody", None, 404),
                ("GET", "../../../../etc/passwd", None, 404),
            ]
        )
        return method, f"/api/v1/{path}", body, status, None

    def _proposals(self, rng: random.Random) -> tuple[Any, ...]:
        verdict = rng.choice(["open", "accept", "reject", "skip", "all"])
        return "GET", f"/api/v1/proposals?verdict={verdict}&limit={rng.choice([1, 50])}", None, 200, None

    def _decide(self, rng: random.Random, client: int) -> None:
        """Accept, reject, skip or take back, on a connection of its own: nothing is sent twice."""
        body = rng.choice(self.shares[client]) | {"verdict": rng.choice(["accept", "reject", "skip", "open"])}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        self._ask(connection, "POST", "/api/v1/decisions", body, 200, None)
        connection.close()
        self.acknowledged[client].append(body)

    def check_decisions(self, file: Path) -> None:
        """The file has what each client was told that is kept, in that order, and no more."""
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        client_of = {statement(row): client for client, share in enumerate(self.shares) for row in share}
        kept: list[list[tuple[str, ...]]] = [[] for _ in self.shares]
        for row in rows:
            kept[client_of[statement(row)]].append((*statement(row), row["verdict"]))
        for client, told in enumerate(self.acknowledged):
            if kept[client] != [(*statement(row), row["verdict"]) for row in told]:
                self.fail(
                    f"client {client}: {len(told)} decisions acknowledged, {len(kept[client])} others in the file"
                )

    # Clients that go away

    def _send(self, text: str) -> socket.socket:
        client = socket.create_connection((self.host, self.port), timeout=PATIENCE)
        client.sendall(text.encode())
        return client

    def _head(self, length: int) -> str:
        lines = ["POST /api/v1/complete HTTP/1.1", f"Host: {self.host}", "Content-Type: application/json"]
        return "\r\n".join([*lines, f"Content-Length: {length}", "", ""])

    def _abort(self, rng: random.Random) -> None:
        body = json.dumps(self._question(rng))
        with self._send(self._head(len(body)) + body):
            time.sleep(rng.choice([0, 0.005, 0.05]))

    def _half(self, rng: random.Random) -> None:
        with self._send("POST /api/v1/complete HTTP/1.1\r\nHost:"):
            time.sleep(rng.uniform(0, 5))

    def _slow(self, rng: random.Random) -> None:
        body = json.dumps(self._question(rng))
        with self._send(self._head(len(body)) + body[:10]):
            time.sleep(rng.uniform(0, 5))


def same(one: dict[str, float], other: dict[str, float]) -> bool:
    """The same entities with the same scores. Their last digit is that of the company in a pass through the model, so
    that neighbours of (nearly) one score may change places, also at the end of the list."""
    last = min([*one.values(), *other.values()], default=0)
    return len(one) == len(other) and all(
        abs(one.get(name, last) - other.get(name, last)) < TIE for name in one.keys() | other.keys()
    )


def statement(row: dict[str, str]) -> tuple[str, ...]:
    """The statement of a proposal or a decision."""
    return tuple(row[role] for role in ROLES)
