"""Runs that exist become the experts of a fused run."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

from satkgc.errors import SatkgcError
from satkgc.files import atomic_folder
from satkgc.manifest import MANIFEST, check_folder, write_manifest
from satkgc.models import FusedConfig
from satkgc.processes import find_device
from satkgc.training.config import Config
from satkgc.training.display import Display
from satkgc.training.fused_run import fit_or_stop
from satkgc.training.mixture import check_fitted_on
from satkgc.training.resume import begun, refuse_foreign, same_graph, taken
from satkgc.training.run_folder import RunFolder, exclusive

KEPT = ("log.jsonl", "curves.png", "README.md", "metrics.json", "model", "config.json")  # of a run that is an expert


def fuse_or_stop(
    runs: Sequence[str | os.PathLike[str]],
    out: str | Path,
    *,
    held_back: float = 0.0,
    novelty: bool = False,
    device: str = "auto",
    resume: bool = False,
) -> tuple[RunFolder, str | None]:
    """Copy finished runs on one graph into a new run and fit their mixture; the run, and why it stopped if it did."""
    parts, folder, display = [RunFolder.load(run) for run in runs], Path(out), Display()
    _check(parts)
    check_fitted_on(parts[0].kg, held_back)
    names = expert_names(parts)
    experts = {name: part.config for name, part in zip(names, parts, strict=True)}
    evaluation = parts[0].config.evaluation
    mixture = FusedConfig(held_back=held_back, novelty=novelty)
    config = Config(recipe="fused", model=mixture, experts=experts, evaluation=evaluation)
    old = begun(folder)
    if old is not None and not resume:
        raise taken(folder)
    if old is not None and old.config != config:
        remedy = "name the same runs, or choose another --out"
        raise SatkgcError("another mixture was begun here", where=folder, remedy=remedy)
    if old is None:
        refuse_foreign(folder)
    with exclusive(folder):
        if old is None:
            for name, part in zip(names, parts, strict=True):
                display.say(f"copying {part.folder} as the expert {name}")
                _copy(part, folder / "experts" / name)
            RunFolder.create(
                folder, config, parts[0].kg, str(parts[0].about.get("source"))
            )  # last: all experts are here
        run = RunFolder.load(folder)
        if run.finished:
            display.say(f"this run is finished: see {folder / 'metrics.json'}")
            return run, None
        return run, fit_or_stop(run, find_device(device), display)


def expert_names(runs: Sequence[RunFolder]) -> list[str]:
    """By recipe; several of one recipe are numbered."""
    recipes = [Path(run.config.recipe).stem for run in runs]
    often, names = Counter(recipes), list[str]()
    for recipe in recipes:
        numbered = (f"{recipe}-{number}" for number in count(1))
        plain = [recipe] if often[recipe] == 1 else []
        names.append(next(name for name in chain(plain, numbered) if name not in names))
    return names


def _check(runs: Sequence[RunFolder]) -> None:
    if len(runs) < 2:
        raise SatkgcError("a mixture of one", remedy="name two runs or more")
    for run in runs:
        if run.config.experts:
            raise SatkgcError("a fused run cannot be an expert", where=run.folder, remedy="name its experts instead")
        if not run.finished:
            raise SatkgcError("this run is not finished", where=run.folder, remedy="finish it with --resume")
        if not same_graph(run.kg, runs[0].kg):
            remedy = "train both on the same graph"
            raise SatkgcError(f"this run is of another graph than {runs[0].folder}", where=run.folder, remedy=remedy)
    if len({run.folder.resolve() for run in runs}) < len(runs):
        raise SatkgcError("the same run twice", remedy="name each once")


def _copy(run: RunFolder, target: Path) -> None:
    """What a finished run needs to be an expert, all or nothing; its graph is that of the whole."""
    with atomic_folder(target) as part:
        for name in KEPT:
            source = run.folder / name
            if source.is_dir():
                _copy_tree(source, part / name)
            elif source.exists():
                shutil.copy2(source, part / name)
        if (part / "model" / MANIFEST).exists():
            check_folder(part / "model", remedy="copy the run again, or train it anew")
        else:
            write_manifest(part / "model")  # as earlier versions left it


def _copy_tree(source: Path, target: Path) -> None:
    """As shutil does it, which gathers what fails for each file; the first says enough."""
    try:
        shutil.copytree(source, target)
    except shutil.Error as error:
        reason = error.args[0][0][2].partition(": '")[0]
        remedy = "check the free space and the permissions there, and run the same command again"
        raise SatkgcError(
            f"cannot be copied to {target.parent.parent}: {reason}", where=source, remedy=remedy
        ) from error
