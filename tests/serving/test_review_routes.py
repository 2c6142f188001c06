"""The review over the API: what is listed, what is kept, and who may decide."""

from __future__ import annotations

import csv
import json
import threading
from pathlib import Path

import httpx
import pytest
from running import CLIENT, running

from satkgc.completion import Completer
from satkgc.errors import SatkgcError
from satkgc.kg import Decision, Decisions, read_decisions
from satkgc.serving.app import create_app
from satkgc.serving.queue import Proposal, ReviewQueue
from satkgc.serving.settings import ServiceSettings


def listed(url: str, **parameters: object) -> dict:
    return CLIENT.get(f"{url}/api/v1/proposals", params=parameters).json()


def ids(row: dict) -> dict[str, str]:
    return {part: row[part] for part in ("head", "relation", "tail")}


def decide(url: str, row: dict, verdict: str, **headers: str) -> httpx.Response:
    return CLIENT.post(f"{url}/api/v1/decisions", json={**ids(row), "verdict": verdict}, headers=headers)


def test_a_verdict_that_there_is_not_is_answered_with_those_there_are(reviewing) -> None:  # type: ignore[no-untyped-def]
    error = listed(reviewing, verdict="maybe")["error"]
    assert error == "verdict: Input should be 'all', 'accept', 'reject', 'skip' or 'open'"


def test_proposals_are_those_of_the_file_and_decisions_move_them(reviewing, own_run: Path, proposals: Path) -> None:  # type: ignore[no-untyped-def]
    url = reviewing
    with proposals.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = listed(url, limit=200)
    assert [ids(row) for row in page["proposals"]] == [ids(row) for row in rows]
    assert page["progress"] == {"open": len(rows), "accept": 0, "reject": 0, "skip": 0}
    assert {r["id"]: r["total"] for r in page["relations"]} == {
        name: sum(row["relation"] == name for row in rows) for name in ("hypernym", "similar to")
    }
    for row, verdict in zip(page["proposals"], ("accept", "reject", "skip", "accept", "reject"), strict=False):
        progress = decide(url, row, verdict).json()["progress"]
    assert progress == {"open": len(rows) - 5, "accept": 2, "reject": 2, "skip": 1}
    assert decide(url, page["proposals"][1], "open").json()["progress"]["reject"] == 1
    open_now = listed(url, limit=200)
    assert [ids(row) for row in open_now["proposals"]] == [ids(rows[1]), *map(ids, rows[5:])]
    assert [ids(row) for row in listed(url, verdict="accept")["proposals"]] == [ids(rows[3]), ids(rows[0])]
    some = listed(url, relation="similar to", limit=2, offset=1)
    alike = [ids(row) for row in open_now["proposals"] if row["relation"] == "similar to"]
    assert ([ids(row) for row in some["proposals"]], some["total"]) == (alike[1:3], len(alike))
    assert CLIENT.get(f"{url}/api/v1/info").json()["review"] is True
    # The file has it all, and another process's decisions are seen.
    kept = read_decisions(own_run)
    assert {s: d.verdict for s, d in kept.items()} == {
        tuple(ids(rows[i]).values()): v for i, v in ((0, "accept"), (2, "skip"), (3, "accept"), (4, "reject"))
    }
    one = next(iter(kept.values()))
    assert (one.head_name, one.score) == (page["proposals"][0]["head_name"], page["proposals"][0]["score"])
    Decisions(own_run / "decisions.jsonl").add(Decision(*ids(rows[6]).values(), "reject"))
    assert listed(url)["progress"]["reject"] == 2


def test_a_page_from_elsewhere_cannot_decide(reviewing, own_run: Path) -> None:  # type: ignore[no-untyped-def]
    url = reviewing
    row, host = listed(url)["proposals"][0], url.removeprefix("http://")
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": url},  # another port of this machine
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{host.partition(':')[0]}:1"},
    ):
        refused = decide(url, row, "accept", **headers)
        assert (refused.status_code, refused.json()["error"]) == (403, "a page from elsewhere cannot decide here")
    body = json.dumps({**ids(row), "verdict": "accept"})  # as a form of another page could send it
    assert (
        CLIENT.post(f"{url}/api/v1/decisions", content=body, headers={"Content-Type": "text/plain"}).status_code == 422
    )
    assert read_decisions(own_run) == {}
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": url}, {}):
        assert decide(url, row, "accept", **headers).status_code == 200


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"head": "animal", "tail": "animal"}, "this is none of the proposals; decide on what"),
        ({"verdict": "maybe"}, "verdict: Input should be 'accept', 'reject', 'skip' or 'open'"),
        ({"head": "x" * 2001}, "head: String should have at most 2000 characters"),
        ({"more": 1}, "more: there is no such field"),
    ],
)
def test_what_is_no_decision_is_refused_and_not_kept(reviewing, own_run: Path, change: dict, error: str) -> None:  # type: ignore[no-untyped-def]
    body = {**ids(listed(reviewing)["proposals"][0]), "verdict": "accept", **change}
    refused = CLIENT.post(f"{reviewing}/api/v1/decisions", json=body)
    assert (refused.status_code, refused.json()["error"][: len(error)]) == (422, error)
    assert not (own_run / "decisions.jsonl").exists()


def test_what_is_taken_back_while_it_is_listed_is_there_or_not(tmp_path: Path) -> None:
    rows = [Proposal("a", "r", str(i), "", "", "", "", "", 0.5, None, "open") for i in range(200)]
    queue = ReviewQueue(rows, Decisions(tmp_path / "decisions.jsonl"))
    for row in rows:
        queue.decide((row.head, row.relation, row.tail), "accept")
    back = threading.Thread(target=lambda: [queue.decide((r.head, r.relation, r.tail), "open") for r in rows])
    back.start()
    while back.is_alive():
        queue.select("accept", None)
    assert queue.select("accept", None) == []


def test_without_proposals_nothing_can_be_written(url: str) -> None:
    assert CLIENT.get(f"{url}/api/v1/proposals").status_code == 404
    assert CLIENT.post(f"{url}/api/v1/decisions", json={}).status_code == 404
    assert CLIENT.get(f"{url}/api/v1/info").json()["review"] is False


def test_strangers_cannot_be_let_in_to_decide(proposals: Path) -> None:
    for open_to in ({"host": "0.0.0.0"}, {"allow_hosts": ("kg.example.org",)}):
        with pytest.raises(SatkgcError, match="others than you could decide on the proposals; set a token"):
            ServiceSettings(proposals=proposals, **open_to)
        ServiceSettings(proposals=proposals, token="geheim", **open_to)


def test_a_table_of_another_graph_is_refused(own_run: Path, proposals: Path, tmp_path: Path) -> None:
    completer = Completer.load(own_run)
    other = tmp_path / "other.csv"
    other.write_text(proposals.read_text("utf-8").replace("hypernym", "holonym"), "utf-8")
    with pytest.raises(SatkgcError, match=r"other\.csv: row \d+: the graph has no 'holonym'; give what"):
        ReviewQueue.open(completer, other)
    other.write_text("head,relation,tail\n")
    with pytest.raises(SatkgcError, match=r"other\.csv: no proposals here; make some"):
        ReviewQueue.open(completer, other)


def test_the_schema_describes_the_review_where_there_is_one(own_run: Path, proposals: Path, reviewing: str) -> None:
    whole = CLIENT.get(f"{reviewing}/api/v1/openapi.json").json()
    assert set(whole["paths"]["/api/v1/decisions"]["post"]["responses"]) == {
        *("200", "400", "403", "413", "421", "422", "500", "503")
    }
    with running(create_app(lambda: Completer.load(own_run), ServiceSettings(proposals=proposals, token="t"))) as url:
        assert CLIENT.get(f"{url}/api/v1/proposals").status_code == 401
        assert decide(url, listed(reviewing)["proposals"][0], "accept").status_code == 401
