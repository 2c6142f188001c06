"""The face of the package: train, evaluate, and a run that can be asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from satkgc.completion import Completer
from satkgc.evaluation import EvaluationConfig, Report
from satkgc.kg import KnowledgeGraph
from satkgc.training import (
    EXIT_CODES,
    Callback,
    Config,
    Custom,
    MakeLoss,
    MakeSampler,
    RunFolder,
)
from satkgc.training import fuse_or_stop as fuse_runs
from satkgc.training import train_or_stop as train_model


class Run(RunFolder):
    """A folder that `satkgc.train` or `satkgc train` wrote. It opens without the data it was trained on."""

    def completer(self, device: str = "auto") -> Completer:
        """Ask it questions."""
        return Completer.load(self.folder, device=device)


def train(
    kg: KnowledgeGraph | str | Path,
    recipe: str | os.PathLike[str] | None = None,
    out: str | Path | None = None,
    *,
    config: Config | None = None,
    overrides: Mapping[str, Any] | None = None,
    graph_settings: bool = True,
    resume: bool = False,
    from_run: str | os.PathLike[str] | None = None,
    sampler: MakeSampler | None = None,
    loss: MakeLoss | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train a model and return its run, which is also a folder, by default runs/GRAPH-RECIPE.

    `kg` is a graph or what `KnowledgeGraph.load` opens; `recipe` a name or a TOML file, or instead of it a typed
    `config`; `overrides` settings by dotted name, `{"training.epochs": 3}`. Unless `graph_settings` is false, the
    recipe's settings for a well-known graph are laid over it, and under what a TOML file of yours says itself. With
    `resume` a run that stopped goes on; one that never began, begins. `from_run` is a finished run whose weights it
    begins from, on a graph that has grown; without a recipe its settings are taken, for a third of its length.
    `sampler` and `loss` are classes of your own, or functions that make such; `callbacks` see every step.
    See docs/training.md.

    A finished run is prepared to be asked: entity vectors, index, probabilities. Ctrl-C, SIGTERM or a closed terminal
    lets the step end and saves, then ends the program as it would have; a run that reaches `training.max_minutes` is
    returned as it is, its `finished` false.
    """
    run, stopped = train_or_stop(
        kg,
        recipe,
        out,
        config=config,
        overrides=overrides,
        graph_settings=graph_settings,
        resume=resume,
        from_run=from_run,
        custom=Custom(sampler, loss),
        callbacks=callbacks,
    )
    _end_as(stopped)
    return run


def train_or_stop(kg: KnowledgeGraph | str | Path, *args: Any, **options: Any) -> tuple[Run, str | None]:
    """As `train`, but returns why the run stopped early, if it did, instead of ending the program."""
    folder, stopped = train_model(kg, *args, **options)
    run = Run(folder.folder, folder.config, folder.about)
    if stopped is None and os.environ.get("RANK", "0") == "0":
        _prepare(run, run.config.training.device)
    return run, stopped


def _prepare(run: Run, device: str) -> None:
    completer = run.completer(device)
    if not completer.calibrated:
        why = f"the model finds too few of the {len(completer.kg.valid):,} validation triples to fit them"
        print(f"note: answers have no probabilities: {why}; --valid 0.1 of kg import holds out more", file=sys.stderr)


def fuse(
    runs: Sequence[str | os.PathLike[str]],
    out: str | Path,
    *,
    held_back: float = 0.0,
    novelty: bool = False,
    device: str = "auto",
    resume: bool = False,
) -> Run:
    """Mix finished runs on one graph into a new run, which holds a copy of each: see docs/fusion.md.

    The weights are fitted on the validation triples; a share of these may be `held_back` from the fit, to measure it.
    With `novelty` they say how much more often the answer is an entity that an expert does not know.
    """
    run, stopped = fuse_or_stop(runs, out, held_back=held_back, novelty=novelty, device=device, resume=resume)
    _end_as(stopped)
    return run


def fuse_or_stop(
    runs: Sequence[str | os.PathLike[str]], out: str | Path, *, device: str = "auto", **options: Any
) -> tuple[Run, str | None]:
    """As `fuse`, but returns why it stopped early, if it did, instead of ending the program."""
    folder, stopped = fuse_runs(runs, out, device=device, **options)
    run = Run(folder.folder, folder.config, folder.about)
    if stopped is None:
        _prepare(run, device)
    return run, stopped


def _end_as(stopped: str | None) -> None:
    """End the program as the signal that stopped a run would have."""
    if stopped == "SIGINT":
        raise KeyboardInterrupt
    if stopped in ("SIGTERM", "SIGHUP"):
        raise SystemExit(EXIT_CODES[stopped])


def evaluate(
    run: RunFolder | Path | str,
    split: str = "test",
    config: EvaluationConfig | None = None,
    *,
    device: str = "auto",
    progress: bool = False,
    **settings: Any,
) -> Report:
    """Filtered ranks of a run, or of a run folder, on a split; `settings` are fields of `EvaluationConfig`.

    What is not set is as in `config`, and without one as the run was trained.
    """
    folder = RunFolder.load(run) if isinstance(run, str | Path) else run
    chosen = (config or folder.config.evaluation).replace(**settings)
    return folder.evaluate(split, chosen, device=device, progress=progress)
