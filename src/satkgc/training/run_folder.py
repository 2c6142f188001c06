"""A run folder: what training writes, and the one call that opens it again."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from satkgc import files
from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, Report, evaluate
from satkgc.kg import DECISIONS, KnowledgeGraph
from satkgc.manifest import MANIFEST, check_folder, read_json, read_manifest, total, write_json
from satkgc.models import FUSION, MODELS, Model
from satkgc.processes import Processes, find_device
from satkgc.settings import build
from satkgc.training.config import ALIASES, Config
from satkgc.training.format_1 import config_of_format_1
from satkgc.training.log import Record, read_log
from satkgc.version import __version__

FORMAT = 2


@dataclass(frozen=True, repr=False)
class RunFolder:
    """A folder that `train` wrote; everything in it loads without the data it was trained on."""

    folder: Path
    config: Config
    about: dict[str, Any]  # the rest of config.json: versions, commit, source, names of the user's own parts

    def __fspath__(self) -> str:
        return str(self.folder)  # so that a run does wherever its folder would

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        return f"{type(self).__name__}({str(self.folder)!r}: recipe {self.config.recipe}, {state})"

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a run folder; those of the format before this one are read as well."""
        folder = Path(folder)
        file = folder / "config.json"
        try:
            about = read_json(file)
            number = about["format"]
        except FileNotFoundError as error:
            raise SatkgcError("no run here", where=folder, remedy="give a folder that `satkgc train` wrote") from error
        except (ValueError, KeyError, TypeError) as error:
            raise SatkgcError("not the config.json of a run", where=file) from error
        if number not in (1, FORMAT):
            raise SatkgcError(
                f"this run has format {number}, written by satkgc {about.get('version')}; this version reads {FORMAT}",
                where=folder,
                remedy="open it with that version, or train it again",
            )
        if not isinstance(tree := about.pop("config", None), dict):
            raise SatkgcError("not the config.json of a run", where=file)
        if number == 1:
            tree = config_of_format_1(tree)
        return cls(folder, build(Config, tree, where=file, aliases=ALIASES), about)

    @classmethod
    def create(
        cls, folder: Path, config: Config, kg: KnowledgeGraph, source: str, custom: Mapping[str, Any] | None = None
    ) -> Self:
        """Start a run folder: the graph first, config.json last, so that a folder with one has the other."""
        files.make_folder(folder)
        if kg.path is None or kg.path.resolve() != _graph_of_whole(folder).resolve():
            kg.save(folder / "graph", overwrite=True)
        about = {
            "format": FORMAT,
            "version": __version__,
            "commit": _commit(),
            "built_on": _built_on(),
            "source": source,
            **(custom or {}),
        }
        run = cls(folder, config, about)
        run.write_config()
        return run

    @property
    def began(self) -> bool:
        """Whether it has got anywhere."""
        log, steps = self.folder / "log.jsonl", (self.folder / "checkpoints").glob("step-*")
        own = (self.folder / "model").exists() or any(steps) or (log.exists() and log.stat().st_size > 0)
        return own or any(expert.began for expert in self.experts.values())

    def discard(self) -> None:
        """Take back what `create` wrote, and the folder if nothing else is in it."""
        for name in ("config.json", "log.jsonl", "tracker.json", DECISIONS, ".lock"):
            (self.folder / name).unlink(missing_ok=True)
        for name in ("graph", "checkpoints", "tensorboard", "wandb", "experts"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()

    def write_config(self) -> None:
        """Write config.json anew."""
        content = {**self.about, "format": FORMAT, "config": self.config.model_dump()}
        write_json(self.folder / "config.json", content)

    @cached_property
    def kg(self) -> KnowledgeGraph:
        """The graph it was trained on; an expert of a fused run has that of the whole."""
        own, whole = self.folder / "graph", _graph_of_whole(self.folder)
        return KnowledgeGraph.load(whole if not own.exists() and whole.exists() else own)

    @property
    def updates(self) -> list[dict[str, Any]]:
        """What it has taken in since it was trained, one note each."""
        return list(self.about.get("updates", ()))

    @property
    def experts(self) -> dict[str, RunFolder]:
        """The runs that a fused run is made of, those that are there; none of any other."""
        folders = {name: self.folder / "experts" / name for name in self.config.experts}
        return {name: RunFolder.load(path) for name, path in folders.items() if (path / "config.json").exists()}

    def model(self, device: str = "auto", **options: Any) -> Model:
        """The trained model; `options` are those of its `load`, such as texts that were tokenised before."""
        if self.config.experts and "experts" not in options:
            options["experts"] = {name: run.model_on(self.kg, device) for name, run in self.experts.items()}
        model = self.model_on(self.kg, device, **options)
        if self.config.experts:
            self._check_experts()
        return model

    def model_on(self, kg: KnowledgeGraph, device: str = "auto", **options: Any) -> Model:
        """The trained model over its graph where that is open already: the experts of a fused run share one."""
        folder = self.folder / "model"
        if not folder.is_dir():
            raise SatkgcError("this run has no model yet", where=self.folder, remedy="finish it with --resume")
        if (folder / MANIFEST).exists():  # earlier versions wrote none
            check_folder(folder, remedy="copy the run again, or train it anew")
        kind = MODELS[self.config.model.kind]
        return kind.load(folder, kg, self.config.model, find_device(device), **options)

    def _check_experts(self) -> None:
        """Refuse experts that are not those which the mixture was fitted to."""
        fusion = json.loads((self.folder / "model" / FUSION).read_text(encoding="utf-8"))["experts"]
        for name, expert in self.experts.items():
            if fusion[name].get("model") != model_sum(expert):
                what = f"the mixture was fitted to another model than {name} is now"
                raise SatkgcError(what, where=expert.folder, remedy="copy the run again, or fuse it anew")

    def evaluate(
        self,
        split: str = "test",
        config: EvaluationConfig | None = None,
        *,
        device: str = "auto",
        progress: bool = False,
    ) -> Report:
        """Rank a split's triples, by the run's own settings of evaluation unless others are given.

        Under torchrun the processes share the work, and each gets the whole report.
        """
        processes, config = Processes.join(device), config or self.config.evaluation
        return evaluate(self.model(device), self.kg, split, config, progress=progress, processes=processes)

    @property
    def metrics(self) -> dict[str, Any]:
        """What was measured on the validation triples, once the run is finished."""
        file = self.folder / "metrics.json"
        try:
            return read_json(file)
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise SatkgcError(f"not the metrics of a run ({error})", where=file, remedy="copy the run again") from error

    @property
    def finished(self) -> bool:
        """Whether it was trained to its end."""
        return bool(self.metrics.get("finished"))

    def log(self) -> list[Record]:
        """Every line of the run's log."""
        return read_log(self.folder / "log.jsonl")


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep a run folder to this process; the lock goes with the process, however it ends."""
    lock = FileLock(files.make_folder(folder) / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        remedy = "wait for it, end it, or choose another --out"
        raise SatkgcError("another process is at work on this run", where=folder, remedy=remedy) from error
    except NotImplementedError:  # so filelock before 4 says of a file system without locks
        pass
    try:
        yield
    finally:
        lock.release()


def model_sum(run: RunFolder) -> str:
    """One sum over a run's model; its manifest was checked when it was opened."""
    return total(read_manifest(run.folder / "model"))


def _graph_of_whole(expert: Path) -> Path:
    """Where the graph lies of the fused run whose expert a folder would be: RUN/graph for RUN/experts/NAME."""
    return expert.absolute().parent.parent / "graph"


def _commit() -> str | None:
    """The commit of the program, where it runs from a checkout; a copy of one says so in SATKGC_COMMIT."""
    if commit := os.environ.get("SATKGC_COMMIT"):
        return commit
    here = Path(__file__)
    try:
        _git(here, "ls-files", "--error-unmatch", here.name)  # or it is a copy that lies in somebody's repository
        return _git(here, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(file: Path, *command: str) -> str:
    done = subprocess.run(["git", *command], cwd=file.parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _built_on() -> dict[str, str]:
    versions = {}
    for name in ("torch", "transformers", "numpy", "numba"):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
