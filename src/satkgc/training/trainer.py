"""Set a run up, or up again, let the loop run, and write what comes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from satkgc.errors import SatkgcError
from satkgc.kg import KnowledgeGraph, is_graph_folder
from satkgc.models.text import Towers
from satkgc.processes import Ranks
from satkgc.text import Texts
from satkgc.training.batches import Batches, FrozenVectors
from satkgc.training.checkpoint import MAKE_ROOM, Checkpoints, is_full
from satkgc.training.collate import Collate
from satkgc.training.config import CARRYING_OUT, Config
from satkgc.training.display import Display
from satkgc.training.finish import finish, keep_model
from satkgc.training.interrupts import Interrupts
from satkgc.training.log import Log, make_tracker
from satkgc.training.loop import Parts, run_loop
from satkgc.training.own import MakeObjective, MakeSampler, Own
from satkgc.training.recipes import make_config, own_settings, recipe_names
from satkgc.training.run import Run, alone
from satkgc.training.settings import build, flat, merge, parse
from satkgc.training.state import State
from satkgc.training.validate import Validation

Source = KnowledgeGraph | str | Path
# What comes to lie in a run folder.
WRITTEN = {
    "graph", "log.jsonl", "checkpoints", "model", "README.md", "metrics.json", "curves.png", "index",
    "calibration.json", "reliability.png", "tensorboard",
}  # fmt: skip
EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}  # of a program that such a signal ends


def train(
    kg: Source,
    recipe: str | os.PathLike[str] | None = None,
    out: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    graph_settings: bool = True,
    resume: bool = False,
    sampler: MakeSampler | None = None,
    objective: MakeObjective | None = None,
) -> Run:
    """Train a model and return its run, which is also a folder, by default runs/GRAPH-RECIPE.

    `kg` is a graph or what `KnowledgeGraph.load` opens; `recipe` a name ("satkgc" by default) or a TOML file;
    `overrides` settings by dotted name, `{"training.epochs": 3}`. Unless `graph_settings` is false, settings that suit
    a well-known graph are laid over the recipe, and under what a TOML file of yours says itself. With `resume` a run
    that stopped goes on; one that never began, begins. `sampler` and `objective` are classes of your own, or functions
    that make such: see "A sampler or a loss of your own" in docs/training.md.

    Ctrl-C, SIGTERM or a closed terminal lets the step end and saves, then ends the program as it would have; a run that
    reaches `training.max_minutes` is returned as it is, its `finished` false.
    """
    own = Own(sampler, objective)
    run, stopped = train_or_stop(
        kg, recipe, out, overrides=overrides, graph_settings=graph_settings, resume=resume, own=own
    )
    if stopped == "SIGINT":
        raise KeyboardInterrupt
    if stopped in ("SIGTERM", "SIGHUP"):
        raise SystemExit(EXIT_CODES[stopped])
    return run


def train_or_stop(
    kg: Source,
    recipe: str | os.PathLike[str] | None = None,
    out: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    graph_settings: bool = True,
    resume: bool = False,
    own: Own | None = None,
) -> tuple[Run, str | None]:
    """As `train`, but says why the run stopped early, if it did, and leaves it at that."""
    own = own or Own()
    names = own.names()
    recipe = None if recipe is None else os.fspath(recipe)
    source = kg.name if isinstance(kg, KnowledgeGraph) else str(kg)
    if out is None and not isinstance(kg, KnowledgeGraph):
        kg = KnowledgeGraph.load(kg)  # its name makes the folder's
    folder = Path(out or f"runs/{kg.name}-{Path(recipe or 'satkgc').stem}")  # type: ignore[union-attr]
    old = _begun(folder)
    if old is not None:
        if not resume:
            raise _taken(folder)
        _refuse_other_graph(kg, source, old)
        own.refuse_others(old)
        config, changed = _resumed_config(old, recipe, overrides or {})
    else:
        _refuse_foreign(folder)
        kg = kg if isinstance(kg, KnowledgeGraph) else KnowledgeGraph.load(kg)
        name = kg.name if graph_settings else None
        config = make_config(recipe or "satkgc", graph=name, triples=len(kg.train), overrides=overrides)
        changed = []
    ranks = Ranks.join(config.training.device)
    display = Display(ranks.first)
    with alone(folder) if ranks.first else nullcontext():
        if ranks.first:
            if old is None:
                assert isinstance(kg, KnowledgeGraph)
                if _begun(folder) is not None:  # by another process, before this one had the folder to itself
                    raise _taken(folder)
                ours = not (folder / "graph").exists()
                Run.create(folder, config, kg, source, names)
            elif changed:
                Run(folder, config, old.about).write_config()
        ranks.any(False)  # the others wait for the folder
        run = Run.load(folder)
        display.say(f"{run.kg!r}; {_described(config, names)}; run folder {folder}")
        for line in changed:
            display.say(f"resuming with another {line}")
        if run.finished:
            display.say(f"this run is finished: see {folder / 'metrics.json'}")
            return run, None
        try:
            with torch.random.fork_rng(devices=[]):  # the caller's random numbers are left alone
                return run, _train(run, own, ranks, display)
        except (OSError, SafetensorError) as error:
            if not is_full(error):
                raise
            raise SatkgcError("the disk is full; the checkpoints are intact", where=folder, remedy=MAKE_ROOM) from error
        finally:
            if ranks.first and old is None and ours and not run.began:
                run.discard()  # it failed before anything was learnt


def _begun(folder: Path) -> Run | None:
    """The run that a folder holds; a start that was killed left nothing to go on with, and is none."""
    run = Run.load(folder) if (folder / "config.json").exists() else None
    return run if run is not None and run.began else None


def _refuse_foreign(folder: Path) -> None:
    """Files of somebody else's are not written over; what a start that was killed has left is ours."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if is_graph_folder(folder):
        raise SatkgcError("this folder holds a graph", where=folder, remedy="choose another --out")
    ours = {"graph"} if ".lock" in names else set()  # the lock is the first that a start writes
    foreign = sorted(names & WRITTEN - ours)
    if foreign and "config.json" not in names:
        raise SatkgcError(f"this folder holds no run, but a {foreign[0]}", where=folder, remedy="choose another --out")


def _taken(folder: Path) -> SatkgcError:
    remedy = "go on with --resume, or resume=True, or choose another --out"
    return SatkgcError("there is a run here already", where=folder, remedy=remedy)


def _train(run: Run, own: Own, ranks: Ranks, display: Display) -> str | None:
    config, kg = run.config, run.kg
    torch.manual_seed(config.training.seed)  # of weights that a backbone may lack
    towers = Towers.create(config.encoder).to(ranks.device)
    state = State(towers, own.make_objective(config.objective).to(ranks.device), config.training)
    texts = Texts(kg, towers.tokenizer, config.text)
    sampler = own.make_sampler(kg, config.sampling, config.training.seed, FrozenVectors(kg, texts, towers))
    steps = config.total_steps(len(kg.train))

    checkpoints = Checkpoints(run.folder / "checkpoints")
    latest = checkpoints.latest(display.say)
    if latest is not None:
        tensors, arrays, facts = checkpoints.read(latest)
        state.restore(tensors, facts)
        sampler.restore(arrays)
        display.say(f"going on after step {state.step} of {steps}")
        del tensors, arrays

    validation = None
    if config.training.validations and len(kg.valid):
        chosen = (config.training.validation_triples, config.training.seed)
        validation = Validation(kg, texts, config.evaluation, *chosen)
    file = run.folder / "log.jsonl" if ranks.first else None
    tracker = make_tracker(config.training.tracker, run.folder) if ranks.first else None
    chunk, seed = config.training.chunk_tokens, config.training.seed
    collate = Collate(kg, texts, config.objective, towers.pack, chunk, ranks, seed)
    batches = Batches(sampler, collate, state.step, steps, config.training.workers)
    log = Log(file, state.step, tracker, state.validated)
    parts = Parts(state, steps, batches, ranks, log, display, checkpoints, validation)
    try:
        stopped = run_loop(parts)
    finally:
        display.stop()
    if ranks.first:
        keep_model(run, parts)
        if stopped is None:
            stopped = _finish(run, parts)
        if stopped is not None:
            display.say(
                f"stopped at step {state.step} of {steps} ({stopped}); it goes on with --resume, or resume=True"
            )
    ranks.any(False)  # nobody leaves before the files are written
    return stopped


def _finish(run: Run, parts: Parts) -> str | None:
    """Measure and describe what was trained; returns what interrupted it, if anything did."""
    if parts.ranks.world > 1:  # the others wait for this one, and a signal ends them all
        finish(run, parts)
        return None
    with Interrupts(parts.display.say) as interrupts:
        interrupts.unless_asked(lambda: finish(run, parts))
    return interrupts.asked


def _described(config: Config, own: Mapping[str, str]) -> str:
    applied = "small graphs" if config.applied == "small" else config.applied
    how = "laid over it" if config.recipe in recipe_names() else "where it says nothing itself"
    laid = f", with the settings for {applied} {how}" if applied != "none" else ""
    parts = "".join(f", {kind} {name}" for kind, name in own.items())
    return f"recipe {config.recipe}{laid}{parts}"


def _resumed_config(old: Run, recipe: str | None, overrides: Mapping[str, Any]) -> tuple[Config, list[str]]:
    """The settings to go on with, and which of them are new; only those that do not change the outcome may be."""
    if recipe not in (None, old.config.recipe):
        raise SatkgcError(
            f"this run was started with recipe {old.config.recipe}, not {recipe}",
            where=old.folder,
            remedy="leave --recipe out, or choose another --out",
        )
    before = asdict(old.config)
    written: Mapping[str, Any] = {}
    if recipe is not None and (own := flat(own_settings(recipe))):  # a file of the user's, who may have changed it
        applied = None if old.config.applied == "none" else old.config.applied
        now = make_config(recipe, graph=applied, triples=len(old.kg.train))
        written = {name: value for name, value in flat(asdict(now)).items() if name in own}
    config = build(Config, merge(before, parse(Config, {**written, **overrides})))
    after, changed = flat(asdict(config)), []
    for name, value in flat(before).items():
        if after[name] == value:
            continue
        if name not in CARRYING_OUT:
            raise SatkgcError(
                f"{name} was {value} when this run was started, and is {after[name]} now",
                where=old.folder,
                remedy="leave it as it was, or choose another --out",
            )
        changed.append(f"{name}: {after[name]} instead of {value}")
    return config, changed


def _refuse_other_graph(kg: Source, source: str, old: Run) -> None:
    """A run goes on with its own copy of the graph; one that was given must be the same."""
    if not isinstance(kg, KnowledgeGraph):
        if source == old.about.get("source"):
            return  # not opened again: the copy is all that is needed
        kg = KnowledgeGraph.load(kg)
    same = all(
        getattr(new, part).equals(getattr(before, part))
        for new, before in ((kg.entities, old.kg.entities), (kg.relations, old.kg.relations))
        for part in ("ids", "names", "descriptions")
    )
    if not same or any(kg.split(s).tobytes() != old.kg.split(s).tobytes() for s in ("train", "valid", "test")):
        what = f"this run was started on another graph than {source}, or with other texts"
        raise SatkgcError(what, where=old.folder, remedy="choose another --out, or out=")
