"""Accepted proposals as relationships of a property graph, whose properties say where they come from.

A relationship that is there, whoever made it, is left as it is, so that the same may be sent twice. Nodes are found as
`satkgc kg import` names them, and none is made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from satkgc.completion.endpoint_update import BATCH, model_name
from satkgc.completion.proposals import ACCEPT
from satkgc.completion.review import accepted_rows
from satkgc.errors import SatkgcError
from satkgc.kg import TYPE, BoltServer, ReadOptions, read_nodes

log = logging.getLogger("satkgc.completion")

MERGE = """\
UNWIND $rows AS row
MATCH (h) WHERE elementId(h) = row.head
MATCH (t) WHERE elementId(t) = row.tail
MERGE (h)-[r:{type}]->(t)
ON CREATE SET r.satkgc_model = $model, r.satkgc_time = datetime($time),
  r.satkgc_score = row.score, r.satkgc_probability = row.probability"""


@dataclass(frozen=True)
class Merge:
    """Some relationships of one type: a query with its parameters."""

    query: str
    parameters: Mapping[str, Any]
    statements: tuple[str, ...]  # in the graph's own ids, for people

    @property
    def text(self) -> str:
        """The query with its parameters in it, as it may be run by hand."""
        rows = (
            ", ".join(f"{key}: {json.dumps(value)}" for key, value in row.items()) for row in self.parameters["rows"]
        )
        text = self.query.replace("$rows", "[\n  " + ",\n  ".join(f"{{{row}}}" for row in rows) + "\n]", 1)
        for name in ("model", "time"):
            text = text.replace(f"${name}", json.dumps(self.parameters[name]), 1)
        return "\n".join([*(f"// {statement}" for statement in self.statements), f"{text};"])


def send_to_bolt(
    reviewed: str | Path, source: str, id: str | None = None, model: str | None = None, column: str = ACCEPT
) -> tuple[int, int]:
    """Merge what was accepted into the graph of a server, all or nothing; how many are new, and how many in all.

    `id` is the property of ids that the graph was imported with. `model` as in `send_accepted`.
    """
    server = BoltServer.of(source)
    with server.session() as session:
        merges = list(_merges(Path(reviewed), server, session, id, model, column))

        def work(transaction: Any) -> int:
            results = [transaction.run(merge.query, dict(merge.parameters)).consume() for merge in merges]
            return sum(result.counters.relationships_created for result in results)

        return session.execute_write(work), sum(len(merge.statements) for merge in merges)


def bolt_merges(
    reviewed: str | Path, source: str, id: str | None = None, model: str | None = None, column: str = ACCEPT
) -> list[Merge]:
    """What `send_to_bolt` would run; nodes are looked up, and nothing is changed."""
    server = BoltServer.of(source)
    with server.session() as session:
        return list(_merges(Path(reviewed), server, session, id, model, column))


def _merges(
    reviewed: Path, server: BoltServer, session: Any, id: str | None, model: str | None, column: str
) -> Iterator[Merge]:
    agent = model_name(reviewed, model)
    rows, _ = accepted_rows(reviewed, column)
    by_type: dict[str, dict[tuple[str, str], tuple[Any, Any]]] = {}
    for head, relation, tail, _, _, _, score, probability, *_ in rows:
        by_type.setdefault(relation, {})[head, tail] = score, probability
    if labels := by_type.pop(TYPE, None):
        text = "%s: left out: %d accepted labels of nodes (rdf:type), which cannot say where they come from"
        log.warning(text, server.shown, len(labels))
    keys = read_nodes(session, server, ReadOptions(id=(id,) if id else ())) if by_type else {}
    entities = dict.fromkeys(end for ends in by_type.values() for pair in ends for end in pair)
    if missing := [entity for entity in entities if entity not in keys]:
        what = f"it has no node for {len(missing):,} of {len(entities):,} entities, such as {missing[0]!r}"
        remedy = "say which property has their ids, as at the import: --id PROPERTY"
        raise SatkgcError(what, where=server.shown, remedy=remedy)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    for relation, ends in by_type.items():
        query = MERGE.format(type="`" + relation.replace("`", "``") + "`")
        pairs = list(ends)
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            lines = [{"head": keys[head], "tail": keys[tail], **_numbers(*ends[head, tail])} for head, tail in batch]
            statements = tuple(json.dumps([head, relation, tail], ensure_ascii=False) for head, tail in batch)
            yield Merge(query, {"rows": lines, "model": agent, "time": time}, statements)


def _numbers(score: float | None, probability: float | None) -> dict[str, float | None]:
    pairs = {"score": score, "probability": probability}
    return {name: float(value) if value is not None and isfinite(value) else None for name, value in pairs.items()}
