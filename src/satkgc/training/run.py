"""A run folder: what training writes, and the one call that opens it again."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from satkgc import files
from satkgc.errors import SatkgcError
from satkgc.evaluation import EvaluationConfig, Report, evaluate
from satkgc.kg import KnowledgeGraph
from satkgc.models.text import Towers
from satkgc.processes import Processes
from satkgc.text import Texts, Tokens
from satkgc.training.config import Config
from satkgc.training.log import Record, read_log
from satkgc.training.settings import build

FORMAT = 1


@dataclass(frozen=True)
class Run:
    """A folder that `train` wrote; everything in it loads without the data it was trained on."""

    folder: Path
    config: Config
    about: dict[str, Any]  # the rest of config.json: versions, commit, source, names of the user's own parts

    def __fspath__(self) -> str:
        return str(self.folder)  # so that a run does wherever its folder would

    @classmethod
    def load(cls, folder: str | Path) -> Run:
        """Open a run folder."""
        folder = Path(folder)
        file = folder / "config.json"
        try:
            about = json.loads(file.read_text(encoding="utf-8"))
            found = about["format"]
        except FileNotFoundError as error:
            raise SatkgcError("no run here", where=folder, remedy="give a folder that `satkgc train` wrote") from error
        except (ValueError, KeyError, TypeError) as error:
            raise SatkgcError("not the config.json of a run", where=file) from error
        if found != FORMAT:
            raise SatkgcError(
                f"this run has format {found}, written by satkgc {about.get('version')}; this version reads {FORMAT}",
                where=folder,
                remedy="open it with that version, or train it again",
            )
        if not isinstance(config := about.pop("config", None), dict):
            raise SatkgcError("not the config.json of a run", where=file)
        return cls(folder, build(Config, config, where=file), about)

    @classmethod
    def create(
        cls, folder: Path, config: Config, kg: KnowledgeGraph, source: str, own: Mapping[str, str] | None = None
    ) -> Run:
        """Start a run folder: the graph first, config.json last, so that a folder with one has the other."""
        folder.mkdir(parents=True, exist_ok=True)
        kg.save(folder / "graph", overwrite=True)
        about = {
            "format": FORMAT,
            "version": _version(),
            "commit": _commit(),
            "built_on": _built_on(),
            "source": source,
            **(own or {}),
        }
        run = cls(folder, config, about)
        run.write_config()
        return run

    @property
    def began(self) -> bool:
        """Whether it has got anywhere."""
        log, steps = self.folder / "log.jsonl", (self.folder / "checkpoints").glob("step-*")
        return (self.folder / "model").exists() or any(steps) or (log.exists() and log.stat().st_size > 0)

    def discard(self) -> None:
        """Take back what `create` wrote, and the folder if nothing else is in it."""
        for name in ("config.json", "log.jsonl", ".lock"):
            (self.folder / name).unlink(missing_ok=True)
        for name in ("graph", "checkpoints", "tensorboard"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            self.folder.rmdir()

    def write_config(self) -> None:
        """Write config.json anew."""
        write_json(self.folder / "config.json", {**self.about, "config": asdict(self.config)})

    @cached_property
    def kg(self) -> KnowledgeGraph:
        """The graph it was trained on."""
        return KnowledgeGraph.load(self.folder / "graph")

    def towers(self, device: Any = "cpu", **overrides: Any) -> Towers:
        """The trained model; `overrides` are settings of the encoder that need no training, such as `compile`."""
        if not (self.folder / "model").is_dir():
            raise SatkgcError("this run has no model yet", where=self.folder, remedy="finish it with --resume")
        return Towers.load(self.folder / "model", device, **overrides)

    def texts(self, towers: Towers | None = None, tokens: Tokens | None = None) -> Texts:
        """The graph's texts as the model reads them; `tokens` of the same run spare making them again."""
        return Texts(self.kg, (towers or self.towers()).tokenizer, self.config.text, tokens)

    def evaluate(
        self,
        split: str = "test",
        config: EvaluationConfig | None = None,
        *,
        device: str = "auto",
        progress: bool = False,
    ) -> Report:
        """Rank a split's triples, by the run's own settings of evaluation unless others are given."""
        towers = self.towers(Processes.join(device).device)
        config = config or self.config.evaluation
        return evaluate(towers, self.texts(towers), self.kg, split, config, progress=progress)

    def completer(self, device: str = "cpu") -> Any:
        """Ask it questions: see `satkgc.completion.Completer`."""
        # By name, since completion stands above training and nothing here may depend on it.
        return importlib.import_module("satkgc.completion").Completer.load(self.folder, device=device)

    @property
    def metrics(self) -> dict[str, Any]:
        """What was measured on the validation triples, once the run is finished."""
        file = self.folder / "metrics.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    @property
    def finished(self) -> bool:
        """Whether it was trained to its end."""
        return bool(self.metrics.get("finished"))

    def log(self) -> list[Record]:
        """Every line of the run's log."""
        return read_log(self.folder / "log.jsonl")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a run folder to this process; the lock goes with the process, however it ends."""
    lock = FileLock(files.make_folder(folder) / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        remedy = "wait for it, end it, or choose another --out"
        raise SatkgcError("another process is training this run", where=folder, remedy=remedy) from error
    except NotImplementedError:  # so filelock before 4 says of a file system without locks
        pass
    try:
        yield
    finally:
        lock.release()


def write_json(file: Path, content: Any) -> None:
    """Write a JSON file, all or nothing."""
    with files.atomic_write(file) as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def replace_folder(new: Path, old: Path) -> None:
    """Put a new folder in the place of an old one; a kill in between leaves one of them under its name or the next."""
    aside = old.with_name(f".{old.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        os.replace(old, aside)
    os.replace(new, old)
    shutil.rmtree(aside, ignore_errors=True)


def _version() -> str:
    return str(importlib.import_module("satkgc").__version__)


def _commit() -> str | None:
    """The commit of the program, where it runs from a checkout; a copy of one may be told by SATKGC_COMMIT."""
    if told := os.environ.get("SATKGC_COMMIT"):
        return told
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
    found = {}
    for name in ("torch", "transformers", "numpy", "numba"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
