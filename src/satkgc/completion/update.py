"""A run takes in what is new in its graph without training: the old run, or the new one whole, at any moment."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from satkgc.completion.engine import Engine
from satkgc.completion.index import MilvusIndex
from satkgc.completion.prepare import (
    OnProgress,
    Prepared,
    index_kind,
    is_prepared,
    load_model,
    open_prepared,
    prepare,
)
from satkgc.completion.retriever import IndexRetriever
from satkgc.errors import SatkgcError
from satkgc.files import atomic_folder, make_folder
from satkgc.kg import DECISIONS, Growth, KnowledgeGraph, grow, read_more, refuse_mistyped
from satkgc.manifest import write_manifest
from satkgc.models import FUSION, FusedModel, Model, Questions
from satkgc.training import RunFolder, exclusive, model_sum

# What is not copied: made anew, of a graph that is no more, or of a process that works on the run.
LEFT_OUT = ("graph", "index", "model", "checkpoints", ".*")
SHOWN = 3  # names in a message


@dataclass(frozen=True, eq=False)
class RunUpdate:
    """What an update took in, what of it some model knows nothing of, and the run that has it."""

    run: Path
    growth: Growth
    unknown: tuple[str, ...]  # a line each
    version: int


def update_run(
    run: str | os.PathLike[str],
    sources: Sequence[str | Path],
    *,
    out: str | os.PathLike[str] | None = None,
    correct: bool = False,
    new_relations: bool = False,
    device: str = "auto",
    on_progress: OnProgress = lambda line: None,
    **options: Any,
) -> RunUpdate:
    """Take new entities, triples and texts into a run's graph, and encode what changed; `options` are those of reading.

    The run is replaced in one step when all is done, or, with `out`, stays as it is beside the new one.
    """
    folder = Path(run).resolve()  # a link to a run stays a link
    target = folder if out is None else Path(os.path.abspath(out))
    if target != folder and target.exists():
        raise SatkgcError("this place is taken", where=target, remedy="choose another --out")
    make_folder(target.parent)
    more = read_more(sources, options)
    with exclusive(folder):
        old = RunFolder.load(folder)
        if not old.finished:
            raise SatkgcError("this run is not finished", where=folder, remedy="finish it with --resume")
        shown = ", ".join(map(str, sources or options.get("entities", ())))
        growth = grow(old.kg, more, correct=correct, new_relations=new_relations, shown=shown)
        refuse_mistyped(old.kg, more, sources, options)
        version = 1 + len(old.updates)
        if not growth:
            return RunUpdate(folder, growth, (), version)
        model = load_model(old, device)
        before = Prepared(folder, _engine(folder, model, on_progress))
        with atomic_folder(target) as part:
            if target == folder and not (folder / DECISIONS).exists():
                (folder / DECISIONS).touch()  # the first may be made meanwhile, too
            shutil.copytree(folder, part, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            if target == folder:  # another process may decide meanwhile
                (part / DECISIONS).unlink()
                _link(folder / DECISIONS, part / DECISIONS)
            kg = growth.kg.save(part / "graph")
            on_progress("encoding what changed")
            grown = model.grow(kg)
            new = RunFolder(part, old.config, _noted(old, growth, sources))
            _save(grown, old, new)
            new.write_config()
            prepare(part, grown, index_kind(folder), on_progress, _server(before.engine), before)
        unknown = tuple(_unknown(grown, old.kg))
    return RunUpdate(target, replace(growth, kg=kg), unknown, version + 1)


def _engine(run: Path, model: Model, on_progress: OnProgress) -> Engine:
    return open_prepared(run, model) if is_prepared(run) else prepare(run, model, on_progress=on_progress)


def _server(engine: Engine) -> str | None:
    """Where the index lives, if that is elsewhere; it is a collection of its own there."""
    index = engine.retriever.index if isinstance(engine.retriever, IndexRetriever) else None
    return index.collection.uri if isinstance(index, MilvusIndex) else None


def _noted(old: RunFolder, growth: Growth, sources: Sequence[str | Path]) -> dict[str, Any]:
    """What config.json keeps, the updates with it."""
    counts = {name: getattr(growth, name) for name in ("entities", "relations", "triples", "texts")}
    note = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "sources": [str(s) for s in sources], **counts}
    return {**old.about, "updates": [*old.updates, note]}


def _save(model: Model, old: RunFolder, new: RunFolder) -> None:
    """A grown model; files that are the same as before are shared with the old run."""
    if not isinstance(model, FusedModel):
        if model.entity_rows or model.relation_rows:
            model.save(new.folder / "model")
            write_manifest(new.folder / "model")
        else:
            shutil.copytree(old.folder / "model", new.folder / "model", copy_function=_link)
        return
    for name, expert in old.experts.items():
        _save(model.expert(name), expert, RunFolder(new.folder / "experts" / name, expert.config, expert.about))
    model.save(new.folder / "model")
    fusion = json.loads((old.folder / "model" / FUSION).read_text(encoding="utf-8"))
    for name, expert in new.experts.items():
        fusion["experts"][name]["model"] = model_sum(expert)
    text = json.dumps(fusion, indent=1, ensure_ascii=False) + "\n"
    (new.folder / "model" / FUSION).write_text(text, encoding="utf-8")
    write_manifest(new.folder / "model")


def _link(source: str | Path, target: str | Path) -> None:
    """Another name for a file that is never written again, or appended to under either; a copy where there are none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _unknown(model: Model, before: KnowledgeGraph) -> Iterator[str]:
    """What of the new entities and relations some model knows nothing of, and who answers instead."""
    parts = {name: model.expert(name) for name in model.names} if isinstance(model, FusedModel) else {"": model}
    kg, ignorant = model.kg, dict[str, list[str]]()
    for name, part in parts.items():
        known = part.knows_entities()
        entities = np.flatnonzero(~known[before.num_entities :]) + before.num_entities
        if len(entities):
            ids = ", ".join(repr(kg.entities.id(i)) for i in entities[:SHOWN].tolist())
            what = f"{len(entities):,} new {'entity' if len(entities) == 1 else 'entities'}"
            ignorant.setdefault(f"{what} ({ids}{', …' if len(entities) > SHOWN else ''})", []).append(name)
        some = np.flatnonzero(known)[:1].astype(np.int32)
        for relation in range(before.num_relations, kg.num_relations):
            if not part.knows_questions(Questions(some, np.full(len(some), relation, np.int32))).any():
                ignorant.setdefault(f"the new relation {kg.relations.id(relation)!r}", []).append(name)
    for what, names in ignorant.items():
        others = [name for name in parts if name not in names]
        who = ", ".join(filter(None, names)) or type(model).__name__
        yield f"{who}: nothing is learnt of {what} until it is trained; {_answers(others)}"


def _answers(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'answers' if len(names) == 1 else 'answer'}" if names else "nobody answers"
