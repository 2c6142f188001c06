"""The benchmarks by name: where each is found, what it must count, and the cache of those already read."""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satkgc.errors import SatkgcError
from satkgc.kg import binary, public_forms
from satkgc.kg.download import fetch
from satkgc.kg.graph import KnowledgeGraph
from satkgc.kg.readers import ReadOptions, read

READING = 1  # raise when a reader changes what it makes of the same files: older cached graphs are then left alone


@dataclass(frozen=True)
class Counts:
    """What a graph has been published to hold."""

    entities: int
    relations: int
    train: int
    valid: int
    test: int

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Counts:
        """What it holds."""
        return cls(graph.num_entities, graph.num_relations, len(graph.train), len(graph.valid), len(graph.test))


@dataclass(frozen=True)
class PublicFile:
    """A file as published: the folder and name it is kept under, and its address."""

    folder: str
    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """A graph in the catalogue."""

    name: str
    about: str
    counts: Counts
    archive: str | None = None  # its name, less .tar.xz, in the folder SATKGC_DATA
    sha256: str | None = None  # of that archive
    files: tuple[PublicFile, ...] = ()
    convert: Callable[[public_forms.Files, Path], None] | None = None
    bundled: Path | None = None  # comes with the package
    options: dict[str, Any] = field(default_factory=dict)


def _published(folder: str, base: str, *names: str) -> tuple[PublicFile, ...]:
    return tuple(PublicFile(folder, name, f"{base}/{name}") for name in names)


_GITHUB = "https://raw.githubusercontent.com"
_SPLITS = ("train.txt", "valid.txt", "test.txt")
_FREEBASE = _published(
    "FB15k-237",
    f"{_GITHUB}/intfloat/SimKGC/HEAD/data/FB15k237",
    *_SPLITS,
    "FB15k_mid2name.txt",
    "FB15k_mid2description.txt",
)


def _wikidata(setting: str, sha256: str) -> tuple[PublicFile, ...]:
    base = "https://huggingface.co/datasets/intfloat/wikidata5m/resolve/6b2b09672129e280c0c9da97ab58154e9d535e6b"
    alias = "0330f580c9f7a57cbad949ac380835fdd2a2e14d96cc0f13fc435401d6b463a8"
    names = {f"wikidata5m_{setting}.tar.gz": sha256, "wikidata5m_alias.tar.gz": alias, "wikidata5m_text.txt.gz": None}
    return tuple(PublicFile("Wikidata5M", name, f"{base}/{name}", checksum) for name, checksum in names.items())


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
        _published("WN18RR", f"{_GITHUB}/intfloat/SimKGC/HEAD/data/WN18RR", *_SPLITS, "wordnet-mlj12-definitions.txt"),
        public_forms.simkgc_wordnet,
    ),
    Entry(
        "FB15k-237",
        "Freebase topics with descriptions; dense",
        Counts(14_541, 237, 272_115, 17_535, 20_466),
        "FB15k-237",
        "ffac9de5dcde64bbc879a6ba956847e219976daa3fa157ac2774a646a1b49d8f",
        _FREEBASE,
        public_forms.simkgc_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "FB15k-237N",
        "FB15k-237 without the relations that mediator nodes make up",
        Counts(13_104, 93, 87_282, 7_041, 8_226),
        "FB15k-237N",
        "6d787a1abec35ea0490772d196354db7383d493e3a92cd7729d9dd627cd97ea5",
        _published(
            "FB15k-237N",
            f"{_GITHUB}/THU-KEG/PKGC/HEAD/dataset/FB15K-237-N",
            *_SPLITS,
            "entity2label.txt",
            "entity2definition.txt",
        ),
        public_forms.pkgc,
        options={"textless": "allow"},
    ),
    Entry(
        "BLP-FB15k-237-inductive",
        "FB15k-237 split so that valid and test ask for entities unseen in train",
        Counts(14_541, 237, 215_082, 42_164, 52_870),
        "BLP_FB15k-237_ind",
        "d419166dbf7b09152512c2765416787a0204f76bc65876143651bcd39a61decf",
        (
            *_FREEBASE,
            *_published(
                "BLP_FB15k-237_ind",
                f"{_GITHUB}/zjunlp/KNN-KG/6169b961cb97ba77b5fbcdf6dd510290162b318a/dataset/FB15k-237_ind",
                "dev-ents.txt",
                "test-ents.txt",
            ),
        ),
        public_forms.blp_freebase,
        options={"textless": "allow"},
    ),
    Entry(
        "UMLS",
        "Types of medical concepts with long descriptions; tiny",
        Counts(135, 46, 5_216, 652, 661),
        "UMLS",
        "185a8d8df3f1307dbaa91fd9a6b0d69f0c95747c272fe742aeabbe02872c5603",
        _published(
            "UMLS",
            f"{_GITHUB}/yao8839836/kg-bert/HEAD/data/umls",
            *("train.tsv", "dev.tsv", "test.tsv", "entity2text.txt", "entity2textlong.txt", "relation2text.txt"),
        ),
        public_forms.kg_bert,
    ),
    # The paper's table repeats valid's 5,163 for test; the published file holds 5,133 triples.
    Entry(
        "Wikidata5M-transductive",
        "Wikidata entities with the first section of their Wikipedia page; large",
        Counts(4_594_485, 822, 20_614_279, 5_163, 5_133),
        "Wikidata5M-transductive",
        None,
        _wikidata("transductive", "383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597"),
        public_forms.wikidata5m,
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
        public_forms.wikidata5m,
        options={"textless": "allow"},
    ),
)


def find(name: str) -> Entry | None:
    """The entry of this name, in whatever case."""
    return next((entry for entry in CATALOGUE if entry.name.lower() == name.lower()), None)


def suggestions(name: str) -> list[str]:
    """Names that look like this one."""
    names = {entry.name.lower(): entry.name for entry in CATALOGUE}
    return [names[near] for near in difflib.get_close_matches(name.lower(), names, n=2, cutoff=0.5)]


def cache_folder() -> Path:
    """Where downloads and graphs in binary form are kept: SATKGC_CACHE, or satkgc in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "satkgc"
    return Path(os.environ.get("SATKGC_CACHE") or default)


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


def whereabouts(entry: Entry) -> str:
    """Where the graph would come from now, in a word."""
    if entry.bundled:
        return "bundled"
    source = local_copy(entry)
    if binary.is_folder(_cached(entry, source)):
        return "cached"
    return "SATKGC_DATA" if source else "download"


def load(entry: Entry) -> KnowledgeGraph:
    """Open a graph from the cache, or find or download it, check its counts and cache it."""
    source = local_copy(entry)
    cached = _cached(entry, source)
    if binary.is_folder(cached):
        try:
            return _counted(entry, binary.open_folder(cached))
        except SatkgcError:
            pass  # a damaged copy is made anew below
    options = ReadOptions(**{"name": entry.name, **entry.options})
    if source is not None:
        graph = _counted(entry, read(source, options))
    else:
        graph = _counted(entry, _from_public_files(entry, options))
    try:
        return graph.save(cached, overwrite=True)
    except SatkgcError as error:
        warnings.warn(f"{entry.name} is read anew each time: {error}", stacklevel=2)
        return graph


def fetch_files(entry: Entry) -> dict[str, Path]:
    """The published files, each from the folder SATKGC_DATA, from an earlier download, or from the network."""
    found: dict[str, Path] = {}
    for file in entry.files:
        target = cache_folder() / "downloads" / file.folder / file.name
        data = os.environ.get("SATKGC_DATA")
        if data and (given := Path(data) / file.folder / file.name).is_file():
            target = given
        try:
            found[file.name] = fetch(file.url, target, file.sha256)
        except SatkgcError as error:
            raise SatkgcError(
                f"{entry.name} is not here, and {file.url} {error.what}",
                remedy=f"put {entry.archive}.tar.xz into a folder and name it in SATKGC_DATA, "
                f"or put {file.name} into {target.parent}",
            ) from error
    return found


def _from_public_files(entry: Entry, options: ReadOptions) -> KnowledgeGraph:
    assert entry.convert is not None
    files = fetch_files(entry)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="converting-", dir=cache_folder()) as folder:
        entry.convert(files, Path(folder))
        return read(Path(folder), options)


def _counted(entry: Entry, graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph, if it holds what it must."""
    found = Counts.of(graph)
    for what, expected in vars(entry.counts).items():
        if getattr(found, what) != expected:
            raise SatkgcError(
                f"{entry.name} has {getattr(found, what):,} {what} instead of {expected:,}",
                where=graph.path or local_copy(entry) or cache_folder() / "downloads",
                remedy="this is not the published graph: replace the file, or load it by its path",
            )
    return graph


def _cached(entry: Entry, source: Path | None) -> Path:
    """The graph's place in the cache, by all that it depends on: versions, and the source's content or addresses."""
    digest = hashlib.sha256(f"{binary.VERSION} {READING} {sorted(entry.options.items())}".encode())
    if source is None:
        digest.update(" ".join(file.url for file in entry.files).encode())
    elif source.is_file():
        content = binary.describe(source)["sha256"]
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
            digest.update(f"{path.name} {binary.describe(path)['sha256'] if small else state} ".encode())
    return cache_folder() / "graphs" / f"{entry.name}-{digest.hexdigest()[:16]}"
