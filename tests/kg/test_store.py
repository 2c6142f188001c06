"""The binary form: what comes back, who shares it, and what happens when something is wrong."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from kg_graphs import content, graphs, vocabulary

from satkgc import KnowledgeGraph, SatkgcError, files, manifest
from satkgc.kg import altered_files


def sample(triples: int = 60) -> KnowledgeGraph:
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, 20, triples), rng.integers(0, 3, triples), rng.integers(0, 20, triples)], 1)
    ids = [f"e{i}" for i in range(20)]
    texts = vocabulary("entity", ids, texts=[f"about {id}" for id in ids])
    return KnowledgeGraph.from_arrays(
        "sample", texts, vocabulary("relation", list("rst")), rows[9:], rows[:4], rows[4:9]
    )


@settings(max_examples=25)
@given(graphs())
def test_a_graph_comes_back_as_it_was(graph: KnowledgeGraph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opened = graph.save(Path(folder) / "graph")
        assert content(opened) == content(graph)
        assert altered_files(Path(folder) / "graph") == []
        assert os.listdir(folder) == ["graph"]


def test_an_opened_graph_is_mapped_and_builds_nothing(tmp_path: Path) -> None:
    sample().save(tmp_path / "graph")
    script = """
import mmap, sys
import numpy as np
from satkgc import KnowledgeGraph
graph = KnowledgeGraph.load(sys.argv[1])
arrays = [graph.train, graph.adjacency.edges, graph.adjacency.degree, graph.known_all.head_tails]
def root(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base
assert all(isinstance(root(a), mmap.mmap) and not a.flags.writeable and type(a) is np.ndarray for a in arrays)
assert graph.entities.find("e3") == 3 and graph.entities.description(3) == "about e3"
assert not {"numba", "torch", "transformers", "scipy", "matplotlib", "pandas"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "graph")], check=True)


def test_a_folder_without_a_benchmark_is_of_none_and_its_fingerprint_says_nothing_of_it(tmp_path: Path) -> None:
    """As written before there were benchmarks; what a run remembers of a graph does not depend on where it is from."""
    graph = sample().save(tmp_path / "graph")
    assert graph.benchmark is None
    assert "benchmark" not in json.loads((tmp_path / "graph" / "meta.json").read_text())
    _edit_meta(tmp_path / "graph", benchmark="WN18RR")
    opened = KnowledgeGraph.load(tmp_path / "graph")
    assert (opened.benchmark, opened.fingerprint) == ("WN18RR", graph.fingerprint)
    again = opened.save(tmp_path / "copy")
    assert (again.benchmark, again.fingerprint) == ("WN18RR", graph.fingerprint)
    assert pickle.loads(pickle.dumps(again)).benchmark == "WN18RR"  # noqa: S301 — our own bytes


def in_another_process(graph: KnowledgeGraph) -> tuple[str, list[int]]:
    return str(graph.path), graph.known_all.tails(int(graph.train[0, 0]), int(graph.train[0, 1])).tolist()


def test_processes_share_a_graph_by_its_path(tmp_path: Path) -> None:
    graph = sample().save(tmp_path / "graph")
    assert len(pickle.dumps(graph)) < 500
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        path, tails = pool.apply(in_another_process, (graph,))
    assert (path, tails) == in_another_process(graph)
    with pytest.raises(SatkgcError, match=r"save it first: kg = kg\.save\(folder\)"):
        pickle.dumps(sample())


def test_a_graph_that_was_replaced_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    pickled = pickle.dumps(sample().save(tmp_path / "graph"))
    sample(triples=50).save(tmp_path / "graph", overwrite=True)
    with pytest.raises(SatkgcError, match="another graph has been written here since"):
        pickle.loads(pickled)  # noqa: S301 — our own bytes


def test_nothing_is_overwritten_unasked_and_nothing_but_a_graph_ever(tmp_path: Path) -> None:
    graph = sample().save(tmp_path / "graph")
    with pytest.raises(SatkgcError, match="exists already; use --force"):
        graph.save(tmp_path / "graph")
    graph.save(tmp_path / "graph", overwrite=True)  # onto itself: its mapped files stay readable
    assert content(graph) == content(KnowledgeGraph.load(tmp_path / "graph"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("keep me")
    for overwrite in (False, True):
        with pytest.raises(SatkgcError, match=r"not a graph in binary form, .*; choose another name"):
            graph.save(tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "keep me"
    (tmp_path / "graph" / "config.json").write_text("keep me")
    with pytest.raises(SatkgcError, match=r"beside the graph there is config\.json, .*; move that away"):
        graph.save(tmp_path / "graph", overwrite=True)
    assert (tmp_path / "graph" / "config.json").read_text() == "keep me"


def test_what_a_killed_write_left_goes_with_the_next_and_what_others_write_stays(tmp_path: Path) -> None:
    script = "import sys, time; from pathlib import Path; from satkgc.kg.store import _replacing\n"
    script += "with _replacing(Path(sys.argv[1]), False): print('here', flush=True); time.sleep(600)"
    target = str(tmp_path / "graph")
    with subprocess.Popen([sys.executable, "-c", script, target], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "here\n"
            (left,) = os.listdir(tmp_path)
            (tmp_path / left / "train.npy").touch()
            sample().save(target)
            assert sorted(os.listdir(tmp_path)) == [left, "graph"]
        finally:
            other.kill()
    foreign = [".graph.partial-another.machine-1", ".graph.partial-", ".graph2.partial-1", "graph2"]
    for name in foreign:
        (tmp_path / name).mkdir()
    (tmp_path / left.replace(str(other.pid), str(os.getpid()))).mkdir()  # this number was another's once
    sample().save(target, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == sorted([*foreign, "graph"])


@pytest.mark.parametrize("limit", [100, 2000, 20_000])
def test_a_write_that_fails_leaves_nothing_behind_and_what_was_there_untouched(tmp_path: Path, limit: int) -> None:
    """A limit on the size of files fails a write just as a full disk does, and needs no full disk."""
    before, larger = content(sample().save(tmp_path / "graph")), sample(3000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(SatkgcError, match=r"^[^\n]*graph: cannot write the graph: [^\n]*$"):
            larger.save(tmp_path / "graph", overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["graph"]
    assert content(KnowledgeGraph.load(tmp_path / "graph")) == before


def test_the_old_graph_is_put_back_where_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(sample().save(tmp_path / "graph"))
    rename, moved = os.rename, []
    monkeypatch.setattr(files, "_exchange", lambda one, other: False)  # as where the system cannot

    def second_fails(source: Path, target: Path) -> None:
        moved.append(target)
        if len(moved) == 2:
            raise PermissionError(errno.EACCES, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(
        SatkgcError, match=r"graph: cannot write the graph: Permission denied; .* nothing was left behind"
    ):
        sample(50).save(tmp_path / "graph", overwrite=True)
    assert moved[1:] == [tmp_path / "graph"] * 2
    assert os.listdir(tmp_path) == ["graph"]
    assert content(KnowledgeGraph.load(tmp_path / "graph")) == before


def _edit_meta(folder: Path, **changes: object) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(_sealed(meta | changes))


def _sealed(meta: dict[str, object]) -> str:
    """As by somebody who keeps the sums right."""
    return manifest.seal({key: value for key, value in meta.items() if key != "sha256"})


def _remove_key(folder: Path, key: str) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    del meta[key]
    (folder / "meta.json").write_text(_sealed(meta))


def _set_size(folder: Path, name: str) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    meta["files"][name] = {"bytes": (folder / name).stat().st_size, "sha256": manifest.sha256(folder / name)}
    (folder / "meta.json").write_text(_sealed(meta))


def _other_type(folder: Path) -> None:
    np.save(folder / "train.npy", np.load(folder / "train.npy").astype(np.int64))
    _set_size(folder, "train.npy")


def _empty_pointers(folder: Path) -> None:
    np.save(folder / "adjacency_edge_ptr.npy", np.empty(0, np.int64))
    _set_size(folder, "adjacency_edge_ptr.npy")


def _pickled(folder: Path) -> None:
    np.save(folder / "train.npy", np.array([{}], dtype=object), allow_pickle=True)
    _set_size(folder, "train.npy")


def _half_a_header(folder: Path) -> None:
    data = (folder / "train.npy").read_bytes()
    (folder / "train.npy").write_bytes(data.replace(b"'shape'", b"(shape'"))
    _set_size(folder, "train.npy")


def _not_arrow(folder: Path) -> None:
    (folder / "entities.arrow").write_bytes(b"x" * 100)
    _set_size(folder, "entities.arrow")


DAMAGES = {
    "cut": (lambda f: os.truncate(f / "adjacency_edges.npy", 130), "adjacency_edges.npy has 130 bytes instead of"),
    "missing": (lambda f: (f / "known_all_head_ptr.npy").unlink(), "known_all_head_ptr.npy is missing"),
    "no meta": (lambda f: (f / "meta.json").write_text("{"), "not a graph that can be opened"),
    "foreign": (lambda f: (f / "meta.json").write_text('{"format": "other"}'), "not that of a graph"),
    "a list": (lambda f: (f / "meta.json").write_text("[1]"), "not a graph that can be opened"),
    "benchmark": (lambda f: _edit_meta(f, benchmark=5), "the name of its benchmark is no text"),
    "newer": (
        lambda f: _edit_meta(f, version=99),
        "version 99 of the binary form, where this satkgc reads versions 1 and 2",
    ),
    "counts": (lambda f: _edit_meta(f, train=1), r"an array of \(51, 3\) int32 where \(1, 3\) int32 belongs"),
    "entities": (lambda f: _edit_meta(f, entities=7), "belongs"),
    "no entities": (lambda f: _remove_key(f, "entities"), "not a graph that can be opened: 'entities'"),
    "no train": (lambda f: _remove_key(f, "train"), "not a graph that can be opened: 'train'"),
    "no pointers": (_empty_pointers, "not a graph that can be opened: index -1 is out of bounds"),
    "another type": (_other_type, "int64 where"),
    "pickle": (_pickled, "not a graph that can be opened"),
    "half a header": (_half_a_header, "not a graph that can be opened"),
    "not Arrow": (_not_arrow, "not a graph that can be opened"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_folder_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    damage, message = DAMAGES[case]
    sample().save(tmp_path / "graph")
    damage(tmp_path / "graph")  # type: ignore[no-untyped-call]
    with pytest.raises(SatkgcError, match=message) as error:
        KnowledgeGraph.load(tmp_path / "graph")
    assert "\n" not in str(error.value)
    assert "import" in str(error.value)


def _flip(file: Path, at: int = -1) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def test_a_changed_byte_in_any_file_is_found_and_named(tmp_path: Path) -> None:
    folder = sample().save(tmp_path / "graph").path
    assert folder is not None
    for file in sorted(folder.iterdir()):
        at = file.stat().st_size // 2 if file.name == "meta.json" else -1
        _flip(file, at)
        assert altered_files(folder) == [file.name]
        with pytest.raises(SatkgcError, match=r"was altered|damaged|not match|can be opened"):
            KnowledgeGraph.load(folder)
        _flip(file, at)
    KnowledgeGraph.load(folder)


def test_a_folder_from_before_meta_json_had_a_sum_of_its_own_opens(tmp_path: Path) -> None:
    folder = sample().save(tmp_path / "graph").path
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({key: meta[key] for key in meta if key != "sha256"}))
    assert content(KnowledgeGraph.load(folder)) == content(sample())


OUTSIDE = ["train", "test", "adjacency_neighbours", "adjacency_edges", "known_all_head_tails", "known_train_tail_ptr"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_that_point_outside_are_refused_though_all_sums_are_right(tmp_path: Path, name: str) -> None:
    """A stranger's graph: the compiled loops would read, and write, beyond their arrays."""
    folder = sample().save(tmp_path / "graph").path
    array = np.load(folder / f"{name}.npy")
    array.reshape(-1)[len(array) // 2] = 1 << 30
    np.save(folder / f"{name}.npy", array)
    _set_size(folder, f"{name}.npy")
    with pytest.raises(SatkgcError, match=r"point outside of the graph|out of order"):
        KnowledgeGraph.load(folder)


def test_a_large_graph_is_read_once_and_again_when_a_file_was_touched(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(manifest, "LARGE", 0)
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "cache"))
    reads: list[Path] = []
    real = manifest.sha256
    monkeypatch.setattr(manifest, "sha256", lambda path: reads.append(path) or real(path))
    own = sample().save(tmp_path / "own").path
    reads.clear()
    KnowledgeGraph.load(own)
    assert reads == []  # who wrote it has read it
    monkeypatch.setattr(manifest, "SETTLED", -1 << 62)
    folder = tmp_path / "graph"
    shutil.copytree(own, folder)
    for times in range(2):
        KnowledgeGraph.load(folder)
        assert len(reads) == (len(os.listdir(folder)) - 1) * (times == 0)
        reads.clear()
    sample(30).save(folder, overwrite=True)
    reads.clear()
    assert len(KnowledgeGraph.load(folder).train) < len(sample().train)
    assert reads == []
    before = (folder / "train.npy").stat()
    _flip(folder / "train.npy")
    os.utime(folder / "train.npy", ns=(before.st_atime_ns, before.st_mtime_ns))  # the time of its change stays
    with pytest.raises(SatkgcError, match=r"train\.npy: .* not match"):
        KnowledgeGraph.load(folder)


def test_a_folder_with_a_meta_json_of_another_is_never_overwritten(tmp_path: Path) -> None:
    listing = '{"format": "book", "files": {"thesis.tex": {}}}'  # another's, though it lists all that is there
    ours = ('{"format": "satkgc-graph"}', '{"format": "satkgc-graph", "files": {}}')
    for meta in ('{"title": "x"}', "{", "[]", listing, *ours):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "meta.json").write_text(meta)
        (folder / "thesis.tex").write_text("keep me")
        for overwrite in (False, True):
            with pytest.raises(SatkgcError, match=r"so it is not overwritten; (choose|move)") as error:
                sample().save(folder, overwrite=overwrite)
            assert "--force" not in str(error.value)
        assert sorted(os.listdir(folder)) == ["meta.json", "thesis.tex"]
