"""Schemathesis over the OpenAPI: whatever fits the schema is answered, what does not is refused, as documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from running import CLIENT


def test_the_service_keeps_to_its_description(url: str, tmp_path: Path) -> None:
    # As a command: its plugin for pytest lags behind pytest. The folder is for the notes it writes.
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/v1/openapi.json", "--no-color"]
    options = ["--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--seed", "1"]
    command += [*options, "--suppress-health-check", "all"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "10 selected / 10 total" in done.stdout


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
