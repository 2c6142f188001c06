"""A run that is updated while it is served: real connections under load, and no request is dropped."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref
from collections import Counter
from pathlib import Path

import httpx
import pytest
from running import CLIENT, running, until

from satkgc.completion import Completer, Question, update_run
from satkgc.errors import SatkgcError
from satkgc.manifest import write_json
from satkgc.serving import service
from satkgc.serving.app import create_app
from satkgc.serving.run import open_completer, version_of
from satkgc.serving.settings import ServiceSettings

QUESTION = {"head": "dog", "relation": "hypernym", "k": 20}


@pytest.fixture
def served(run, tmp_path, monkeypatch) -> Path:  # type: ignore[no-untyped-def]
    """A run of its own, looked at often."""
    monkeypatch.setattr(service, "LOOK", 0.02)
    copy = shutil.copytree(run, tmp_path / "run")
    write_json(copy / "metrics.json", {"finished": True})
    (tmp_path / "new.csv").write_text("head,relation,tail\npuppy,hypernym,dog\ndog,hypernym,mammal\n")
    return copy


def app(run: Path, settings: ServiceSettings | None = None):  # type: ignore[no-untyped-def]
    return create_app(lambda: open_completer(run, "cpu", lambda line: None), settings, lambda: version_of(run))


def ids(completer: Completer) -> list[str]:
    return [answer.id for answer in completer.ask([Question("dog", "hypernym", k=20)])[0]]


def number(url: str) -> int:
    return int(CLIENT.get(f"{url}/api/v1/info").json()["run_version"]["number"])


class Clients:
    """Threads that ask without a pause, singly and in batches larger than a pass, and keep what they got."""

    def __init__(self, url: str, count: int = 4) -> None:
        self.url, self.go, self.failed = url, True, list[str]()
        self.lists: list[list[list[str]]] = [[] for _ in range(count)]
        self.threads = [threading.Thread(target=self._ask, args=[i]) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _ask(self, i: int) -> None:
        with httpx.Client(timeout=60) as client:
            while self.go:
                body: object = QUESTION if i % 2 else {"questions": [QUESTION] * 40}
                try:
                    answer = client.post(f"{self.url}/api/v1/{'complete' if i % 2 else 'batch'}", json=body)
                except httpx.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                if answer.status_code != 200:
                    self.failed.append(answer.text)
                    continue
                results = [answer.json()] if i % 2 else answer.json()["results"]
                lists = {tuple(a["id"] for a in result["answers"]) for result in results}
                if len(lists) > 1:
                    self.failed.append("one request, two versions")
                self.lists[i].append(list(lists.pop()))

    def stop(self) -> None:
        self.go = False
        for thread in self.threads:
            thread.join(60)


def test_an_update_is_served_without_dropping_a_request(served: Path, tmp_path: Path) -> None:
    old = ids(Completer.load(served))
    with running(app(served)) as url:
        assert number(url) == 1
        clients = Clients(url)
        until(lambda: all(clients.lists))
        update_run(served, [tmp_path / "new.csv"], device="cpu")
        until(lambda: number(url) == 2)
        asked = [len(own) for own in clients.lists]
        until(lambda: all(len(own) > before + 1 for own, before in zip(clients.lists, asked, strict=True)))
        clients.stop()
        assert CLIENT.get(f"{url}/api/v1/entity", params={"id": "puppy"}).status_code == 200
    new = ids(Completer.load(served))
    assert old != new
    assert clients.failed == []
    for own in clients.lists:
        seen = ["old" if got == old else "new" if got == new else "neither" for got in own]
        assert Counter(seen).keys() == {"old", "new"}
        assert seen == sorted(seen, reverse=True), "nobody goes back to the old one"


def test_a_link_to_a_version_may_be_turned_to_another(served: Path, tmp_path: Path) -> None:
    update_run(served, [tmp_path / "new.csv"], out=tmp_path / "two", device="cpu")
    link = tmp_path / "current"
    link.symlink_to(served)
    with running(app(link)) as url:
        assert number(url) == 1
        (tmp_path / "next").symlink_to(tmp_path / "two")
        (tmp_path / "next").replace(link)
        until(lambda: number(url) == 2)


def test_what_cannot_be_opened_leaves_the_old_one(served: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    completer, version = Completer.load(served), [1]

    def load() -> Completer:
        if version[0] == 2:
            raise SatkgcError("broken", where=served)
        return completer

    with running(create_app(load, None, lambda: version[0])) as url:
        version[0] = 2
        until(lambda: "cannot be served" in (said := capsys.readouterr().err) and said.count("\n") == 1)
        assert CLIENT.post(f"{url}/api/v1/complete", json=QUESTION).status_code == 200
        version[0] = 3
        until(lambda: "version 1 of the run is served now" in capsys.readouterr().err)


def test_a_version_that_was_exchanged_leaves_memory(served: Path) -> None:
    version, opened = [1], []

    def load() -> Completer:
        completer = Completer.load(served)
        opened.append(weakref.ref(completer.kg))
        return completer

    with running(create_app(load, None, lambda: version[0])) as url:
        gc.disable()  # Python itself may look at any time, or never
        try:
            assert CLIENT.post(f"{url}/api/v1/complete", json=QUESTION).status_code == 200
            version[0] = 2
            until(lambda: len(opened) == 2 and opened[0]() is None)
            assert opened[1]() is not None
        finally:
            gc.enable()
