"""Write requirements.lock and sbom.json: what constraints.txt pins, with the hashes that the package index has of it.

    python scripts/lock.py

`pip install --require-hashes -r requirements.lock` then takes no other file for any of them. The bill of materials is
CycloneDX 1.5; licences are those of the packages that are installed here.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", re.MULTILINE)


def hashes(name: str, version: str) -> list[str]:
    """The SHA-256 of every file of a release."""
    project = re.sub(r"[-_.]+", "-", name).lower()
    request = urllib.request.Request(
        f"{INDEX}/{project}/", headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    if text.lstrip().startswith("{"):
        files = [(file["filename"], file["hashes"].get("sha256")) for file in json.loads(text)["files"]]
    else:
        files = re.findall(r'href="[^"]*/([^/"#]+)#sha256=([0-9a-f]{64})', text)
    start = re.compile(rf"{re.sub(r'[-_.]+', '[-_.]+', project)}-{re.escape(version)}(-|\.tar|\.zip)", re.IGNORECASE)
    return sorted({digest for filename, digest in files if digest and start.match(filename)})


def component(name: str, version: str, digests: list[str]) -> dict[str, Any]:
    """A package in the bill of materials."""
    part: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower()}@{version}",
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in digests],
    }
    try:
        metadata = importlib.metadata.metadata(name)
        licence = metadata.get("License-Expression") or metadata.get("License") or ""
    except importlib.metadata.PackageNotFoundError:
        licence = ""
    if licence and "\n" not in licence:
        part["licenses"] = [{"license": {"name": licence}}]
    return part


def main() -> None:
    """Both files, in the order of constraints.txt."""
    lines, components = [], []
    for name, version in PIN.findall((ROOT / "constraints.txt").read_text(encoding="utf-8")):
        digests = hashes(name, version)
        if not digests:
            raise SystemExit(f"the index has no file of {name} {version}")
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in digests)]))
        components.append(component(name, version, digests))
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    (ROOT / "sbom.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
