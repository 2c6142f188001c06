"""Schemathesis over the OpenAPI: whatever fits the schema is answered, what does not is refused, as documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from running import CLIENT, running

from satkgc.serving.app import create_app
from satkgc.serving.settings import ServiceSettings


def test_the_service_keeps_to_its_description(url: str, tmp_path: Path) -> None:
    # As a command: its plugin for pytest lags behind pytest. The folder is for the notes it writes.
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/v1/openapi.json", "--no-color"]
    options = ["--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--seed", "1"]
    command += [*options, "--suppress-health-check", "all"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "11 selected / 11 total" in done.stdout


def test_every_body_has_examples_that_work(url: str) -> None:
    paths = CLIENT.get(f"{url}/api/v1/openapi.json").json()["paths"]
    tried = 0
    for path, operations in paths.items():
        if "post" in operations:
            examples = operations["post"]["requestBody"]["content"]["application/json"]["examples"]
            for example in examples.values():
                assert CLIENT.post(url + path, json=example["value"]).status_code == 200
                tried += 1
    assert tried >= 9


def test_the_description_has_what_can_be_answered_and_no_more(completer) -> None:  # type: ignore[no-untyped-def]
    def described(settings: ServiceSettings) -> tuple[dict[str, set[str]], dict]:
        with running(create_app(lambda: completer, settings)) as url:
            headers = {"authorization": f"Bearer {settings.token}"}
            whole = CLIENT.get(f"{url}/api/v1/openapi.json", headers=headers).json()
        operations = {path: next(iter(methods.values())) for path, methods in whole["paths"].items()}
        assert all(("security" in one) == bool(settings.token) for path, one in operations.items() if path != "/health")
        return {path: set(one["responses"]) for path, one in operations.items()}, whole["components"]

    statuses, components = described(ServiceSettings())
    assert statuses["/api/v1/relations"] == {"200", "421", "422", "500", "503"}
    assert statuses["/api/v1/entity"] == {"200", "404", "409", "421", "422", "500", "503"}
    assert statuses["/api/v1/complete"] == {"200", "400", "404", "409", "413", "421", "422", "500", "503"}
    assert statuses["/api/v1/batch"] == {"200", "400", "413", "421", "422", "500", "503"}
    assert (statuses["/health"], statuses["/metrics"]) == ({"200", "421", "500", "503"}, {"200", "421", "500"})
    assert "securitySchemes" not in components
    statuses, components = described(ServiceSettings(token="geheim"))
    assert statuses["/api/v1/relations"] == {"200", "401", "422", "500", "503"}
    assert (statuses["/health"], statuses["/metrics"]) == ({"200", "500", "503"}, {"200", "401", "500"})
    assert [one["scheme"] for one in components["securitySchemes"].values()] == ["bearer"]
