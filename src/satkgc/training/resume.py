"""What a run folder already holds: nothing of ours, somebody else's files, or a run to go on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.kg import DECISIONS, SPLITS, KnowledgeGraph, is_graph_folder
from satkgc.settings import flatten
from satkgc.training.config import EXECUTION, Config
from satkgc.training.recipes import make_config, user_settings
from satkgc.training.run_folder import RunFolder
from satkgc.training.start import laid_over, overridden
from satkgc.training.trackers import IDS

# What comes to lie in a run folder.
WRITTEN = {
    "graph", "log.jsonl", "checkpoints", "model", "README.md", "metrics.json", "curves.png", "index",
    "calibration.json", "reliability.png", "tensorboard", "wandb", IDS, "experts", DECISIONS,
}  # fmt: skip


def begun(folder: Path) -> RunFolder | None:
    """The run that a folder holds; a start that was killed left nothing to go on with, and is none."""
    run = RunFolder.load(folder) if (folder / "config.json").exists() else None
    return run if run is not None and run.began else None


def taken(folder: Path) -> SatkgcError:
    remedy = "go on with --resume, or resume=True, or choose another --out"
    return SatkgcError("there is a run here already", where=folder, remedy=remedy)


def refuse_foreign(folder: Path) -> None:
    """Files of somebody else's are not written over; what a start that was killed has left is ours."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if is_graph_folder(folder):
        raise SatkgcError("this folder holds a graph", where=folder, remedy="choose another --out")
    ours = {"graph", "experts"} if ".lock" in names else set()  # the lock is the first that a start writes
    foreign = sorted(names & WRITTEN - ours)
    if foreign and "config.json" not in names:
        raise SatkgcError(f"this folder holds no run, but a {foreign[0]}", where=folder, remedy="choose another --out")


def resumed_config(
    old: RunFolder, recipe: str | None, config: Config | None, overrides: Mapping[str, Any]
) -> tuple[Config, list[str]]:
    """The settings to go on with, and which of them are new; only those that do not change the outcome may be."""
    if recipe not in (None, old.config.recipe):
        raise SatkgcError(
            f"this run was started with recipe {old.config.recipe}, not {recipe}",
            where=old.folder,
            remedy="leave --recipe out, or choose another --out",
        )
    before = flatten(old.config.model_dump())
    written: Mapping[str, Any] = {}
    if recipe is not None and (own := flatten(user_settings(recipe))):  # a file of the user's, who may have changed it
        small = old.config.applied == "small"
        benchmark, triples = (None, len(old.kg.train)) if small else (old.config.applied, None)
        now = make_config(recipe, benchmark=benchmark, triples=triples)
        written = {name: value for name, value in flatten(now.model_dump()).items() if name in own}
    new = overridden(laid_over(config or old.config, written), overrides)
    after, changed = flatten(new.model_dump()), []
    for name, value in before.items():
        if name in after and after[name] == value:
            continue
        if not _is_execution(name, old.config):
            value_now = f"is {after[name]} now" if name in after else "is not set now"
            raise SatkgcError(
                f"{name} was {value} when this run was started, and {value_now}",
                where=old.folder,
                remedy="leave it as it was, or choose another --out",
            )
        changed.append(f"{name}: {after[name]} instead of {value}")
    return new, changed


def _is_execution(name: str, config: Config) -> bool:
    """Whether a setting may change when a run is resumed."""
    if name.startswith("experts."):
        _, expert, name = name.split(".", 2)
        config = config.experts[expert]
    return name in EXECUTION | config.model.execution


def refuse_other_graph(kg: KnowledgeGraph | str | Path, source: str, old: RunFolder) -> None:
    """A run goes on with its own copy of the graph; one that was given must be the same."""
    if not isinstance(kg, KnowledgeGraph):
        if source == old.about.get("source"):
            return  # not opened again: the copy is all that is needed
        kg = KnowledgeGraph.load(kg)
    if not same_graph(kg, old.kg):
        what = f"this run was started on another graph than {source}, or with other texts"
        raise SatkgcError(what, where=old.folder, remedy="choose another --out, or out=")


def same_graph(one: KnowledgeGraph, other: KnowledgeGraph) -> bool:
    """Whether two graphs have the same entities, relations, texts and triples, in the same order."""
    same = all(
        getattr(a, part).equals(getattr(b, part))
        for a, b in ((one.entities, other.entities), (one.relations, other.relations))
        for part in ("ids", "names", "descriptions")
    )
    return same and all(one.split(s).tobytes() == other.split(s).tobytes() for s in SPLITS)
