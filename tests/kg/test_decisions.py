"""Decisions on statements: what was acknowledged is on the disk whatever happens, and the last one counts."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from satkgc.errors import SatkgcError
from satkgc.kg import Decision, Decisions, all_decisions

ONE = Decision("a", "r", "b", "accept", "Ä\nname", "is", "B", 0.5, 0.25)


def verdicts(decisions: Decisions) -> dict[str, str]:
    return {d.head: d.verdict for d in decisions.last().values()}


def test_the_last_decision_counts_and_one_that_is_taken_back_does_not(tmp_path: Path) -> None:
    mine, theirs = Decisions(tmp_path / "d.jsonl"), Decisions(tmp_path / "d.jsonl")
    assert mine.last() == {}
    for head, verdict in (("a", "accept"), ("b", "reject"), ("c", "skip"), ("a", "reject"), ("b", "open")):
        mine.add(Decision(head, "r", "t", verdict))
        theirs.last()  # reads as it grows
    assert verdicts(mine) == verdicts(theirs) == {"c": "skip", "a": "reject"}
    assert list(verdicts(mine)) == ["c", "a"], "in the order of their last decisions"
    theirs.add(ONE)
    (read,) = [d for d in mine.last().values() if d.tail == "b"]
    assert (read.head_name, read.score, read.probability, read.at[:2]) == ("Ä\nname", 0.5, 0.25, "20")


def test_a_file_torn_at_any_byte_keeps_its_whole_lines_and_takes_more(tmp_path: Path, caplog) -> None:  # type: ignore[no-untyped-def]
    whole = Decisions(tmp_path / "whole.jsonl")
    for head in "ab":
        whole.add(Decision(head, "r", "ö", "accept"))
    content = whole.file.read_bytes()
    first = content.index(b"\n") + 1
    for cut in range(len(content)):
        torn = Decisions(tmp_path / "torn.jsonl")
        torn.file.write_bytes(content[:cut])
        before = {"a": "accept"} if cut >= first else {}
        assert verdicts(torn) == before
        torn.add(Decision("c", "r", "t", "reject"))
        more = {"b": "accept"} if cut == len(content) - 1 else {"a": "accept"} if cut == first - 1 else {}
        assert verdicts(torn) == verdicts(Decisions(torn.file)) == {**before, **more, "c": "reject"}
    assert "torn.jsonl:2: no decision, left out" in caplog.text


def test_no_altered_byte_makes_another_decision(tmp_path: Path) -> None:
    decisions = Decisions(tmp_path / "d.jsonl")
    for tail in ("b", "c"):
        decisions.add(Decision("a", "r", tail, "reject", score=0.5))
    content, whole = decisions.file.read_bytes(), set(decisions.last().values())
    assert all_decisions(decisions.file)
    noticed = 0
    for at in range(len(content)):
        for bit in (0, 4):
            decisions.file.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
            read = set(Decisions(decisions.file).last().values())
            assert read <= whole
            noticed += len(read) < len(whole)
            assert read == whole or at == len(content) - 1 or not all_decisions(decisions.file)
    assert noticed > len(content)
    decisions.file.write_bytes(b"".join(line.split(b', "sha256"')[0] + b"}\n" for line in content.splitlines()))
    assert set(Decisions(decisions.file).last().values()) == whole, "earlier versions wrote no sums"


@pytest.mark.parametrize("line", ["[]", "1", "{}", '{"head": 1, "relation": "r", "tail": "t", "verdict": "accept"}'])
def test_lines_that_are_no_decision_are_left_out(tmp_path: Path, line: str) -> None:
    decisions = Decisions(tmp_path / "d.jsonl")
    decisions.file.write_text(f'{line}\n{{"head": "a", "relation": "r", "tail": "t", "verdict": "maybe"}}\n')
    decisions.add(ONE)
    assert verdicts(decisions) == {"a": "accept"}


PROGRAM = """
import sys; from pathlib import Path; from satkgc.kg import Decision, Decisions
decisions = Decisions(Path(sys.argv[1]))
for number in range(10**6):
    decisions.add(Decision(str(number), "r", "t", "accept"))
    print(number, flush=True)
"""


def test_nothing_that_was_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, file], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(100)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.readlines()
    heads = [head for head, _, _ in Decisions(file).last()]
    assert len(said) >= 100
    assert heads[: len(said)] == [line.strip() for line in said]


def test_many_threads_and_two_objects_write_whole_lines(tmp_path: Path) -> None:
    both = Decisions(tmp_path / "d.jsonl"), Decisions(tmp_path / "d.jsonl")

    def write(number: int) -> None:
        for i in range(20):
            both[number % 2].add(Decision(f"{number}-{i}", "r", "t" * 500, "accept"))

    threads = [threading.Thread(target=write, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(both[0].last()) == len(both[1].last()) == 80


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").mkdir()
    with pytest.raises(SatkgcError, match=r"d\.jsonl: the decision cannot be written \(Is a directory\); nothing"):
        Decisions(tmp_path / "d.jsonl").add(ONE)
    with pytest.raises(SatkgcError, match=r"d\.jsonl: cannot read the decisions"):
        Decisions(tmp_path / "d.jsonl").last()
