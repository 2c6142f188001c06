"""What the service says before it can answer."""

from __future__ import annotations

from threading import Event

from running import CLIENT, running, until

from satkgc.errors import SatkgcError
from satkgc.serving.app import create_app


def test_health_says_loading_until_the_model_is_there_and_the_api_says_why() -> None:
    go = Event()

    class Nothing:
        """Stands for a completer while only its arrival matters."""

        def texts_read(self, question):  # type: ignore[no-untyped-def]
            return 1

        def ask_each(self, questions):  # type: ignore[no-untyped-def]
            return [[] for _ in questions]

    def load():  # type: ignore[no-untyped-def]
        go.wait(30)
        return Nothing()

    with running(create_app(load), ready=False) as url:
        health = CLIENT.get(f"{url}/health")
        assert (health.status_code, health.json()) == (503, {"status": "loading"})
        answer = CLIENT.post(f"{url}/api/v1/complete", json={"head": "a", "relation": "b"})
        assert (answer.status_code, answer.json()) == (503, {"error": "the model is still loading"})
        assert CLIENT.get(f"{url}/").status_code == 200  # the page is there and shows that it waits
        assert "satkgc_ready 0.0" in CLIENT.get(f"{url}/metrics").text
        go.set()
        until(lambda: CLIENT.get(f"{url}/health").json() == {"status": "ready"})
        assert CLIENT.post(f"{url}/api/v1/complete", json={"head": "a", "relation": "b"}).json()["answers"] == []
        assert "satkgc_ready 1.0" in CLIENT.get(f"{url}/metrics").text


def test_a_model_that_cannot_be_loaded_is_told_and_hides_its_paths() -> None:
    failed = Event()

    def load():  # type: ignore[no-untyped-def]
        raise SatkgcError("broken", where="/secret/run")

    with running(create_app(load, failed=failed.set), ready=False) as url:
        assert failed.wait(30)
        health = CLIENT.get(f"{url}/health")
        assert (health.status_code, health.json()) == (503, {"status": "failed"})
        answer = CLIENT.get(f"{url}/api/v1/relations")
        assert answer.status_code == 503
        assert "secret" not in answer.text
