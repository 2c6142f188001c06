"""What a run needs before it can answer: entity vectors in an index, a search over names, calibrated probabilities."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError

from satkgc.arrays import Float32, Int32
from satkgc.completion.calibration import Calibration, calibrate, draw_reliability, report_reliability, sample_queries
from satkgc.completion.candidates import WHOLE, CandidateRetriever
from satkgc.completion.engine import Engine
from satkgc.completion.index import Index, build_index, check_index, find_index
from satkgc.completion.info import CandidateRecall
from satkgc.completion.names import Names
from satkgc.completion.recall import load_recall, measure_recall, save_recall
from satkgc.completion.relations import COMPETITORS
from satkgc.completion.retriever import IndexRetriever, Retriever, make_retriever
from satkgc.completion.rows import PARTS, Rows
from satkgc.completion.search import EntitySearch
from satkgc.errors import SatkgcError
from satkgc.files import is_full, put_in_place
from satkgc.kg import RelationLogic, read_logic, write_logic
from satkgc.manifest import MANIFEST, Damaged, check_folder, read_manifest, sha256, total, write_manifest
from satkgc.models import EncoderModel, EncoderModelConfig, FusedModel, Model, Questions, VectorModel, load_tokenizer
from satkgc.progress import progress_bar
from satkgc.text import Texts, Tokens
from satkgc.training import RunFolder

FORMAT = 3
CHUNK = {"cpu": 1024, "cuda": 65_536}  # entities encoded before they are written: enough to fill a GPU
SAMPLE = 1000  # training questions that an index is tuned on
TOKENS = "texts.safetensors"
CALIBRATION = "calibration.json"
CANDIDATES = "candidates.json"  # of a fused model on a large graph: that it answers from candidates, and their recall
LOGIC = "relations.toml"  # what relations mean: written once, and a person's from then on
WORK = ".index.partial"  # beside the index, and in its place once it is whole
SHARDS = "shards"  # of vectors that were encoded elsewhere, in the same folder
OnProgress = Callable[[str], None]  # gets a line on how far it is
Encode = Callable[[Path, str, Sequence[range]], Iterator[tuple[int, Float32]]]
"""Gets a folder of its own, a key of model and graph, and chunks of entities; gives each chunk's first, and vectors."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A run that can answer."""

    run: Path
    engine: Engine


def prepare(
    run: Path,
    model: Model,
    index: str = "exact",
    on_progress: OnProgress = lambda line: None,
    uri: str | None = None,
    before: Prepared | None = None,
    encode: Encode | None = None,
) -> Engine:
    """Encode all entities, index them and their names, calibrate; everything is written into the run folder, but the
    vectors to a server where `uri` has its address.

    An index that is there stays until the new one is whole. One that was stopped goes on where it was. A model without
    vectors has no index: "exact" is what it does anyhow. Of a model that has grown from that of a run `before`, only
    what changed is encoded; probabilities, and what candidates miss, are as they were measured then.
    """
    check_index(index, uri)
    if index != "exact" and not isinstance(model, VectorModel):
        what = f"{type(model).__name__} has no vectors to put into the index {index!r}"
        raise SatkgcError(what, remedy="leave --index out: all entities are scored")
    with _writing(run, on_progress):
        return _prepare(run, model, index, on_progress, uri, before, encode)


def _prepare(
    run: Path,
    model: Model,
    index: str,
    on_progress: OnProgress,
    uri: str | None,
    before: Prepared | None,
    encode: Encode | None,
) -> Engine:
    kg, folder = model.kg, run / WORK
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and (path.name != SHARDS or encode is None):
            shutil.rmtree(path)
        elif path.is_file() and not path.name.endswith(PARTS):
            path.unlink()
    origin = {"format": FORMAT, **_origin(run, model, FORMAT)}
    for text_model, name in _text_models(model):
        text_model.texts.tokens.save(folder / name)
    recall = None if before is None else candidate_recall(before.run)
    listed = _listed(model, recall, large=before is None and kg.num_entities > WHOLE)
    retriever = listed or make_retriever(model, None)
    if isinstance(model, VectorModel):
        encode = encode or _encode_here(model, None if before is None else before.engine)
        retriever = _build(folder, model, index, origin, on_progress, uri, encode)
    search = EntitySearch.build(kg.entities, kg.fact_adjacency.degree)
    search.save(folder)
    engine = Engine(Names(kg, search), retriever, logic=_kept_logic(run, model))
    if before is None:
        on_progress("fitting the probabilities")
    engine.calibration = calibrate(engine) if before is None else before.engine.calibration
    if engine.calibration.fitted:
        engine.calibration.save(folder / CALIBRATION)
    if listed is not None:
        if recall is None:
            on_progress("measuring what the candidates miss")
            recall = measure_recall(engine, listed)
        save_recall(recall, folder / CANDIDATES)
    kind = index if isinstance(model, VectorModel) else None
    facts = {**origin, "kind": kind, "calibrated": engine.calibration.fitted}
    (folder / "index.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    write_manifest(folder)
    put_in_place(folder, run / "index")
    (run / CALIBRATION).unlink(missing_ok=True)  # where earlier versions had it
    if before is None:
        _show_reliability(run, engine.calibration)
    if not (run / LOGIC).exists():
        write_logic(kg, engine.logic, run / LOGIC)
    return engine


def _kept_logic(run: Path, model: Model) -> list[RelationLogic] | None:
    """What the run's file says that relations mean; an older run has none."""
    return read_logic(model.kg, run / LOGIC, whole=True) if (run / LOGIC).exists() else None


@contextmanager
def _writing(run: Path, on_progress: OnProgress) -> Iterator[None]:
    """One process at a time; what the disk refuses is one line."""
    lock = FileLock(run / ".prepare.lock")
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            on_progress("waiting for another process that prepares this run")
            lock.acquire()
        except NotImplementedError:  # so filelock before 4 says of a file system without locks
            pass
        yield
    except (OSError, SafetensorError) as error:
        if is_full(error):
            remedy = f"make room and run `satkgc prepare {run}`: what was encoded is kept"
            raise SatkgcError("the disk is full; the run is as it was", where=run, remedy=remedy) from error
        reason = getattr(error, "strerror", None) or error
        remedy = "prepare it in a place that can be written, and copy the run from there"
        raise SatkgcError(
            f"what the run needs to answer cannot be written ({reason})", where=run, remedy=remedy
        ) from error
    finally:
        lock.release()


def is_prepared(run: Path) -> bool:
    """Whether the run folder has a finished index."""
    return (run / "index" / "index.json").is_file()


def index_kind(run: Path) -> str:
    """The index that a prepared run has; "exact" where there is none."""
    return str(_facts(run).get("kind") or "exact")


def index_checksum(run: Path) -> str:
    """The checksum of the model that the run's index was made with."""
    return str(_facts(run).get("model"))


def load_model(run: RunFolder, device: str, folder: str = "index") -> Model:
    """A run's model, with the tokens that `prepare` kept of its texts."""
    if not run.config.experts:
        return run.model(device, **_kept_texts(run, run, TOKENS, folder))
    experts = {
        name: expert.model_on(run.kg, device, **_kept_texts(run, expert, f"{name}-{TOKENS}", folder))
        for name, expert in run.experts.items()
    }
    return run.model(device, experts=experts)


def _kept_texts(run: RunFolder, part: RunFolder, name: str, folder: str) -> dict[str, Texts]:
    """What a run, or an expert of it, need not tokenise again."""
    config, file = part.config.model, run.folder / folder / name
    kept = (is_prepared(run.folder) or folder == WORK) and file.exists() and (part.folder / "model").is_dir()
    if not isinstance(config, EncoderModelConfig) or not kept:
        return {}
    try:
        tokens = Tokens.open(file)
    except (OSError, ValueError) as error:
        raise _damaged(run.folder, error) from error
    tokenizer = load_tokenizer(str(part.folder / "model" / "tokenizer"), config.encoder)
    return {"texts": Texts(run.kg, tokenizer, config.text, tokens)}


def _text_models(model: Model) -> Iterator[tuple[EncoderModel, str]]:
    """The models in a model that read texts, each with the file of its tokens."""
    if isinstance(model, FusedModel):
        for name in model.names:
            yield from ((part, f"{name}-{file}") for part, file in _text_models(model.expert(name)))
    elif isinstance(model, EncoderModel):
        yield model, TOKENS


def open_prepared(run: Path, model: Model) -> Engine:
    """Open what `prepare` wrote, if it belongs to this run's model and graph."""
    folder, kg = run / "index", model.kg
    facts = _facts(run)
    format = facts.get("format", 0)
    calibration = (folder if format == FORMAT else run) / CALIBRATION
    index: Index | None = None
    try:
        if format == FORMAT:  # earlier versions wrote no sums
            check_folder(folder)
        search = EntitySearch.open(folder, kg.entities, kg.fact_adjacency.degree)
        if facts.get("calibrated") and not calibration.is_file():
            raise FileNotFoundError(f"no {calibration.name}")
        if isinstance(model, VectorModel):
            index = find_index(str(facts.get("kind"))).open(folder, model.device)
    except Damaged as error:
        raise _damaged(run, error.what) from error
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:  # the last from faiss
        raise _damaged(run, error) from error
    known = format in (1, 2, FORMAT)
    wrong = [name for name, value in _origin(run, model, format).items() if facts.get(name) != value] if known else []
    if not known or wrong or (index is not None and len(index) != kg.num_entities):
        raise SatkgcError(
            f"the index does not belong to this run's {'model' if {'model', 'dim'} & set(wrong) else 'graph'}",
            where=folder,
            remedy=f"make it anew with `satkgc prepare {run}`",
        )
    relations = facts.get("relations", {}) if format == 1 else None  # it was here, and is in calibration.json now
    retriever = _listed(model, candidate_recall(run)) or make_retriever(model, index)
    parts = retriever, Calibration.load(calibration, relations)
    return Engine(Names(kg, search), *parts, logic=_kept_logic(run, model))


def _listed(model: Model, recall: CandidateRecall | None, *, large: bool = False) -> CandidateRetriever | None:
    """Of a fused model on a large graph; candidates are as many as they were when its probabilities were fitted."""
    if not isinstance(model, FusedModel) or not (large or recall is not None):
        return None
    return CandidateRetriever(model) if recall is None else CandidateRetriever(model, recall.listed, recall.near)


def prepare_facts(engine: Engine, run: Path, index: str) -> dict[str, Any]:
    """What was measured when a run was prepared."""
    facts: dict[str, Any] = {"entities": len(engine.retriever)}
    if isinstance(engine.retriever, IndexRetriever):
        facts |= {"dim": engine.retriever.model.dim, "index": index, **engine.retriever.index.facts}
    if (recall := candidate_recall(run)) is not None:
        facts |= {"candidates of a question": recall.candidates, "right answers among them": recall.right}
        facts |= {"first answers of whole scores among them": recall.first, "first ten": recall.first_ten}
        facts |= {"same first answer": recall.same_first}
    entities, relations = engine.calibration.entities, engine.calibration.relations
    if entities is not None:
        facts |= {"calibration questions": entities.questions}
        facts |= {"calibration error": entities.ece, "of first answers": entities.ece_first}
    if relations.questions:
        facts["relation questions"] = relations.questions
        facts[f"right relation first of {min(COMPETITORS, engine.kg.num_relations)}"] = relations.first
    return facts


def candidate_recall(run: Path) -> CandidateRecall | None:
    """What the candidates of a prepared run miss; None where all entities are scored."""
    file = run / "index" / CANDIDATES
    return load_recall(file) if file.is_file() else None


def model_checksum(folder: Path, pattern: str = "**/*.safetensors") -> str:
    """One sha256 over the files of a model, those that hold weights among them: it changes whenever scores would."""
    paths = [path for path in folder.glob(pattern) if path.is_file()]
    if not any(path.suffix == ".safetensors" for path in paths):
        raise SatkgcError("no weights of a model here", where=folder, remedy="give a run's model folder")
    return total({path.relative_to(folder).as_posix(): sha256(path) for path in paths})


def _encode_here(model: VectorModel, before: Engine | None) -> Encode:
    """One chunk after the other, by this process; entities that are as they were have their vectors in the index
    before."""
    old = None if before is None else before.retriever.vectors
    everyone = np.arange(model.kg.num_entities, dtype=np.int32)
    changed = everyone if old is None else model.changed_entities(old.model)

    def encode(entities: Int32) -> Float32:
        new = np.isin(entities, changed)
        vectors = np.empty((len(entities), model.dim), np.float32)
        if old is not None:
            vectors[~new] = old.index.fetch(entities[~new])
        if new.any():
            vectors[new] = model.encode_entities(entities[new])
        return vectors

    def chunks(folder: Path, key: str, todo: Sequence[range]) -> Iterator[tuple[int, Float32]]:
        return ((chunk.start, encode(np.array(chunk, np.int32))) for chunk in todo)

    return chunks


def _build(
    folder: Path,
    model: VectorModel,
    index: str,
    origin: dict[str, Any],
    on_progress: OnProgress,
    uri: str | None,
    encode: Encode,
) -> Retriever:
    """Encode all entities into a file, a chunk at a time, and make the index of it.

    Millions of entities need no more memory than a few, and what a process that was stopped has written is not encoded
    again.
    """
    kg = model.kg
    key = hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:16]
    size = CHUNK.get(model.device.type, CHUNK["cpu"])
    chunks = [range(start, min(start + size, kg.num_entities)) for start in range(0, kg.num_entities, size)]
    with progress_bar() as progress, Rows(folder, key, kg.num_entities, model.dim) as rows:
        task = progress.add_task("encoding entities", total=kg.num_entities)
        todo = [chunk for chunk in chunks if not rows.has(chunk.start, chunk.stop)]
        done = kg.num_entities - sum(map(len, todo))
        progress.advance(task, done)
        for start, vectors in encode(folder / SHARDS, key, todo):
            rows.put(start, vectors)
            done += len(vectors)
            progress.advance(task, len(vectors))
            on_progress(f"encoding the entities, {100 * done // kg.num_entities} %")

    def sample() -> Float32:
        queries = np.array(sample_queries(kg, kg.train, SAMPLE), np.int32).reshape(-1, 2)
        return model.encode_questions(Questions(queries[:, 0], queries[:, 1]))

    built = build_index(index, folder, rows.file, sample, model.device, uri)
    rows.remove()
    shutil.rmtree(folder / SHARDS, ignore_errors=True)
    return make_retriever(model, built)


def _show_reliability(run: Path, calibration: Calibration) -> None:
    if calibration.entities is not None:
        draw_reliability(calibration.entities, run / "reliability.png")
        report_reliability(calibration.entities, run / "README.md")
    else:
        (run / "reliability.png").unlink(missing_ok=True)


def _damaged(run: Path, error: Exception | str) -> SatkgcError:
    remedy = f"make it anew with `satkgc prepare {run}`"
    return SatkgcError(f"the index is damaged ({error})", where=run / "index", remedy=remedy)


def _origin(run: Path, model: Model, format: int) -> dict[str, Any]:
    """What an index belongs to; format 1 left the weights of the loss out of the checksum, format 2 the tokenizer."""
    folder, pattern = run / "model", {1: "*/*.safetensors", 2: "**/*.safetensors"}.get(format, "**/*")
    known = pattern == "**/*" and (folder / MANIFEST).exists()  # and was checked when the model was opened
    return {
        "model": total(read_manifest(folder)) if known else model_checksum(folder, pattern),
        "graph": model.kg.fingerprint,
        "entities": model.kg.num_entities,
        "dim": model.dim if isinstance(model, VectorModel) else None,
    }


def _facts(run: Path) -> dict[str, Any]:
    file = run / "index" / "index.json"
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("no object")
    except ValueError as error:
        raise SatkgcError("not an index", where=file, remedy="make it anew with `satkgc prepare`") from error
    return facts
