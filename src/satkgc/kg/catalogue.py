"""Graphs by name: what each must count, where the public gets it, and how it is found, checked and cached.

A graph is looked for in the package, then in the folder SATKGC_DATA, then on the network, where every file is pinned to
a commit and a checksum.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.kg import grail, public_formats, store
from satkgc.kg.download import fetch
from satkgc.kg.graph import SPLITS, KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read_graph
from satkgc.manifest import cache_folder as cache_folder  # offered here too
from satkgc.manifest import sha256

READING = 2  # raise when a reader changes what it makes of the same files: older cached graphs are then left alone


@dataclass(frozen=True)
class Counts:
    """What a graph has been published to hold."""

    entities: int
    relations: int
    train: int
    valid: int
    test: int
    inference: int = 0

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Counts:
        """What it holds."""
        return cls(graph.num_entities, graph.num_relations, *(len(graph.split(split)) for split in SPLITS))


@dataclass(frozen=True)
class PublicFile:
    """A file as published: the folder and name it is kept under, its address and its checksum (see `download`)."""

    folder: str
    name: str
    url: str
    checksum: str | None = None


@dataclass(frozen=True)
class Entry:
    """A graph in the catalogue."""

    name: str
    about: str
    counts: Counts
    archive: str | None = None  # its name, less .tar.xz, in the folder SATKGC_DATA
    sha256: str | None = None  # of that archive
    files: tuple[PublicFile, ...] = ()
    convert: Callable[[public_formats.Files, Path], None] | None = None
    bundled: Path | None = None  # comes with the package
    options: dict[str, Any] = field(default_factory=dict)


def find_entry(name: str) -> Entry:
    """The entry of this name, in whatever case; a wrong one is answered with those that look like it."""
    names = {entry.name.lower(): entry for entry in CATALOGUE}
    if entry := names.get(name.lower()):
        return entry
    near = [names[match].name for match in difflib.get_close_matches(name.lower(), names, n=2, cutoff=0.5)]
    raise SatkgcError(
        "neither a file or folder nor a graph in the catalogue",
        where=name,
        remedy=f"did you mean {' or '.join(near)}?" if near else "`satkgc kg list` shows the names",
    )


def load_entry(entry: Entry) -> KnowledgeGraph:
    """Open a graph from the cache, or find or download it, check its counts and cache it."""
    source = local_copy(entry)
    cached = _cached(entry, source)
    if store.is_graph_folder(cached):
        try:
            return _check_counts(entry, store.open_graph(cached))
        except SatkgcError:
            shutil.rmtree(cached, ignore_errors=True)  # a damaged copy is made anew below
    options = ReadOptions(**{"name": entry.name, **entry.options})
    graph = _read_public_files(entry, options) if source is None else read_graph(source, options)
    _check_counts(entry, graph)
    object.__setattr__(graph, "benchmark", entry.name)  # a copy would lose what has been derived from it already
    try:
        return graph.save(cached, overwrite=True)
    except SatkgcError as error:
        warnings.warn(f"{entry.name} is read anew each time: {error}", stacklevel=2)
        return graph


def entry_location(entry: Entry) -> str:
    """Where the graph would come from now, in a word: bundled, cached, damaged, SATKGC_DATA or download."""
    if entry.bundled:
        return "bundled"
    source = local_copy(entry)
    try:
        if store.is_graph_folder(_cached(entry, source)):
            return "cached"
    except (SatkgcError, OSError):
        return "damaged"  # one bad archive must not keep a list from the others; loading it says what is wrong
    return "SATKGC_DATA" if source else "download"


def local_copy(entry: Entry) -> Path | None:
    """The graph as it lies in the package or in the folder SATKGC_DATA, packed or not."""
    data = os.environ.get("SATKGC_DATA")
    if entry.bundled or not data or not entry.archive:
        return entry.bundled
    folder, packed = Path(data) / entry.archive, Path(data) / f"{entry.archive}.tar.xz"
    # kg-bert's files, too, have a train.tsv, but not a valid.tsv.
    if (folder / "train.tsv").is_file() and (folder / "valid.tsv").is_file():
        return folder
    return packed if packed.is_file() else None


def fetch_files(entry: Entry) -> dict[str, Path]:
    """The published files, each from the folder SATKGC_DATA, from an earlier download, or from the network."""
    paths: dict[str, Path] = {}
    for file in entry.files:
        target = cache_folder() / "downloads" / file.folder / file.name
        data = os.environ.get("SATKGC_DATA")
        if data and (local := Path(data) / file.folder / file.name).is_file():
            target = local
        try:
            paths[file.name] = fetch(file.url, target, file.checksum)
        except SatkgcError as error:
            if target.exists():
                raise
            raise SatkgcError(
                f"{entry.name} is not here, and {file.url} {error.what}",
                remedy=f"put {entry.archive}.tar.xz into a folder and name it in SATKGC_DATA, "
                f"or put {file.name} into {cache_folder() / 'downloads' / file.folder}",
            ) from error
    return paths


def _read_public_files(entry: Entry, options: ReadOptions) -> KnowledgeGraph:
    assert entry.convert is not None
    files = fetch_files(entry)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="converting-", dir=cache_folder()) as folder:
        entry.convert(files, Path(folder))
        return read_graph(Path(folder), options)


def _check_counts(entry: Entry, graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph, if it holds what it must."""
    actual = Counts.of(graph)
    for what, expected in vars(entry.counts).items():
        if getattr(actual, what) != expected:
            raise SatkgcError(
                f"{entry.name} has {getattr(actual, what):,} {what} instead of {expected:,}",
                where=graph.path or local_copy(entry) or cache_folder() / "downloads",
                remedy="this is not the published graph: replace the file, or load it by its path",
            )
    return graph


def _cached(entry: Entry, source: Path | None) -> Path:
    """The graph's place in the cache, by all that it depends on: versions, and the source's content or addresses."""
    digest = hashlib.sha256(f"{store.VERSION} {READING} {sorted(entry.options.items())}".encode())
    if source is None:
        digest.update(" ".join(file.url for file in entry.files).encode())
    elif source.is_file():
        content = sha256(source)
        if entry.sha256 not in (None, content):
            raise SatkgcError(
                f"not the published archive of {entry.name}: its checksum differs",
                where=source,
                remedy="fetch it again, or load it by its path",
            )
        digest.update(content.encode())
    else:
        files = sorted(path for path in source.iterdir() if path.is_file())
        small = sum(path.stat().st_size for path in files) < 1 << 27
        for path in files:  # reading gigabytes only to look into the cache would defeat it
            state = f"{path.stat().st_size} {path.stat().st_mtime_ns}"
            digest.update(f"{path.name} {sha256(path) if small else state} ".encode())
    return cache_folder() / "graphs" / f"{entry.name}-{digest.hexdigest()[:16]}"


def _published(folder: str, base: str, checksums: Mapping[str, str]) -> tuple[PublicFile, ...]:
    return tuple(PublicFile(folder, name, f"{base}/{name}", checksum) for name, checksum in checksums.items())


_GITHUB = "https://raw.githubusercontent.com"
_SIMKGC = f"{_GITHUB}/intfloat/SimKGC/97cc43e488f19ca5b0f6fbf60ffefd2ee56c0693/data"
_PKGC = f"{_GITHUB}/THU-KEG/PKGC/717d09bc1dd00ca0f38419bc82887fa67bc85ea6/dataset"
_KG_BERT = f"{_GITHUB}/yao8839836/kg-bert/0b8f625108efcb9b43603b6840f2548ff3d3c973/data"
_KNN_KG = f"{_GITHUB}/zjunlp/KNN-KG/6169b961cb97ba77b5fbcdf6dd510290162b318a/dataset"
_WIKIDATA5M = "https://huggingface.co/datasets/intfloat/wikidata5m/resolve/6b2b09672129e280c0c9da97ab58154e9d535e6b"

_WORDNET = _published(
    "WN18RR",
    f"{_SIMKGC}/WN18RR",
    {
        "train.txt": "038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df",
        "valid.txt": "453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab",
        "test.txt": "0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5",
        "wordnet-mlj12-definitions.txt": "4cb535c333a3c784bdb6a2a4fc0c96d99cdbb486d5200841bd055e6648454580",
    },
)
_FREEBASE = _published(
    "FB15k-237",
    f"{_SIMKGC}/FB15k237",
    {
        "train.txt": "61099230e4439f90885ca9767739e31e8e32f54736fa1c35952b27997bc7c08a",
        "valid.txt": "749cbe9d923bac7b9354da5614ecfed2e0220256d442c3e04a6b303db1f273d9",
        "test.txt": "e2e35e8e6113de220140b6f44dc71a5207b0fc6872d575e874aefe13259b655b",
        "FB15k_mid2name.txt": "4da94b8059a83bc7e08c832f573d34221d38e85030576e332a0d0e9726d13d73",
        "FB15k_mid2description.txt": "19f934ef5e3a52977a003ec79f8cb824502f3b5b",  # as git names it
    },
)
_FREEBASE_N = _published(
    "FB15k-237N",
    f"{_PKGC}/FB15K-237-N",
    {
        "train.txt": "ba2bf41374e4a85b01cc23fd2b546caac4f7d44ecc1578da643623226a584475",
        "valid.txt": "57147130a5984dfc17ce00f95870e696ee8b5175ebcf8b8a50c85a3c6a46f678",
        "test.txt": "3b8348a4fb7b410734a4d45aa7a08c4a33bc5e96b18e3d4b41b30ed88e60fd59",
        "entity2label.txt": "e206283404bb096515bf6e0e5c7364d6fbfdacbeacdd96825133b2e7d0a1ebd3",
        "entity2definition.txt": "0a5388bf75eae6360b5bd4a80f644001d54c11c790d3a239eec944502276361d",
    },
)
_FREEBASE_ENTITIES = _published(
    "BLP_FB15k-237_ind",
    f"{_KNN_KG}/FB15k-237_ind",
    {
        "entity2textlong_dev.txt": "8c8a0f773b5912df81623f117cbb5775f0cdd69b29a528535dd5a5a08ee71439",
        "entity2textlong_test.txt": "37ef5df2e78cf6a9e6e786d066f903be9e0c21e3933cbb43125874fa366f66ee",
    },
)
_UMLS = _published(
    "UMLS",
    f"{_KG_BERT}/umls",
    {
        "train.tsv": "873ef4925516b83e7f6f8cc02b4be51d848828710a7f65a956f0ac4a9e452f35",
        "dev.tsv": "025c98f8a4891e2a6582ec5b40ee0d904031edad9c52554522f4b7904820c98e",
        "test.tsv": "a7eb529a3d2810fcc96341ccc97c625a5e202f8389673aa6bd317eeebbb79014",
        "entity2text.txt": "c6438aafd894917cefe73ea75fc20743d18f4226ebc85a2f43758ff3f77330b9",
        "entity2textlong.txt": "cb4eccdebf5bfc73adc2db0fc582d215256aa11d789d3a16a6c0649f338f5fe3",
        "relation2text.txt": "f5c5eddf696c52fc3c435ac031a4a0b06e00cc09116613db6a835d02d610123c",
    },
)


def _wikidata(setting: str, sha256: str) -> tuple[PublicFile, ...]:
    checksums = {
        f"wikidata5m_{setting}.tar.gz": sha256,
        "wikidata5m_alias.tar.gz": "0330f580c9f7a57cbad949ac380835fdd2a2e14d96cc0f13fc435401d6b463a8",
        "wikidata5m_text.txt.gz": "74acd89201940394b00c72ce14e381643e46da6c4aba9a36fa313556beb5da3b",
    }
    return _published("Wikidata5M", _WIKIDATA5M, checksums)


def _grail(name: str, counts: Counts) -> Entry:
    benchmark, _, version = name.rpartition("-")
    published = {"WN18RR": "WN18RR", "FB15k-237": "fb237"}[benchmark]
    graphs = f"{published}_{version}/", f"{published}_{version}_ind/"
    checksums = {file: checksum for file, checksum in grail.SHA256.items() if file.startswith(graphs)}
    about = f"{benchmark} in two graphs without a common entity: train on one, answer about the other"
    return Entry(
        name, about, counts, name, None, _published("grail", grail.URL, checksums), public_formats.grail_inductive
    )


CATALOGUE = (
    Entry(
        "wordnet-sample",
        "common WordNet synsets with definitions; comes with the package, trains in minutes",
        Counts(3_654, 14, 6_567, 320, 320),
        bundled=Path(__file__).parent / "data" / "wordnet-sample",
    ),
    Entry(
        "WN18RR",
        "WordNet synsets with definitions; sparse, mostly a hierarchy",
        Counts(40_943, 11, 86_835, 3_034, 3_134),
        "WN18RR",
        "8242087bda18cae0d13e56709d2b24739db8b9adf635299f769cbf9f6f147a58",
        _WORDNET,
        public_formats.simkgc_wordnet,
    ),
    Entry(
        "FB15k-237",
        "Freebase topics with descriptions; dense",
        Counts(14_541, 237, 272_115, 17_535, 20_466),
        "FB15k-237",
        "ffac9de5dcde64bbc879a6ba956847e219976daa3fa157ac2774a646a1b49d8f",
        _FREEBASE,
        public_formats.simkgc_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "FB15k-237N",
        "FB15k-237 without the relations that mediator nodes make up",
        Counts(13_104, 93, 87_282, 7_041, 8_226),
        "FB15k-237N",
        "6d787a1abec35ea0490772d196354db7383d493e3a92cd7729d9dd627cd97ea5",
        _FREEBASE_N,
        public_formats.pkgc,
        options={"textless": "allow"},
    ),
    Entry(
        "BLP-FB15k-237-inductive",
        "FB15k-237 split so that valid and test ask for entities unseen in train",
        Counts(14_541, 237, 215_082, 42_164, 52_870),
        "BLP_FB15k-237_ind",
        "d419166dbf7b09152512c2765416787a0204f76bc65876143651bcd39a61decf",
        (*_FREEBASE, *_FREEBASE_ENTITIES),
        public_formats.blp_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "UMLS",
        "Types of medical concepts with long descriptions; tiny",
        Counts(135, 46, 5_216, 652, 661),
        "UMLS",
        "185a8d8df3f1307dbaa91fd9a6b0d69f0c95747c272fe742aeabbe02872c5603",
        _UMLS,
        public_formats.kg_bert,
    ),
    # The paper's table repeats valid's 5,163 for test; the published file holds 5,133 triples.
    Entry(
        "Wikidata5M-transductive",
        "Wikidata entities with the first section of their Wikipedia page; large",
        Counts(4_594_485, 822, 20_614_279, 5_163, 5_133),
        "Wikidata5M-transductive",
        None,
        _wikidata("transductive", "383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597"),
        public_formats.wikidata5m,
        options={"textless": "allow"},
    ),
    # The paper's 4,579,609 are the entities of train; valid has 7,374 and test 7,475 others.
    Entry(
        "Wikidata5M-inductive",
        "Wikidata5M split so that train, valid and test share no entity",
        Counts(4_579_609 + 7_374 + 7_475, 822, 20_496_514, 6_699, 6_894),
        "Wikidata5M-inductive",
        None,
        _wikidata("inductive", "955081232cc2de859710bfe3a147f7d8314524010fe5f8c420bb74fdfee4f42a"),
        public_formats.wikidata5m,
        options={"textless": "allow"},
    ),
    # Entities are those of both graphs.
    _grail("WN18RR-v1", Counts(2_746 + 922, 9, 5_410, 630, 188, 1_618)),
    _grail("WN18RR-v2", Counts(6_954 + 2_757, 10, 15_262, 1_838, 441, 4_011)),
    _grail("WN18RR-v3", Counts(12_078 + 5_084, 11, 25_901, 3_097, 605, 6_327)),
    _grail("WN18RR-v4", Counts(3_861 + 7_084, 9, 7_940, 934, 1_429, 12_334)),
    _grail("FB15k-237-v1", Counts(1_594 + 1_093, 180, 4_245, 489, 205, 1_993)),
    _grail("FB15k-237-v2", Counts(2_608 + 1_660, 200, 9_739, 1_166, 478, 4_145)),
    _grail("FB15k-237-v3", Counts(3_668 + 2_501, 215, 17_986, 2_194, 865, 7_406)),
    _grail("FB15k-237-v4", Counts(4_707 + 3_051, 219, 27_203, 3_352, 1_424, 11_714)),
)
