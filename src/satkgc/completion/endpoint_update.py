"""Accepted proposals as SPARQL updates: the statements in one named graph, where they come from in another.

A statement by a model has an IRI made of both. What has a record under it is not written again, neither with a new
time nor at all, so that an update may be sent twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from satkgc.completion.prepare import index_checksum
from satkgc.completion.proposals import ACCEPT, Row, iri
from satkgc.completion.review import accepted_rows
from satkgc.errors import SatkgcError
from satkgc.kg import Endpoint, check_iri
from satkgc.progress import progress_bar
from satkgc.training import RunFolder

BATCH = 500  # statements in an update
ACCEPTED = "urn:satkgc:accepted"
RECORDS = "/provenance"  # behind the name of the graph
UPDATE = """\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
INSERT {{
  GRAPH <{graph}> {{ ?s ?p ?o }}
  GRAPH <{graph}{records}> {{
    ?record a rdf:Statement ; rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ;
      prov:wasAttributedTo <{model}> ; prov:generatedAtTime "{time}"^^xsd:dateTime ;
      <urn:satkgc:score> ?score ; <urn:satkgc:probability> ?probability .
  }}
}} WHERE {{
  VALUES (?record ?s ?p ?o ?score ?probability) {{
{rows}
  }}
  FILTER NOT EXISTS {{ GRAPH <{graph}{records}> {{ ?record a rdf:Statement }} }}
}}
"""


def send_accepted(
    reviewed: str | Path, source: str, graph: str = ACCEPTED, model: str | None = None, column: str = ACCEPT
) -> int:
    """Send what was accepted to an endpoint, `sparql:https://…`; returns how many statements those are.

    `model` is a run that proposed them, or what else to call it; of a reviewed run it is that run.
    """
    endpoint = Endpoint.of(source)
    updates = list(accepted_updates(reviewed, graph, model, column))
    with progress_bar() as bar:
        task = bar.add_task("sending", total=len(updates))
        for update, _ in updates:
            endpoint.update(update)
            bar.advance(task)
    return sum(count for _, count in updates)


def accepted_updates(
    reviewed: str | Path, graph: str = ACCEPTED, model: str | None = None, column: str = ACCEPT
) -> Iterator[tuple[str, int]]:
    """The updates that say what was accepted, and how many statements each has."""
    check_iri(graph, "the graph")
    agent = iri("model", model_name(Path(reviewed), model))
    rows, _ = accepted_rows(Path(reviewed), column)
    rows = list({row[:3]: row for row in rows}.values())
    time = datetime.now(UTC).isoformat(timespec="seconds")
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        lines = _lines(batch, agent)
        yield UPDATE.format(graph=graph, records=RECORDS, model=agent, time=time, rows=lines), len(batch)


def model_name(reviewed: Path, model: str | None) -> str:
    """What to call the model that proposed these: of a run, its name and its checksum."""
    if model is None and not reviewed.is_dir():
        remedy = "name the run, or whatever it was, with --model"
        raise SatkgcError("nothing says which model proposed these", where=reviewed, remedy=remedy)
    run = reviewed if model is None else Path(model)
    if not (run / "config.json").exists():
        return str(model)
    RunFolder.load(run)
    return f"{run.resolve().name}-{index_checksum(run)[:12]}"


def _lines(rows: Sequence[Row], agent: str) -> str:
    """One line of VALUES for each."""
    lines = []
    for head, relation, tail, _, _, _, score, probability, *_ in rows:
        statement = f"<{iri('entity', head)}> <{iri('relation', relation)}> <{iri('entity', tail)}>"
        record = hashlib.sha256(f"{statement} <{agent}>".encode()).hexdigest()[:32]
        numbers = " ".join(
            f"{number:e}" if number is not None and isfinite(number) else "UNDEF" for number in (score, probability)
        )
        lines.append(f"    (<urn:satkgc:record:{record}> {statement} {numbers})")
    return "\n".join(lines)
