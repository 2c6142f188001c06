"""Damage every file of runs and graphs, one at a time, and ask: is it refused, or are all answers as before?

    python scripts/damage.py runs/demo runs/fused my-graph --cases 300 --json

A run is opened and answers 44 questions, a graph is opened and all its content compared. A case is a copy with one file
cut, emptied, missing, longer, or with bits, bytes or pages changed; it runs in a process of its own. Nothing but one
line (SatkgcError) or the same answers is right: other answers are "silent", the rest "traceback", "signal" and "hang".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTIONS = 44
SECONDS = 1200  # for one case, on a busy machine
OF_NO_EFFECT = ("README.md", "log.jsonl", ".png", ".lock")  # for people to look at; no answer comes from them


def content(folder: Path) -> str:
    """All content of a graph, as one sum."""
    from satkgc.kg import KnowledgeGraph

    graph = KnowledgeGraph.load(folder)
    parts = [graph.train, graph.valid, graph.test, graph.adjacency.neighbours, graph.adjacency.edges]
    parts += [graph.known_all.head_tails, graph.known_all.tail_heads, graph.known_train.head_tails]
    digest = hashlib.sha256(b"".join(part.tobytes() for part in parts))
    for vocabulary in (graph.entities, graph.relations):
        for column in (vocabulary.ids, vocabulary.names, vocabulary.descriptions):
            digest.update(json.dumps(column.to_pylist()).encode())
    return digest.hexdigest()


def answers(folder: Path) -> str:
    """What a run answers to its 44 questions: entities and relations known, new in words, and which relation."""
    from satkgc.completion import Completer, NewEntity, Question

    completer = Completer.load(folder, "cpu")
    kg, rng, questions = completer.kg, random.Random(0), []
    for number in range(QUESTIONS):
        relation = kg.relations.id(rng.randrange(kg.num_relations))
        entity: Any = kg.entities.id(rng.randrange(kg.num_entities))
        if number % 11 == 0:
            other = kg.entities.id(rng.randrange(kg.num_entities))
            questions.append(Question(head=entity, tail=other, k=3))
        elif number % 11 == 1:  # a model without text says so
            new = NewEntity(f"thing {number}", kg.entities.description(rng.randrange(kg.num_entities)))
            questions.append(Question(head=new, relation=relation, k=10))
        else:
            questions.append(Question(**{("head", "tail")[number % 2]: entity}, relation=relation, k=10))
    return json.dumps(
        [
            str(found) if isinstance(found, Exception) else [(answer.id, round(answer.score, 4)) for answer in found]
            for found in completer.ask_each(questions)
        ]
    )


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "missing": lambda data, rng: None,
    "empty": lambda data, rng: b"",
    "cut": lambda data, rng: data[: rng.randrange(len(data))],
    "cut by one": lambda data, rng: data[:-1],
    "longer": lambda data, rng: data + b"\0",
    "a bit": lambda data, rng: _with(data, at := rng.randrange(len(data)), bytes([data[at] ^ 1 << rng.randrange(8)])),
    "a byte": lambda data, rng: _with(data, at := rng.randrange(len(data)), bytes([(data[at] + 97) % 256])),
    "a page of zeros": lambda data, rng: _with(data, rng.randrange(len(data)), bytes(4096))[: len(data)],
    "two bytes exchanged": lambda data, rng: _exchanged(data, rng.randrange(len(data)), rng.randrange(len(data))),
    "noise": lambda data, rng: rng.randbytes(len(data)) if len(data) < 1 << 20 else rng.randbytes(1 << 20),
}


def _with(data: bytes, at: int, piece: bytes) -> bytes:
    return data[:at] + piece + data[at + len(piece) :]


def _exchanged(data: bytes, one: int, other: int) -> bytes:
    changed = bytearray(data)
    changed[one], changed[other] = changed[other], changed[one]
    return bytes(changed)


def attempt(look: Callable[[Path], str], folder: Path) -> tuple[str, str]:
    """What comes of it in a process of its own: how it ended, and what was answered or said."""
    from satkgc.errors import SatkgcError

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            outcome = f"answered {hashlib.sha256(look(folder).encode()).hexdigest()}"
        except SatkgcError as error:
            outcome = f"refused {error}" if "\n" not in str(error) else f"traceback {error}"
        except BaseException:
            outcome = f"traceback {traceback.format_exc()[-300:]}"
        os.write(write, outcome.encode()[:4000])
        os._exit(0)
    os.close(write)
    until = time.monotonic() + SECONDS
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(read)
            return "hang", ""
        time.sleep(0.005)
    with os.fdopen(read, "rb") as pipe:
        outcome = pipe.read().decode(errors="replace")
    if os.WIFSIGNALED(done[1]):
        return "signal", str(os.WTERMSIG(done[1]))
    kind, _, said = outcome.partition(" ")
    return kind, said


def damage(folder: Path, cases: int, seed: int) -> dict[str, Any]:
    """All files in turn, each with another kind of damage than the last time."""
    look = content if (folder / "meta.json").exists() else answers
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = [name for name in names if "checkpoints/" not in name and not name.endswith(OF_NO_EFFECT)]
    undamaged = attempt(look, folder)
    if undamaged[0] != "answered" or attempt(look, folder) != undamaged:
        sys.exit(f"{folder}: undamaged, it gives {undamaged}, or not twice the same")
    rng, outcomes, remarks = random.Random(seed), Counter[str](), []
    kinds = list(DAMAGES)
    with tempfile.TemporaryDirectory() as room:
        os.environ["SATKGC_CACHE"] = f"{room}/cache"
        for number in range(cases):
            copy = Path(room) / "copy"
            shutil.copytree(folder, copy, copy_function=os.link, ignore=shutil.ignore_patterns("checkpoints"))
            name = names[number % len(names)]
            kind = kinds[(number // len(names) * 3 + number) % len(kinds)]
            data = (copy / name).read_bytes()
            (copy / name).unlink()
            changed = DAMAGES[kind](data, rng) if data else None
            if changed is not None:
                (copy / name).write_bytes(changed)
            outcome, said = attempt(look, copy)
            if outcome == "answered":
                outcome, said = "same" if said == undamaged[1] else "silent", ""
            outcomes[outcome] += 1
            if outcome != "refused":
                remarks.append({"file": name, "damage": kind, "outcome": outcome, "said": said})
                print(f"{folder.name}/{name}, {kind}: {outcome} {said}", file=sys.stderr, flush=True)
            shutil.rmtree(copy)
    return {"cases": cases, "files": len(names), "outcomes": dict(outcomes), "not_refused": remarks}


def main() -> None:
    """Parse, damage, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="runs, prepared, and graphs in binary form")
    parser.add_argument("--cases", type=int, default=300, help="divided among the folders [300]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    given = parser.parse_args()
    from satkgc.completion import Completer
    from satkgc.kg import KnowledgeGraph

    assert Completer, KnowledgeGraph  # with torch behind them: once, before the forks

    share = -(-given.cases // len(given.folders))
    results = {folder.name: damage(folder, share, given.seed) for folder in given.folders}
    total = sum((Counter(result["outcomes"]) for result in results.values()), Counter[str]())
    if given.json:
        print(json.dumps({"seed": given.seed, "questions": QUESTIONS, "outcomes": total, "folders": results}, indent=1))
    else:
        print(", ".join(f"{count} {outcome}" for outcome, count in total.items()))
    sys.exit(1 if total.keys() - {"refused", "same"} else 0)


if __name__ == "__main__":
    main()
