"""Set a run up, or up again, let the loop run, and write what comes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from satkgc.errors import SatkgcError
from satkgc.files import is_full
from satkgc.kg import KnowledgeGraph, carry_rejections
from satkgc.models import FusedConfig, Model, StepContext
from satkgc.processes import Processes
from satkgc.training.batches import Batches, FrozenVectors
from satkgc.training.checkpoint import MAKE_ROOM, Checkpoints
from satkgc.training.config import Config
from satkgc.training.custom import Custom
from satkgc.training.display import Display
from satkgc.training.estimate import FEWEST, Estimate, estimate, faster_choice, total
from satkgc.training.finish import finish, keep_model
from satkgc.training.fused_run import fit_or_stop
from satkgc.training.interrupts import Interrupts
from satkgc.training.language import language_note
from satkgc.training.log import Log
from satkgc.training.loop import Callback, Parts, run_loop
from satkgc.training.memory import out_of_memory
from satkgc.training.mixture import check_fitted_on
from satkgc.training.recipe_files import recipe_names
from satkgc.training.recipes import FULL, QUICK, default_recipe, make_config
from satkgc.training.resume import begun, refuse_foreign, refuse_other_graph, resumed_config, taken
from satkgc.training.run_folder import FORMAT, RunFolder, exclusive
from satkgc.training.start import (
    check_start,
    config_from,
    note_of,
    open_start,
    overridden,
    refuse_other_start,
    start_of,
    take_rejections,
    take_weights,
)
from satkgc.training.state import State
from satkgc.training.trackers import make_tracker
from satkgc.training.validation import Validation

Source = KnowledgeGraph | str | Path
EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}  # of a program that such a signal ends


def train_or_stop(
    kg: Source,
    recipe: str | os.PathLike[str] | None = None,
    out: str | Path | None = None,
    *,
    config: Config | None = None,
    overrides: Mapping[str, Any] | None = None,
    graph_settings: bool = True,
    resume: bool = False,
    from_run: str | os.PathLike[str] | None = None,
    custom: Custom | None = None,
    callbacks: Sequence[Callback] = (),
    expert: str | None = None,
) -> tuple[RunFolder, str | None]:
    """Train a model; its run, and why it stopped early if it did. The arguments are those of `satkgc.train`, and what
    an expert of a fused run is called on the progress bar."""
    custom = custom or Custom()
    names = custom.names()
    if config is not None and recipe is not None:
        raise SatkgcError("a recipe and a config at once", remedy="give one of them")
    recipe = None if recipe is None else os.fspath(recipe)
    source = kg.name if isinstance(kg, KnowledgeGraph) else str(kg)
    if out is None and not isinstance(kg, KnowledgeGraph):
        kg = KnowledgeGraph.load(kg)  # its name makes the folder's
    start = None if from_run is None else open_start(from_run)
    default = (
        start.config.recipe
        if start
        else default_recipe((overrides or {}).get("training.device", "auto"), custom=bool(names))
    )
    chosen = config.recipe if config is not None else recipe or default
    folder = Path(out or f"runs/{kg.name}-{Path(chosen).stem}")  # type: ignore[union-attr]
    old = begun(folder)
    if old is not None:
        if not resume:
            raise taken(folder)
        if old.about["format"] != FORMAT and not old.finished:
            what = f"this run was begun by satkgc {old.about.get('version')}"
            raise SatkgcError(what, where=folder, remedy="finish it with that version, or choose another --out")
        refuse_other_graph(kg, source, old)
        custom.refuse_others(old)
        refuse_other_start(old, from_run)
        config, changed = resumed_config(old, recipe, config, overrides or {})
    else:
        refuse_foreign(folder)
        kg = kg if isinstance(kg, KnowledgeGraph) else KnowledgeGraph.load(kg)
        benchmark, triples = (kg.benchmark, len(kg.train)) if graph_settings else (None, None)
        if start is not None and config is None and recipe is None:
            config = config_from(start, overrides or {})
        elif config is None:
            config = make_config(chosen, benchmark=benchmark, triples=triples, overrides=overrides)
        elif overrides:
            config = overridden(config, overrides)
        if start is not None:
            check_start(start, config)
        changed = []
    processes = Processes.join(config.training.device)
    display = Display(processes.first, expert or "training")
    with exclusive(folder) if processes.first else nullcontext():
        if processes.first:
            if old is None:
                assert isinstance(kg, KnowledgeGraph)
                if begun(folder) is not None:  # by another process, before this one had the folder to itself
                    raise taken(folder)
                ours = not (folder / "graph").exists()
                RunFolder.create(folder, config, kg, source, {**names, **(note_of(start) if start else {})})
                if start is not None:
                    carry_rejections(start.folder, folder)
            elif changed:
                RunFolder(folder, config, old.about).write_config()
        processes.any(False)  # the others wait for the folder
        run = RunFolder.load(folder)
        display.say(f"{run.kg!r}; {_described(config, names)}; run folder {folder}")
        if "from" in run.about and not run.finished:
            display.say(f"it begins from the weights of {run.about['from']['run']}")
        elif recipe is None and old is None and chosen == QUICK:
            display.say(f"no GPU, so the recipe is {QUICK}: the encoder stays as it is; --recipe {FULL} trains it too")
        if expert is None and (note := language_note(run.kg, config)) is not None:
            display.say(note)
        for line in changed:
            display.say(f"resuming with another {line}")
        if run.finished:
            display.say(f"this run is finished: see {folder / 'metrics.json'}")
            return run, None
        try:
            with torch.random.fork_rng(devices=[]):  # the caller's random numbers are left alone
                if config.experts:
                    return run, _train_experts(run, custom, processes, display, callbacks)
                return run, _train(run, custom, processes, display, callbacks, expert is not None)
        except (OSError, SafetensorError) as error:
            if not is_full(error):
                raise
            raise SatkgcError("the disk is full; the checkpoints are intact", where=folder, remedy=MAKE_ROOM) from error
        except torch.OutOfMemoryError as error:
            what = f"the model does not fit the memory of {processes.device}"
            raise SatkgcError(what, remedy="choose a smaller one, or training.device=cpu") from error
        finally:
            if processes.first and old is None and ours and not run.began:
                run.discard()  # it failed before anything was learnt


def _train(
    run: RunFolder,
    custom: Custom,
    processes: Processes,
    display: Display,
    callbacks: Sequence[Callback],
    expert: bool,
) -> str | None:
    config, kg, training = run.config, run.kg, run.config.training
    checkpoints = Checkpoints(run.folder / "checkpoints")
    latest = checkpoints.latest(display.say)
    start = start_of(run) if latest is None else None
    model, context = _make_model(run.folder, kg, config, custom, processes, start)
    # An expert learns what was rejected of the fused run's answers.
    note = take_rejections(model, run.folder.absolute().parents[1] if expert else run.folder, training.seed)
    if note is not None:
        display.say(note)
    state = State(model, training)
    sampler = custom.make_sampler(kg, config.sampling, training.seed, model.needs, FrozenVectors(model))
    steps = config.total_steps(len(kg.train))

    if latest is not None:
        tensors, arrays, facts = checkpoints.read(latest)
        state.restore(tensors, facts)
        sampler.restore(arrays)
        display.say(f"going on after step {state.step} of {steps}")
        del tensors, arrays
    left = steps - state.step
    if not expert and left >= FEWEST and (expected := estimate(model, config, context, left)) is not None:
        display.say(expected.line(faster_choice(config)))

    validation = None
    if training.validations and len(kg.valid):
        validation = Validation(model, config.evaluation, training.validation_triples, training.seed, processes)
    file = run.folder / "log.jsonl" if processes.first else None
    tracker = make_tracker(training.tracker, run.folder, state.step) if processes.first else None
    batches = Batches(sampler, model.collate, state.step, steps, training.workers)
    log = Log(file, state.step, tracker, state.validated)
    parts = Parts(state, steps, batches, context, log, display, checkpoints, validation, callbacks)
    stopped, enough = None, True
    try:
        stopped = run_loop(parts)
    except torch.OutOfMemoryError:
        enough = False
    finally:
        display.stop()
        if tracker is not None:
            tracker.close()
    if not enough:
        raise out_of_memory(parts)
    keep_model(run, parts)
    if stopped is None:
        stopped = _finish(run, parts)
    if stopped is not None:
        display.say(f"stopped at step {state.step} of {steps} ({stopped}); it goes on with --resume, or resume=True")
    processes.any(False)  # nobody leaves before the files are written
    return stopped


def _make_model(
    folder: Path,
    kg: KnowledgeGraph,
    config: Config,
    custom: Custom,
    processes: Processes,
    start: RunFolder | None = None,
) -> tuple[Model, StepContext]:
    """A model of a run, fresh or from another one's weights, ready to be trained, and what its steps share."""
    training = config.training
    half = training.precision == "bfloat16" or (training.precision == "auto" and processes.device.type == "cuda")
    precision = torch.bfloat16 if half else torch.float32
    tf32 = training.precision == "tf32"
    context = StepContext(training.seed, precision, processes, tf32, folder / "checkpoints")
    torch.manual_seed(training.seed)  # of weights that a backbone may lack
    model = custom.make_model(kg, config, processes).to(processes.device)
    if start is not None:
        take_weights(model, start)
    model.prepare_training(context)
    return model, context


def _train_experts(
    run: RunFolder, custom: Custom, processes: Processes, display: Display, callbacks: Sequence[Callback]
) -> str | None:
    """The experts of a fused run one after the other, each a run of its own, then the mixture."""
    if names := custom.names():
        remedy = "train that expert by itself, then `satkgc fuse`"
        raise SatkgcError(f"a {next(iter(names))} of one's own for a fused run", remedy=remedy)
    assert isinstance(run.config.model, FusedConfig)
    check_fitted_on(run.kg, run.config.model.held_back)
    if not run.began:
        _estimate_experts(run, custom, processes, display)
    began, limit = time.monotonic(), run.config.training.max_minutes
    start = None if all(begun(run.folder / "experts" / name) for name in run.config.experts) else start_of(run)
    for place, (name, config) in enumerate(run.config.experts.items(), 1):
        title = f"expert {place} of {len(run.config.experts)}: {name}"
        display.say(title)
        if limit is not None:
            left = max(limit - (time.monotonic() - began) / 60, 1e-9)
            left = min(left, config.training.max_minutes or left)
            config = config.replace(training=config.training.replace(max_minutes=left))
        out = run.folder / "experts" / name
        origin = start.folder / "experts" / name if start is not None and begun(out) is None else None
        _, stopped = train_or_stop(
            run.kg, out=out, config=config, resume=True, from_run=origin, callbacks=callbacks, expert=title
        )
        if stopped is not None:
            return stopped
    stopped = fit_or_stop(run, processes.device, display) if processes.first else None
    processes.any(False)  # nobody leaves before the files are written
    return stopped


def _estimate_experts(run: RunFolder, custom: Custom, processes: Processes, display: Display) -> None:
    """Say what all experts will take; texts that are read for it are kept for the training."""
    kg, parts = run.kg, list[Estimate]()
    for name, config in run.config.experts.items():
        folder, steps = run.folder / "experts" / name, config.total_steps(len(kg.train))
        if steps < FEWEST:
            continue
        if processes.first:
            RunFolder.create(folder, config, kg, str(run.about["source"]))
        model, context = _make_model(folder, kg, config, custom, processes)
        if (part := estimate(model, config, context, steps)) is not None:
            parts.append(part)
    if parts:
        display.say(total(parts).line(faster_choice(run.config)))


def _finish(run: RunFolder, parts: Parts) -> str | None:
    """Measure and describe what was trained; returns what interrupted it, if anything did."""
    if parts.context.processes.world > 1:  # they share the measuring, and a signal ends them all
        finish(run, parts)
        return None
    with Interrupts(parts.display.say) as interrupts:
        interrupts.unless_signalled(lambda: finish(run, parts))
    return interrupts.signal


def _described(config: Config, custom: Mapping[str, str]) -> str:
    applied = "small graphs" if config.applied == "small" else config.applied
    how = "laid over it" if config.recipe in recipe_names() else "where it says nothing itself"
    laid = f", with the settings for {applied} {how}" if applied is not None else ""
    parts = "".join(f", {kind} {name}" for kind, name in custom.items())
    return f"recipe {config.recipe}{laid}{parts}"
