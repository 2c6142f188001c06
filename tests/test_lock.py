"""The lock file pins what constraints.txt pins, each with hashes, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_lock_file_is_of_these_constraints():
    pins = re.findall(r"^([\w.-]+==[^\s;#]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    entries = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    assert [entry.split()[0] for entry in entries] == pins, "run scripts/lock.py"
    for entry in entries:
        assert re.fullmatch(r"\S+==\S+(\s+--hash=sha256:[0-9a-f]{64})+", entry), entry
