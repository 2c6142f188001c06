"""Where a run begins that trains on: the weights of a finished one, on a graph that has grown since, and what people
rejected of its proposals."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.errors import SatkgcError
from satkgc.kg import read_decisions
from satkgc.models import Model, Rejections
from satkgc.settings import build, flatten, merge, parse
from satkgc.training.config import ALIASES, Config, TrainingConfig
from satkgc.training.recipes import share_with_experts
from satkgc.training.run_folder import RunFolder, model_sum

SHORTER = 3  # times as short as the run that it begins from, unless a length or a recipe is given


def open_start(folder: str | os.PathLike[str]) -> RunFolder:
    """A run to begin from, which must be finished."""
    run = RunFolder.load(folder)
    if not run.finished:
        remedy = "finish it with --resume, or go on from another"
        raise SatkgcError("this run is not finished: nothing begins from it", where=run.folder, remedy=remedy)
    return run


def note_of(start: RunFolder) -> dict[str, dict[str, str]]:
    """What config.json keeps of it."""
    return {"from": {"run": str(start.folder.absolute()), "model": model_sum(start)}}


def start_of(run: RunFolder) -> RunFolder | None:
    """The run that another one began from, by what it noted; None: it began anew."""
    if (note := run.about.get("from")) is None:
        return None
    try:
        start = RunFolder.load(note["run"])
        same = model_sum(start) == note["model"]
    except (SatkgcError, OSError):
        same = False
    if not same:
        what = f"the run that this one began from is gone or another one now: {note['run']}"
        raise SatkgcError(what, where=run.folder, remedy="put it back, or choose another --out")
    return start


def refuse_other_start(old: RunFolder, folder: str | os.PathLike[str] | None) -> None:
    """A resumed run remembers where it began: --from may be repeated or left out, not changed."""
    if folder is None:
        return
    begun_from = old.about.get("from")
    if begun_from is None or begun_from["model"] != model_sum(open_start(folder)):
        where = "anew" if begun_from is None else f"from {begun_from['run']}"
        what = f"this run began {where}, not from {os.fspath(folder)}"
        raise SatkgcError(what, where=old.folder, remedy="leave --from out, or choose another --out")


def laid_over(config: Config, values: Mapping[str, Any]) -> Config:
    """Settings with some changed, by their dotted names."""
    below = config.model_dump()
    return build(Config, merge(below, parse(Config, values, ALIASES, below)), aliases=ALIASES)


def overridden(config: Config, overrides: Mapping[str, Any]) -> Config:
    """The same as people mean it: what is said of a fused run holds for its experts, and epochs stand before steps."""
    if config.experts:
        overrides = share_with_experts(overrides, {name: part.model.kind for name, part in config.experts.items()})
    lengths = [name for name in overrides if name.endswith("training.epochs")]
    no_steps = {name.removesuffix("epochs") + "steps": None for name in lengths}
    return laid_over(config, {**no_steps, **overrides})


def config_from(start: RunFolder, overrides: Mapping[str, Any]) -> Config:
    """The settings of a run for one that begins from it: a third as long, unless the overrides say how long, and with a
    warm-up, which a recipe that begins anew may do without. Adagrad has three times the rate, for a third of the steps.
    """
    return overridden(_shorter(start.config), overrides)


def check_start(start: RunFolder, config: Config) -> None:
    """Refuse a run whose weights do not fit, by the first setting that differs."""
    if start.config.experts or config.experts:
        if start.config.experts.keys() != config.experts.keys():
            ours, theirs = (", ".join(part.experts) or "none" for part in (config, start.config))
            raise _unfit(start, f"its experts are {theirs}, not {ours}")
        for name, expert in start.experts.items():
            check_start(expert, config.experts[name])
        return
    theirs_, ours_ = (flatten({"model": part.model.model_dump()}) for part in (start.config, config))
    for name in ("model.kind", *sorted(config.model.shape)):
        if theirs_.get(name) != ours_.get(name):
            raise _unfit(start, f"its {name} is {theirs_.get(name)}, not {ours_.get(name)}")


def take_weights(model: Model, start: RunFolder) -> None:
    """The weights of a run's model, row by row where they belong to entities or relations."""
    try:
        model.begin_from(start.model_on(start.kg, str(model.device)))
    except SatkgcError as error:
        raise SatkgcError(error.what, where=error.where or start.folder, remedy=error.remedy) from None


def take_rejections(model: Model, folder: Path, seed: int) -> str | None:
    """Have a model learn what the decisions in a run folder reject, but for what the graph has; a line that says so."""
    kg, triples = model.kg, []
    for decision in read_decisions(folder).values():
        if decision.verdict == "reject" and (triple := kg.find_triple(*decision.statement)) is not None:
            triples += [] if triple[2] in kg.known_all.tails(*triple[:2]) else [triple]
    if not triples:
        return None
    count = f"{len(triples):,} rejected statement{'s' * (len(triples) > 1)}"
    if not model.learns_rejections():
        kind = model.config.kind
        return f"{count} not used: a {kind} model compares answers within a batch; they are not proposed again"
    model.rejections = Rejections(kg, np.array(triples, np.int32), seed)
    return f"{count} count as negatives"


def _unfit(start: RunFolder, why: str) -> SatkgcError:
    remedy = "leave --recipe and this setting out, or train anew without --from"
    return SatkgcError(f"nothing begins from this run: {why}", where=Path(start.folder), remedy=remedy)


def _shorter(config: Config) -> Config:
    training = config.training
    steps = None if training.steps is None else math.ceil(training.steps / SHORTER)
    # The optimizer knows nothing of the weights yet: Adagrad's first steps, as long as its rate, would undo some of it.
    warmup = training.warmup_steps or TrainingConfig().warmup_steps
    rate = min(0.5, SHORTER * training.learning_rate) if training.optimizer == "adagrad" else training.learning_rate
    length = {"epochs": training.epochs / SHORTER, "steps": steps, "max_minutes": None}
    shorter = training.replace(**length, warmup_steps=warmup, learning_rate=rate)
    experts = {name: _shorter(expert) for name, expert in config.experts.items()}
    return config.replace(training=shorter, experts=experts)
