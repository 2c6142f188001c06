"""The parts of a run folder that answering needs."""

from __future__ import annotations

import json
from pathlib import Path

from satkgc.encoder import Towers
from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph
from satkgc.text import TextConfig, Texts


def open_run(run: Path, device: str) -> tuple[KnowledgeGraph, Towers, Texts]:
    """Graph, towers and texts of a run folder."""
    missing = [name for name in ("config.json", "graph", "model") if not (run / name).exists()]
    if missing:
        raise SatkgcError(f"no run here: {missing[0]} is missing", where=run, remedy="give a folder that train wrote")
    kg = KnowledgeGraph.load(run / "graph")
    towers = Towers.load(run / "model", device)
    config = json.loads((run / "config.json").read_text())
    config = config.get("config", config)
    return kg, towers, Texts(kg, towers.tokenizer, TextConfig(**config.get("text", {})))
