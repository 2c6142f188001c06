"""Graphs by name, from a real server, a data folder and the cache."""

from __future__ import annotations

import dataclasses
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from published import FORMS, GRAIL, Published
from range_server import Site, serving

from satkgc import KnowledgeGraph, SatkgcError
from satkgc.evaluation import candidate_entities
from satkgc.kg import CATALOGUE, SPLITS, Counts, Entry, entry_location, find_entry, inspect_graph, load_entry, write_tsv
from satkgc.kg.catalogue import PublicFile, local_copy

ARCHIVES = [entry for entry in CATALOGUE if entry.sha256]
TWO_GRAPHS = [entry for entry in CATALOGUE if entry.counts.inference]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test, and no data folder unless the test makes one."""
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SATKGC_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site({f"/{form.entry}/{name}": data for form in FORMS for name, data in form.files.items()})) as site:
        yield site


def entry_of(form: Published, url: str, **changes: object) -> Entry:
    """The catalogue's entry, but with small files at another address, and their counts."""
    entry = find_entry(form.entry)
    files = tuple(PublicFile(file.folder, file.name, f"{url}/{form.entry}/{file.name}", None) for file in entry.files)
    return dataclasses.replace(entry, files=files, counts=form.counts, sha256=None, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.entry)
def test_every_published_form_is_downloaded_and_understood(form: Published, site: Site) -> None:
    graph = load_entry(entry_of(form, site.url))
    entities = {
        graph.entities.id(i): (graph.entities.name(i), graph.entities.description(i))
        for i in range(len(graph.entities.ids))
    }
    assert entities == form.entities
    assert {graph.relations.id(i): graph.relations.name(i) for i in range(graph.num_relations)} == form.relations
    held_out = {split: {graph.entities.id(i) for i in members} for split, members in graph.split_entities.items()}
    assert held_out == form.held_out
    assert sorted(path for path, _ in site.requests) == sorted(f"/{form.entry}/{name}" for name in form.files)


def test_a_graph_once_read_is_mapped_from_the_cache(site: Site, cache: Path) -> None:
    entry = entry_of(FORMS[0], site.url)
    load_entry(entry)
    before = len(site.requests)
    for path in (cache / "downloads" / "WN18RR").iterdir():  # no longer needed
        path.unlink()
    again = load_entry(entry)
    assert again.path is not None
    assert again.path.parent == cache / "graphs"
    assert len(site.requests) == before
    assert entry_location(entry) == "cached"
    assert sorted(path.name for path in cache.iterdir()) == ["downloads", "graphs"]


def test_a_damaged_graph_in_the_cache_is_made_anew(site: Site) -> None:
    entry = entry_of(FORMS[0], site.url)
    path = load_entry(entry).path
    assert path is not None
    (path / "train.npy").unlink()
    assert Counts.of(load_entry(entry)) == entry.counts


def test_a_graph_with_other_counts_is_refused(site: Site) -> None:
    entry = dataclasses.replace(entry_of(FORMS[0], site.url), counts=Counts(4, 2, 3, 1, 9))
    with pytest.raises(SatkgcError, match="WN18RR has 1 test instead of 9"):
        load_entry(entry)


def test_without_a_network_it_is_said_which_file_goes_where(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satkgc.kg.download.PATIENCE", 1)
    entry = entry_of(FORMS[0], "http://127.0.0.1:9")
    with pytest.raises(SatkgcError) as error:
        load_entry(entry)
    message = str(error.value)
    assert "\n" not in message
    for part in ("http://127.0.0.1:9/WN18RR/train.txt", "WN18RR.tar.xz", "SATKGC_DATA", f"{cache}/downloads/WN18RR"):
        assert part in message
    # And there they are found.
    for name, data in FORMS[0].files.items():
        (cache / "downloads" / "WN18RR").mkdir(parents=True, exist_ok=True)
        (cache / "downloads" / "WN18RR" / name).write_bytes(data)
    assert Counts.of(load_entry(entry)) == entry.counts


def test_every_download_is_pinned_to_a_commit_and_a_checksum() -> None:
    files = {file for entry in CATALOGUE for file in entry.files}
    assert files
    for file in files:
        assert re.search(r"/[0-9a-f]{40}/", file.url), file.url
        assert re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", file.checksum or ""), file.url


def test_a_published_file_with_another_checksum_is_refused(site: Site, cache: Path) -> None:
    entry = entry_of(FORMS[0], site.url)
    first = dataclasses.replace(entry.files[0], checksum="0" * 64)
    entry = dataclasses.replace(entry, files=(first, *entry.files[1:]))
    with pytest.raises(
        SatkgcError, match=r"WN18RR is not here, and .*/train\.txt the downloaded file has another checksum"
    ):
        load_entry(entry)
    (cache / "downloads" / "WN18RR" / "train.txt").write_bytes(FORMS[0].files["train.txt"])
    with pytest.raises(SatkgcError, match=r"train\.txt: not the published file: its checksum differs; remove it"):
        load_entry(entry)


def test_published_files_may_lie_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATKGC_DATA", str(tmp_path / "data"))
    for form in FORMS:
        entry = entry_of(form, "http://127.0.0.1:9")
        for file in entry.files:
            path = tmp_path / "data" / file.folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(form.files[file.name])
        assert Counts.of(load_entry(entry)) == entry.counts


def _folder(form: Published, path: Path) -> Path:
    entry = find_entry(form.entry)
    assert entry.convert is not None
    raw = path.with_name("raw")
    raw.mkdir(parents=True)
    path.mkdir()
    for name, data in form.files.items():
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_bytes(data)
    entry.convert({name: raw / name for name in form.files}, path)
    return path


def test_a_graph_in_the_data_folder_is_preferred_packed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entry_of(FORMS[0], "http://127.0.0.1:9")
    folder = _folder(FORMS[0], tmp_path / "data" / "WN18RR")
    monkeypatch.setenv("SATKGC_DATA", str(tmp_path / "data"))
    assert local_copy(entry) == folder
    unpacked = load_entry(entry)
    monkeypatch.setenv("SATKGC_DATA", str(tmp_path / "packed"))
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "WN18RR.tar.xz", "w:xz") as archive:
        archive.add(folder, "WN18RR")
    assert entry_location(entry) == "SATKGC_DATA"
    packed = load_entry(entry)
    assert packed.entities.ids.to_pylist() == unpacked.entities.ids.to_pylist()
    assert packed.train.tolist() == unpacked.train.tolist()
    with pytest.raises(
        SatkgcError, match=r"WN18RR\.tar\.xz: not the published archive of WN18RR: its checksum differs"
    ):
        load_entry(dataclasses.replace(entry, sha256="0" * 64))


def test_changed_files_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(FORMS[0], tmp_path / "data" / "WN18RR")
    monkeypatch.setenv("SATKGC_DATA", str(tmp_path / "data"))
    entry = entry_of(FORMS[0], "")
    assert load_entry(entry).entities.name(0) == FORMS[0].entities["00001740"][0]
    texts = (folder / "entities.tsv").read_text()
    (folder / "entities.tsv").write_text(texts.replace("take a breath", "breathe"))
    assert load_entry(entry).entities.name(0) == "breathe"


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="wordnet-sample is read anew each time"):
        graph = KnowledgeGraph.load("wordnet-sample")
    assert graph.path is None


@pytest.mark.parametrize("name", ["wn18rr", "FB15K-237", "Wikidata5m-Inductive"])
def test_names_are_known_in_any_case(name: str) -> None:
    assert find_entry(name).name.lower() == name.lower()


@pytest.mark.parametrize(
    ("name", "near"), [("WN18R", "WN18RR"), ("fb15k237", "FB15k-237"), ("wordnet", "wordnet-sample")]
)
def test_a_wrong_name_is_answered_with_its_likes(name: str, near: str) -> None:
    with pytest.raises(SatkgcError, match=f"did you mean .*{near}"):
        KnowledgeGraph.load(name)


def test_the_bundled_graph_opens_by_name() -> None:
    graph = KnowledgeGraph.load("WordNet-Sample")
    assert Counts.of(graph) == find_entry("wordnet-sample").counts
    assert graph.name == "wordnet-sample"


def test_a_graph_says_which_benchmark_it_is_if_the_catalogue_loaded_it(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # read, then mapped from the cache
        assert KnowledgeGraph.load("WordNet-Sample").benchmark == "wordnet-sample"
        graph = load_entry(entry_of(FORMS[0], site.url))
        assert graph.benchmark == "WN18RR"
    saved = graph.save(tmp_path / "mine")
    assert saved.benchmark == "WN18RR"
    assert KnowledgeGraph.load(tmp_path / "mine").benchmark == "WN18RR"
    write_tsv(graph, tmp_path / "WN18RR")
    monkeypatch.chdir(tmp_path)
    assert KnowledgeGraph.load("WN18RR").name == "WN18RR"
    assert KnowledgeGraph.load("WN18RR").benchmark is None  # a folder that merely bears the name
    assert KnowledgeGraph.load("WN18RR").save("binary").benchmark is None


def test_a_graph_that_cannot_be_cached_says_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SATKGC_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="read anew"):
        graph = KnowledgeGraph.load("wordnet-sample")
    assert graph.benchmark == "wordnet-sample"
    assert graph.save(tmp_path / "graph").benchmark == "wordnet-sample"


def test_a_path_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder(FORMS[0], tmp_path / "umls")
    monkeypatch.chdir(tmp_path)
    assert Counts.of(KnowledgeGraph.load("umls")) == FORMS[0].counts


def test_options_that_cannot_apply_are_refused(tmp_path: Path) -> None:
    saved = KnowledgeGraph.load("wordnet-sample").save(tmp_path / "graph").path
    assert saved is not None
    for source in ("wordnet-sample", saved):
        KnowledgeGraph.load(source, split="none", seed=3)  # speaks of graphs without a split alone
        with pytest.raises(SatkgcError, match="head cannot be chosen"):
            KnowledgeGraph.load(source, head="subject")
    with pytest.raises(SatkgcError, match="unknown option 'colour'"):
        KnowledgeGraph.load(source, colour="red")
    with pytest.raises(SatkgcError, match="did you mean 'languages'"):
        KnowledgeGraph.load(source, language="de")


@pytest.mark.shared
@pytest.mark.parametrize("entry", ARCHIVES, ids=lambda entry: entry.name)
def test_archives_hold_the_published_counts(entry: Entry, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts as the papers and data sheets print them, not as our own table has them."""
    published = json.loads((Path(__file__).parent / "published_counts.json").read_text())[entry.name]
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    graph = KnowledgeGraph.load(entry.name.upper())
    figures = inspect_graph(graph)
    assert {key: figures[key] for key in published} == published
    assert vars(Counts.of(graph)) == vars(entry.counts)


def test_grails_two_graphs_meet_nowhere_and_the_second_is_what_test_is_asked_of(site: Site, tmp_path: Path) -> None:
    graph = load_entry(entry_of(GRAIL, site.url))
    name = graph.entities.id

    def triples(split: str) -> list[tuple[str, str, str]]:
        return [(name(h), graph.relations.id(r), name(t)) for h, r, t in graph.split(split).tolist()]

    assert triples("train") == [("01", "_hypernym", "02"), ("02", "_also_see", "03"), ("03", "_hypernym", "01")]
    assert triples("inference")[1:] == [("12", "_also_see", "02_ind"), ("02_ind", "_hypernym", "13")]
    assert triples("test") == [("12", "_hypernym", "02_ind"), ("13", "_also_see", "11")]
    assert not set(graph.inference[:, [0, 2]].flat) & set(graph.train[:, [0, 2]].flat)
    assert candidate_entities(graph, "test", "split").tolist() == graph.split_entities["test"].tolist()
    assert candidate_entities(graph, "valid", "split").tolist() == sorted(set(graph.train[:, [0, 2]].flat))
    write_tsv(graph, tmp_path / "WN18RR-v3")
    assert {path.name for path in (tmp_path / "WN18RR-v3").iterdir()} >= {"inference.tsv", "test_entities.tsv"}
    assert Counts.of(KnowledgeGraph.load(tmp_path / "WN18RR-v3")) == GRAIL.counts


@pytest.mark.parametrize("entry", TWO_GRAPHS, ids=lambda entry: entry.name)
def test_grails_counts_are_those_that_pykeen_publishes(entry: Entry) -> None:
    """PyKEEN has 411 for the test triples of WN18RR-v2, as for its validation triples; the file holds 441."""
    from docdata import get_docdata
    from pykeen.datasets import inductive

    benchmark, _, version = entry.name.rpartition("-")
    published = get_docdata(getattr(inductive, f"Inductive{benchmark.replace('-', '')}"))[version.upper()]
    if entry.name == "WN18RR-v2":
        assert published.pop("inductive test triples") == 411
        published["inductive test triples"] = 441
    counts = entry.counts
    inference = published["inductive inference entities"]
    assert counts.entities == published["transductive train entities"] + inference
    names = "relations", "transductive train triples", "inductive test triples", "inductive inference triples"
    assert [counts.relations, counts.train, counts.test, counts.inference] == [published[name] for name in names]


@pytest.mark.shared
@pytest.mark.parametrize("entry", TWO_GRAPHS, ids=lambda entry: entry.name)
def test_grails_files_hold_the_counts(entry: Entry, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the files read once more, line by line."""
    if not (shared_data / "grail").is_dir():
        pytest.skip("GraIL's data is not in SATKGC_DATA: put its folder data there as grail")
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    graph = load_entry(entry)
    files = [(shared_data / "grail" / file.name).read_text().splitlines() for file in entry.files]
    train, valid, inference, test = ([line.split("\t") for line in lines] for lines in files)
    first, second = ({end for h, _, t in part for end in (h, t)} for part in (train + valid, inference + test))
    assert graph.num_entities == len(first) + len(second)
    assert len(first & second) == (8 if entry.name == "WN18RR-v3" else 0)
    assert [len(graph.split(split)) for split in SPLITS] == [len(train), len(valid), len(test), len(inference)]
    assert len(candidate_entities(graph, "test", "split")) == len({end for h, _, t in inference for end in (h, t)})
    assert not graph.adjacency.degree[graph.split_entities["test"]].any()


@pytest.mark.shared
def test_wn18rr_from_its_published_form_is_the_archived_one(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definitions file is put together again from the archive's own keys: id, `__name_POS_n`, gloss."""
    monkeypatch.setenv("SATKGC_DATA", str(shared_data))
    archived = KnowledgeGraph.load("WN18RR")
    with tarfile.open(shared_data / "WN18RR.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    keys = [line.split("\t") for line in (tmp_path / "WN18RR" / "wordnet_keys.tsv").read_text().splitlines()]
    glosses = dict(zip(archived.entities.ids.to_pylist(), archived.entities.descriptions.to_pylist(), strict=True))
    definitions = "".join(
        f"{id}\t__{name.replace(' ', '_')}_{tag}_{sense}\t{glosses[id]}\n"
        for id, name, tag, sense in keys
        if id in glosses
    )
    files = {"wordnet-mlj12-definitions.txt": tmp_path / "definitions"}
    files["wordnet-mlj12-definitions.txt"].write_text(definitions)
    files |= {f"{split}.txt": tmp_path / "WN18RR" / f"{split}.tsv" for split in ("train", "valid", "test")}
    (tmp_path / "out").mkdir()
    entry = find_entry("WN18RR")
    assert entry.convert is not None
    entry.convert(files, tmp_path / "out")
    graph = KnowledgeGraph.load(tmp_path / "out")
    assert Counts.of(graph) == entry.counts
    for id in archived.entities.ids.to_pylist()[::97]:
        here, there = graph.entities.index(id), archived.entities.index(id)
        assert graph.entities.name(here) == archived.entities.name(there)
        assert graph.entities.description(here) == archived.entities.description(there)
    names = {graph.relations.id(i): graph.relations.name(i) for i in range(graph.num_relations)}
    assert names == {archived.relations.id(i): archived.relations.name(i) for i in range(archived.num_relations)}
