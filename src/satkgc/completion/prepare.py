"""What a run needs before it can answer: entity vectors in an index, a search over names, calibrated probabilities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.arrays import Float32
from satkgc.completion.calibration import Calibration, calibrate, draw_reliability, report_reliability, sample_queries
from satkgc.completion.engine import Engine
from satkgc.completion.index import Index, find_index
from satkgc.completion.names import Names
from satkgc.completion.retriever import Retriever, make_retriever
from satkgc.completion.search import EntitySearch
from satkgc.errors import SatkgcError
from satkgc.files import atomic_write
from satkgc.models import Model, Questions, TextModel, TextModelConfig, VectorModel, load_tokenizer
from satkgc.progress import progress_bar
from satkgc.text import Texts, Tokens
from satkgc.training import RunFolder

FORMAT = 2
CHUNK = {"cpu": 1024, "cuda": 65_536}  # entities encoded before they are written: enough to fill a GPU
SAMPLE = 1000  # training questions that an index is tuned on
TOKENS = "texts.safetensors"
OnProgress = Callable[[str], None]  # gets a line on how far it is


def prepare(run: Path, model: Model, index: str = "exact", on_progress: OnProgress = lambda line: None) -> Engine:
    """Encode all entities, index them and their names, calibrate; everything is written into the run folder.

    A model without vectors has no index: "exact" is what it does anyhow.
    """
    find_index(index)
    if index != "exact" and not isinstance(model, VectorModel):
        what = f"{type(model).__name__} has no vectors to put into the index {index!r}"
        raise SatkgcError(what, remedy="leave --index out: all entities are scored")
    kg, folder = model.kg, run / "index"
    folder.mkdir(exist_ok=True)
    (folder / "index.json").unlink(missing_ok=True)  # it is written last: a folder without it is not ready
    origin = {"format": FORMAT, **_origin(run, model, FORMAT)}
    if isinstance(model, TextModel):
        model.texts.tokens.save(folder / TOKENS)
    retriever = make_retriever(model, None)
    if isinstance(model, VectorModel):
        retriever = _build(folder, model, index, origin, on_progress)
    search = EntitySearch.build(kg.entities, kg.fact_adjacency.degree)
    search.save(folder)
    engine = Engine(Names(kg, search), retriever)
    on_progress("fitting the probabilities")
    engine.calibration = calibrate(engine)
    _write_calibration(run, engine.calibration)
    kind = index if isinstance(model, VectorModel) else None
    with atomic_write(folder / "index.json") as part:
        part.write_text(json.dumps({**origin, "kind": kind, "calibrated": engine.calibration.fitted}, indent=2) + "\n")
    return engine


def is_prepared(run: Path) -> bool:
    """Whether the run folder has a finished index."""
    return (run / "index" / "index.json").is_file()


def index_checksum(run: Path) -> str:
    """The checksum of the model that the run's index was made with."""
    return str(_facts(run).get("model"))


def load_model(run: RunFolder, device: str) -> Model:
    """A run's model, with the tokens that `prepare` kept of its texts."""
    config, file = run.config.model, run.folder / "index" / TOKENS
    kept = is_prepared(run.folder) and file.exists() and (run.folder / "model").is_dir()
    if not isinstance(config, TextModelConfig) or not kept:
        return run.model(device)
    try:
        tokens = Tokens.open(file)
    except (OSError, ValueError) as error:
        raise _damaged(run.folder, error) from error
    tokenizer = load_tokenizer(str(run.folder / "model" / "tokenizer"), config.encoder)
    return run.model(device, texts=Texts(run.kg, tokenizer, config.text, tokens))


def open_prepared(run: Path, model: Model) -> Engine:
    """Open what `prepare` wrote, if it belongs to this run's model and graph."""
    folder, kg = run / "index", model.kg
    facts = _facts(run)
    format, calibration = facts.get("format", 0), run / "calibration.json"
    index: Index | None = None
    try:
        search = EntitySearch.open(folder, kg.entities, kg.fact_adjacency.degree)
        if facts.get("calibrated") and not calibration.is_file():
            raise FileNotFoundError(f"no {calibration.name}")
        if isinstance(model, VectorModel):
            index = find_index(str(facts.get("kind"))).open(folder, model.device)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:  # the last from faiss
        raise _damaged(run, error) from error
    known = format in (1, FORMAT)
    wrong = [name for name, value in _origin(run, model, format).items() if facts.get(name) != value] if known else []
    if not known or wrong or (index is not None and len(index) != kg.num_entities):
        raise SatkgcError(
            f"the index does not belong to this run's {'model' if 'model' in wrong else 'graph'}",
            where=folder,
            remedy=f"make it anew with `satkgc prepare {run}`",
        )
    relations = facts.get("relations", {}) if format == 1 else None  # it was here, and is in calibration.json now
    return Engine(Names(kg, search), make_retriever(model, index), Calibration.load(calibration, relations))


def model_checksum(folder: Path, pattern: str = "**/*.safetensors") -> str:
    """One sha256 over the files of a model that hold weights: it changes whenever the scores would."""
    total = hashlib.sha256()
    weights = sorted(folder.glob(pattern))
    if not weights:
        raise SatkgcError("no weights of a model here", where=folder, remedy="give a run's model folder")
    for path in weights:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()} {digest}\n".encode())
    return total.hexdigest()


def _build(folder: Path, model: VectorModel, index: str, origin: dict[str, Any], on_progress: OnProgress) -> Retriever:
    """Encode all entities into a file, a chunk at a time, and make the index of it.

    Millions of entities need no more memory than a few, and what a process that was stopped has written is not encoded
    again.
    """
    kg = model.kg
    key = hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:16]
    file = folder / f"entities-{key}.part.npy"
    for other in folder.glob("entities*.part.npy"):
        if other != file:
            other.unlink()
    whole = file.exists() and file.stat().st_size > 4 * kg.num_entities * model.dim
    rows = np.lib.format.open_memmap(file, "r+" if whole else "w+", np.float32, (kg.num_entities, model.dim))
    size = CHUNK.get(model.device.type, CHUNK["cpu"])
    with progress_bar() as progress:
        task = progress.add_task("encoding entities", total=kg.num_entities)
        for start in range(0, kg.num_entities, size):
            on_progress(f"encoding the entities, {100 * start // kg.num_entities} %")
            stop = min(start + size, kg.num_entities)
            if not rows[stop - 1].any():  # a vector is never zero
                rows[start:stop] = model.encode_entities(np.arange(start, stop, dtype=np.int32))
            progress.advance(task, stop - start)
    rows.flush()
    del rows

    def sample() -> Float32:
        queries = np.array(sample_queries(kg, kg.train, SAMPLE), np.int32).reshape(-1, 2)
        return model.encode_questions(Questions(queries[:, 0], queries[:, 1]))

    built = find_index(index).build(folder, file, sample, model.device)
    file.unlink(missing_ok=True)  # of an index that has not moved it
    return make_retriever(model, built)


def _write_calibration(run: Path, calibration: Calibration) -> None:
    if calibration.fitted:
        calibration.save(run / "calibration.json")
    else:
        (run / "calibration.json").unlink(missing_ok=True)
    if calibration.entities is not None:
        draw_reliability(calibration.entities, run / "reliability.png")
        report_reliability(calibration.entities, run / "README.md")
    else:
        (run / "reliability.png").unlink(missing_ok=True)


def _damaged(run: Path, error: Exception) -> SatkgcError:
    remedy = f"make it anew with `satkgc prepare {run}`"
    return SatkgcError(f"the index is damaged ({error})", where=run / "index", remedy=remedy)


def _origin(run: Path, model: Model, format: int) -> dict[str, Any]:
    """What an index belongs to; format 1 left the weights of the loss out of the checksum."""
    return {
        "model": model_checksum(run / "model", "*/*.safetensors" if format == 1 else "**/*.safetensors"),
        "graph": model.kg.fingerprint,
        "entities": model.kg.num_entities,
        "dim": model.dim if isinstance(model, VectorModel) else None,
    }


def _facts(run: Path) -> dict[str, Any]:
    file = run / "index" / "index.json"
    try:
        facts = json.loads(file.read_text())
    except ValueError as error:
        raise SatkgcError("not an index", where=file, remedy="make it anew with `satkgc prepare`") from error
    return facts if isinstance(facts, dict) else {}
