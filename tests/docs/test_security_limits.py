"""The table of limits in docs/security.md: the code's own values, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from satkgc import manifest
from satkgc.kg import endpoint
from satkgc.kg.readers import delimited, folder, guards, owl_syntaxes, rdf_nodes, source, sources
from satkgc.serving import settings

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "security.md").read_text().partition("## Limits")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and "`tests/" in line
]
MIB = 1 << 20
# What a row says, and the values that it must name, in its order.
LIMITS = {
    "a packed file or archive unpacks to": (f"{source.FREE_BYTES // MIB} MiB", str(source.MOST_RATIO)),
    "members of an archive": (f"{folder.MOST_MEMBERS:,}",),
    "a line": (f"{delimited.LONGEST_LINE // MIB} MiB",),
    "a download": (f"{sources.MOST_DOWNLOAD >> 30} GiB",),
    "an endpoint's answer": (f"{endpoint.MOST_ANSWER // MIB} MiB",),
    "an IRI": (f"{rdf_nodes.LONGEST_IRI:,}",),
    "brackets of OWL": (str(owl_syntaxes.DEEPEST),),
    "RDF/XML elements": (f"{guards.DEEPEST:,}",),
    "an XML entity": (str(guards.LONGEST_ENTITY),),
    "XML entities grow to": (f"{guards.FREE_EXPANSION // MIB} MiB", str(guards.MOST_EXPANSION)),
    "bytes read at every opening": (f"{manifest.LARGE // MIB} MiB",),
    "a request's body": (f"{settings.MAX_BODY // MIB} MiB",),
    "bodies of all requests": (f"{settings.MAX_BODIES // MIB} MiB", f"{settings.FREE_BODY >> 10} KiB"),
    "time for a request's head": (f"{settings.HEADER_SECONDS:.0f} s", f"{settings.BODY_SECONDS:.0f} s"),
    "time without reading": (f"{settings.WRITE_SECONDS:.0f} s",),
    "connections": (f"{settings.MAX_CONNECTIONS:,}", str(settings.SPARE_FILES)),
    "questions in a batch": (str(settings.MAX_QUESTIONS), str(settings.MAX_K), f"{settings.MAX_WAITING:,}"),
    "characters of an id": (f"{settings.MAX_ID:,}", str(settings.MAX_NAME), f"{settings.MAX_DESCRIPTION:,}"),
    "characters of a text in a tool": (str(settings.MAX_CELL), f"{settings.MAX_REPLY:,}"),
    "statements that a tool checks": (str(settings.MAX_CHECKED),),
    "facts of a new entity": (str(settings.MAX_FACTS), f"{settings.MAX_AMONG:,}"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_what_the_table_says(limit: str) -> None:
    row = next((row for row in ROWS if row[0].startswith(limit)), None)
    assert row is not None
    # As whole numbers: 20 is no part of 200.
    found = [re.search(rf"(?<![\d,]){re.escape(value)}(?!,?\d)", row[1]) for value in LIMITS[limit]]
    places = [match.start() for match in found if match]
    assert len(places) == len(found), row
    assert places == sorted(places), row


def test_every_row_names_tests_that_exist() -> None:
    assert len(ROWS) > len(LIMITS)
    for row in ROWS:
        names = re.findall(r"`(tests/[^`]+)`", row[2])
        assert names, row
        for name in names:
            assert (ROOT / name).is_file(), name
