"""Thirty seeded steps of three recipes, and the ranks they give: a digest that two versions of the program must share.

python scripts/rebuild_record.py old OUT      # names of settings before the rebuild
python scripts/rebuild_record.py new OUT      # and after it
python scripts/rebuild_record.py compare OLD NEW
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from safetensors.numpy import load_file

COMMON = {"training.seed": 3, "training.log_steps": 1, "training.validations": 1, "encoder.dropout": 0.1}
RUNS = {  # settings by the names before the rebuild; each run is one recipe as it was
    "satkgc": {"objective.popularity": 0.5, "text.neighbours": 10, "text.hide": "edge"},
    "simkgc": {"objective.popularity": 0.5, "training.chunk_tokens": 1024},
    "neighbours": {"objective.popularity": 0.5, "text.neighbours": 8, "text.max_tokens": 32},
}
RENAMED = {
    "encoder.": "model.encoder.",
    "text.neighbours": "model.text.neighbours",
    "text.": "model.text.",
    "objective.popularity": "model.loss.logit_adjustment",
    "objective.": "model.loss.",
    "training.chunk_tokens": "model.encoder.chunk_tokens",
}
VALUES = {"model.text.hide": "model.text.exclude"}


def rename(name: str) -> str:
    """A setting's name after the rebuild."""
    for old, new in RENAMED.items():
        if name.startswith(old):
            name = new + name[len(old) :]
            break
    return VALUES.get(name, name)


def settings(version: str, recipe: str) -> dict[str, object]:
    """All that a run sets."""
    chosen = {**COMMON, **RUNS[recipe]}
    if version == "old":
        return chosen
    chosen = {rename(name): value for name, value in chosen.items()}
    if recipe == "neighbours":  # the count of each relation has a name of its own now
        chosen["model.text.neighbours_per_relation"] = chosen.pop("model.text.neighbours")
    return chosen


def record(version: str, out: Path) -> None:
    """Train, evaluate, and write what came of it."""
    for recipe in sys.argv[3:] or RUNS:
        run = out / recipe
        shutil.rmtree(run, ignore_errors=True)
        words = [f"--set={name}={value}" for name, value in settings(version, recipe).items()]
        call = [sys.executable, "-m", "satkgc"]
        subprocess.run(
            [*call, "train", "wordnet-sample", "--recipe", recipe, "--out", str(run), "--steps", "30", *words],
            check=True,
        )
        subprocess.run([*call, "evaluate", str(run), "--ranks", str(run / "ranks.parquet")], check=True)


def digest(run: Path) -> dict[str, object]:
    """Losses and norms of every step, weights, ranks."""
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    total = hashlib.sha256()
    for tower in ("query", "entity"):
        weights = load_file(next((run / "model").glob(f"**/{tower}/model.safetensors")))
        for name in sorted(weights):
            total.update(name.encode() + weights[name].tobytes())
    table = pq.read_table(run / "ranks.parquet")
    return {
        "loss": [record["loss"] for record in log if "loss" in record],
        "norm": [record["gradient_norm"] for record in log if "loss" in record],
        "temperature": [
            record["tau"] if "tau" in record else record["metrics"]["temperature"] for record in log if "loss" in record
        ],
        "weights": total.hexdigest(),
        "ranks": hashlib.sha256(
            json.dumps(table.select(["head", "relation", "tail", "asked", "rank"]).to_pydict()).encode()
        ).hexdigest(),
    }


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        for recipe in RUNS:
            one, two = (digest(Path(folder) / recipe) for folder in sys.argv[2:])
            same = {name: one[name] == two[name] for name in one}
            print(recipe, "steps", len(one["loss"]), same)
    else:
        record(sys.argv[1], Path(sys.argv[2]))
