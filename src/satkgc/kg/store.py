"""The binary form of a graph: a folder of Arrow and npy files that opens by memory map, whatever its size.

`meta.json` names every other file with its size and SHA-256, and has its own. Opening checks them, and that no index
points outside of its array: the compiled loops trust theirs. Of a large graph see `satkgc.manifest`.
"""

from __future__ import annotations

import hashlib
import json
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from satkgc import files, manifest
from satkgc.errors import SatkgcError
from satkgc.kg.adjacency import Adjacency, KnownTriples, as_triples
from satkgc.kg.bounds import check_bounds
from satkgc.kg.derived import describe, write_adjacency, write_known
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.vocabulary import Vocabulary

FORMAT = "satkgc-graph"
VERSION = 1
INFERENCE_VERSION = 2  # of a graph with an inference split, which version 1 would open without it
META = "meta.json"
# What numpy and Arrow raise over files that are not what they say; numpy parses a header as Python tokens.
UNREADABLE = OSError, ValueError, LookupError, TypeError, EOFError, SyntaxError, tokenize.TokenError


def is_graph_folder(path: Path) -> bool:
    """Whether this looks like a graph in binary form, damaged or not."""
    return (path / META).is_file()


def write_graph(graph: KnowledgeGraph, folder: Path, *, overwrite: bool = False) -> str:
    """Write all arrays, those that are derived included, so that opening builds nothing; all or nothing.

    Returns the fingerprint of what was written.
    """
    with _replacing(folder, overwrite) as partial:
        # Threads, because sorting, writing and checksums all let go of the interpreter.
        with ThreadPoolExecutor(max_workers=2) as pool:
            jobs = [pool.submit(job, graph, partial) for job in (_write_adjacency, _write_known, _write_rest)]
            files = {name: entry for job in jobs for name, entry in job.result().items()}
        meta = {
            "format": FORMAT,
            "version": INFERENCE_VERSION if len(graph.inference) else VERSION,
            "name": graph.name,
            "entities": graph.num_entities,
            "relations": graph.num_relations,
            "train": len(graph.train),
            "valid": len(graph.valid),
            "test": len(graph.test),
            "held_out": sorted(graph.split_entities),
            "files": dict(sorted(files.items())),
        }
        if len(graph.inference):
            meta["inference"] = len(graph.inference)
        if graph.benchmark is not None:
            meta["benchmark"] = graph.benchmark
        (partial / META).write_text(manifest.seal(meta), encoding="utf-8")
    manifest.Stamp(folder, _sums(meta)).write(own=True)  # its sums were taken from what was written
    return _fingerprint(meta)


def _write_adjacency(graph: KnowledgeGraph, folder: Path) -> dict[str, Any]:
    if "adjacency" in graph.__dict__:
        adjacency = graph.adjacency
        return _save_arrays(folder, "adjacency_", _array_fields(adjacency) | {"degree": adjacency.degree})
    return write_adjacency(folder, graph.train, graph.num_entities)


def _write_known(graph: KnowledgeGraph, folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for part, splits in (("known_train", ()), ("known_all", SPLITS[1:])):
        more = [graph.split(split) for split in splits]
        if part == "known_all" and not any(map(len, more)):  # then both are the same
            continue
        if part in graph.__dict__:
            files |= _save_arrays(folder, f"{part}_", _array_fields(graph.__dict__[part]))
        else:
            files |= write_known(
                folder, part, graph.train, as_triples(np.concatenate([graph.train[:0], *more])), graph.num_entities
            )
    return files


def _write_rest(graph: KnowledgeGraph, folder: Path) -> dict[str, Any]:
    splits = SPLITS if len(graph.inference) else SPLITS[:3]
    files = _save_arrays(folder, "", {split: graph.split(split) for split in splits})
    files |= _save_arrays(folder, "held_out_", dict(graph.split_entities))
    for vocabulary, stem in ((graph.entities, "entities"), (graph.relations, "relations")):
        files |= _save_vocabulary(folder / f"{stem}.arrow", vocabulary)
    return files


def open_graph(folder: Path, fingerprint: str | None = None) -> KnowledgeGraph:
    """Open a graph by memory map, and check it; one with a `fingerprint` was checked when that was taken."""
    folder = folder.absolute()
    meta = _read_meta(folder)
    present = _fingerprint(meta)
    if fingerprint not in (None, present):
        raise SatkgcError("another graph has been written here since", where=folder, remedy="open it again")
    try:
        stamp = manifest.Stamp(folder, _sums(meta))
        check = fingerprint is None and not stamp.holds()
        if check and (wrong := manifest.altered(folder, stamp.sums)):
            raise _damaged(folder, f"{', '.join(wrong)}: the content does not match the checksum")
        graph = _map(folder, meta, present)
        _check_shapes(folder, meta, graph)
        if check:
            check_bounds(graph)
            stamp.write()
    except (*UNREADABLE, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _damaged(folder, reason) from error
    return graph


def altered_files(folder: Path) -> list[str]:
    """Read every file of a graph; the names of those that are not as they were written."""
    try:
        meta = manifest.read_json(folder / META)
        return manifest.altered(folder, _sums(meta))
    except (SatkgcError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return [META]


def _sums(meta: dict[str, Any]) -> dict[str, str]:
    return {name: entry["sha256"] for name, entry in meta["files"].items()}


def check_overwrite(folder: Path, *, overwrite: bool) -> None:
    """Refuse a place that is taken; nothing but a graph or an empty folder is ever overwritten."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    ours = _own_files(folder)
    if not ours:
        raise SatkgcError(
            "not a graph in binary form, so it is not overwritten", where=folder, remedy="choose another name"
        )
    if foreign := {path.name for path in folder.iterdir()} - ours:
        what = f"beside the graph there is {min(foreign)}, so it is not overwritten"
        raise SatkgcError(what, where=folder, remedy="move that away, or choose another name")
    if not overwrite:
        raise SatkgcError("the output exists already", where=folder, remedy="use --force or another folder")


def _own_files(folder: Path) -> set[str]:
    """The files that a graph's meta.json names, whole or damaged; none where it is not that of a graph."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        if meta["format"] == FORMAT:
            return {META, *meta["files"].keys()}
    return set()


@contextmanager
def _replacing(folder: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary sibling that takes the folder's place at the end, or vanishes if anything goes wrong."""
    check_overwrite(folder, overwrite=overwrite)
    try:
        with files.atomic_folder(folder) as partial:
            yield partial
    except OSError as error:
        raise SatkgcError(
            f"cannot write the graph: {error.strerror or f'the disk may be full ({error})'}",
            where=folder,
            remedy="check the free space and the permissions there; nothing was left behind",
        ) from error


def _array_fields(part: Adjacency | KnownTriples) -> dict[str, Any]:
    return {f.name: value for f in fields(part) if isinstance(value := getattr(part, f.name), np.ndarray)}


def _save_arrays(folder: Path, prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    files = {}
    for name, array in arrays.items():
        path = folder / f"{prefix}{name}.npy"
        np.save(path, array, allow_pickle=False)
        files[path.name] = describe(path)
    return files


def _save_vocabulary(path: Path, vocabulary: Vocabulary) -> dict[str, Any]:
    columns = {
        "id": vocabulary.ids,
        "name": vocabulary.names,
        "description": vocabulary.descriptions,
        "id_order": pa.array(vocabulary.id_order),
        "name_order": pa.array(vocabulary.name_order),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)  # one batch: each column stays one piece of memory when it is mapped
    return {path.name: describe(path)}


def _load_vocabulary(path: Path, kind: str) -> Vocabulary:
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        batch = reader.get_batch(0)
    texts = [batch[column] for column in ("id", "name", "description")]
    if any(text.type != pa.large_string() for text in texts):
        raise ValueError("a text column of another type")
    # By DLPack, because to_numpy would import pandas wherever that is installed.
    return Vocabulary(kind, *texts, *(np.from_dlpack(batch[column]) for column in ("id_order", "name_order")))


def _fingerprint(meta: dict[str, Any]) -> str:
    content = {key: value for key, value in meta.items() if key != "benchmark"}  # where it came from is no content
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any]:
    """The meta file, of a known format and version, and every file it names there with its size."""
    try:
        meta = manifest.read_json(folder / META)
        if meta.get("format") != FORMAT:
            raise ValueError("its meta.json is not that of a graph")
        if meta["version"] not in (VERSION, INFERENCE_VERSION):
            raise SatkgcError(
                f"a graph in version {meta['version']} of the binary form, where this satkgc reads versions {VERSION} "
                f"and {INFERENCE_VERSION}",
                where=folder,
                remedy="import the graph again from its source",
            )
        if not isinstance(meta.get("benchmark"), str | None):
            raise ValueError("the name of its benchmark is no text")
        for name, expected in meta["files"].items():
            path = folder / name
            if not path.is_file():
                raise ValueError(f"{name} is missing")
            if path.stat().st_size != expected["bytes"]:
                raise ValueError(f"{name} has {path.stat().st_size} bytes instead of {expected['bytes']}")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise _damaged(folder, str(error).splitlines()[0]) from error
    return meta


def _map(folder: Path, meta: dict[str, Any], fingerprint: str) -> KnowledgeGraph:
    def array(name: str) -> Any:
        # asarray sheds numpy's memmap class, whose slices are slow and whose pickles are copies.
        return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))

    def part(prefix: str, kind: type[Any]) -> list[Any]:
        return [array(f"{prefix}_{f.name}") for f in fields(kind) if f.name != "num_relations"]

    graph = KnowledgeGraph(
        meta["name"],
        _load_vocabulary(folder / "entities.arrow", "entity"),
        _load_vocabulary(folder / "relations.arrow", "relation"),
        array("train"),
        array("valid"),
        array("test"),
        array("inference") if "inference" in meta else as_triples([]),
        split_entities={name: array(f"held_out_{name}") for name in meta["held_out"]},
        path=folder,
        fingerprint=fingerprint,
        benchmark=meta.get("benchmark"),  # folders of earlier versions have none
    )
    adjacency = Adjacency(*part("adjacency", Adjacency))
    known_train = KnownTriples(meta["relations"], *part("known_train", KnownTriples))
    known_all = known_train
    if "known_all_head_ptr.npy" in meta["files"]:
        known_all = KnownTriples(meta["relations"], *part("known_all", KnownTriples))
    # These fill the cached properties, which would otherwise build what the folder already holds.
    adjacency.__dict__["degree"] = array("adjacency_degree")
    graph.__dict__.update(adjacency=adjacency, known_train=known_train, known_all=known_all)
    return graph


def _check_shapes(folder: Path, meta: dict[str, Any], graph: KnowledgeGraph) -> None:
    """What a glance at the headers can tell: counts as announced, types as the compiled loops expect."""
    entities = meta["entities"]
    adjacency = graph.adjacency
    expected: list[tuple[Any, Any, tuple[int, ...]]] = [
        (graph.split(split), np.int32, ({"inference": 0, **meta}[split], 3)) for split in SPLITS
    ]
    expected += [(array, np.int32, (len(array),)) for array in graph.split_entities.values()]
    expected += [
        (adjacency.neighbour_ptr, np.int64, (entities + 1,)),
        (adjacency.degree, np.int32, (entities,)),
        (adjacency.neighbours, np.int32, (adjacency.neighbour_ptr[-1],)),
        (adjacency.edge_ptr, np.int64, (len(adjacency.neighbours) + 1,)),
        (adjacency.edges, np.int32, (adjacency.edge_ptr[-1],)),
    ]
    for known in (graph.known_train, graph.known_all):
        for ptr, *rest in (
            (known.head_ptr, known.head_relations, known.head_tails),
            (known.tail_ptr, known.tail_relations, known.tail_heads),
        ):
            expected += [(ptr, np.int64, (entities + 1,)), *((array, np.int32, (ptr[-1],)) for array in rest)]
    for vocabulary, size in ((graph.entities, entities), (graph.relations, meta["relations"])):
        expected += [(order, np.int32, (size,)) for order in (vocabulary.id_order, vocabulary.name_order)]
    for array, dtype, shape in expected:
        if array.dtype != dtype or array.shape != shape:
            raise _damaged(folder, f"an array of {array.shape} {array.dtype} where {shape} {np.dtype(dtype)} belongs")


def _damaged(where: Path, reason: str) -> SatkgcError:
    return SatkgcError(
        f"not a graph that can be opened: {reason}", where=where, remedy="import it again from its source"
    )
